"""What tests of real workers with several ranks look at: their processes, their progress, their accounts."""

import re
import time

import psutil

from skep.core.session.messages import (
    ContributionConfirmed,
    ContributionLost,
    ContributionPending,
    SetShare,
    WorkerPaused,
    WorkerProgress,
)

EPOCH_SECONDS = 240.0
"""For joining and for an epoch on a busy computer."""


def is_a(kind):
    return lambda message: isinstance(message, kind)


def later(worker, kind, within=EPOCH_SECONDS):
    """The next message of this kind."""
    before = len(worker.all(kind))
    worker.wait_for(lambda _: len(worker.all(kind)) > before, within)
    return worker.all(kind)[-1]


def ranks_of(worker, count=1):
    """The processes of ranks from 1 on: those that a worker forks first."""
    return sorted(psutil.Process(worker.process.pid).children(), key=psutil.Process.create_time)[:count]


def trained_on(worker, within):
    """Seconds until the worker has computed more samples than now."""
    begun, position = time.monotonic(), later(worker, WorkerProgress).position
    worker.wait_for(lambda message: isinstance(message, WorkerProgress) and message.position > position + 64, within)
    return time.monotonic() - begun


def assert_accounted(worker):
    """Each contribution was pending and is settled once at most; while nothing is computed, every sample is in one."""
    told = worker.all(ContributionPending, ContributionConfirmed, ContributionLost)
    kinds = {}
    for message in told:
        kinds.setdefault(message.id, []).append(type(message))
    ends = [ContributionPending, ContributionConfirmed], [ContributionPending, ContributionLost], [ContributionPending]
    assert all(kind in ends for kind in kinds.values()), told
    pending = sum(message.samples for message in worker.all(ContributionPending))
    last = worker.all(WorkerProgress)[-1]
    growing = 0 if last.contribution in kinds else last.samples  # a round may have taken it since
    assert pending + growing == computed(worker), told


def computed(worker):
    return sum(map(int, re.findall(r"^computed (\d+)$", worker.words(), re.MULTILINE)))


def reaction(worker):
    """Seconds from a pause until nothing was computed; one that waited for a round to end is asked for again."""
    for _ in range(5):
        later(worker, ContributionConfirmed)  # now it computes
        pause = paused(worker)
        if not pause.behind:
            return pause.reaction_seconds
        worker.tell(SetShare(1.0))
    raise AssertionError("each pause had to wait for a round")


def paused(worker):
    """Wait until the worker has reported that it computes nothing, and what it has computed."""
    before = len(worker.all(WorkerPaused))
    worker.tell(SetShare(0.0))
    worker.wait_for(lambda _: len(worker.all(WorkerPaused)) > before)
    message = worker.all(WorkerPaused)[-1]
    for _ in range(2):  # the first may have been on its way
        later(worker, WorkerProgress)
    return message
