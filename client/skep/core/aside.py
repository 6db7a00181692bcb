"""Out of the swarm for a while, and back: the worker exits, the stay in the project goes on. Pure.

The allowance says whether there may be a network, and so a worker. A worker that departs is no failure, what it still
had is settled like at any exit, and the next one starts as soon as it may. Sleep is such a break too: after it, nothing
that the worker believed about the swarm is true any more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from skep.core import messages as m
from skep.core.model import Phase
from skep.core.snapshot import Snapshot, WorkerRun
from skep.core.stay import LONGEST_GOODBYE, Step, start_worker

SLEEP_SECONDS: Final = 30.0
"""After a shorter sleep the swarm still knows this peer."""

_IN_THE_SWARM: Final = (Phase.TRAINING, Phase.PAUSED)


def follow(snapshot: Snapshot, now: float) -> Step:
    """Let the worker leave when there may be no network, and start one when there may be again."""
    worker = snapshot.worker
    if not snapshot.allowance.network:
        if worker is None or worker.departing or worker.failed:
            return snapshot, ()
        return _out_of(snapshot, worker, now)
    if snapshot.phase is Phase.PAUSED and worker is None:
        return start_worker(snapshot)
    return snapshot, ()


def _out_of(snapshot: Snapshot, worker: WorkerRun, now: float) -> Step:
    match snapshot.phase:
        case Phase.TRAINING | Phase.PAUSED:
            # on a metered connection only a round that takes our work is worth its traffic
            if snapshot.allowance.rule == "metered" and not snapshot.account.pending:
                return depart(snapshot, worker)
            told = replace(worker, departing=True, departing_until=now + LONGEST_GOODBYE)
            return replace(snapshot, phase=Phase.PAUSED, worker=told), (m.TellWorker(m.FinishTraining()),)
        case Phase.JOINING:
            return depart(snapshot, worker)
        case _:
            return snapshot, ()


def depart(snapshot: Snapshot, worker: WorkerRun) -> Step:
    """The worker stops at once; the stay goes on without it."""
    told = replace(worker, departing=True, departing_until=None)
    return replace(snapshot, phase=Phase.PAUSED, stage=None, worker=told), (m.StopWorker(),)


def woken(snapshot: Snapshot, seconds: float) -> Step:
    """The computer slept, or stood still, for so long."""
    worker = snapshot.worker
    if worker is None or worker.failed or seconds <= SLEEP_SECONDS:
        return snapshot, ()
    if snapshot.phase not in (*_IN_THE_SWARM, Phase.JOINING) or (worker.departing and worker.departing_until is None):
        return snapshot, ()
    return depart(snapshot, worker)


def ticked(snapshot: Snapshot, now: float) -> Step:
    """Time went on: a last round that takes too long is given up."""
    worker = snapshot.worker
    if worker is None or worker.failed or snapshot.phase not in _IN_THE_SWARM or worker.departing_until is None:
        return snapshot, ()
    # a clock put back must not turn a minute into hours
    late = not worker.departing_until - LONGEST_GOODBYE <= now < worker.departing_until
    return depart(snapshot, worker) if late else (snapshot, ())


def gone(snapshot: Snapshot) -> Snapshot:
    """The worker that departed has exited."""
    return replace(snapshot, phase=Phase.PAUSED, worker=None, stage=None, falling=None)
