"""When a worker whose processes have grown ends at the edge of an epoch, and another one takes its place. Pure.

Nothing is lost by that: its work is averaged, its state is on the disk, and it counts as no failure.
"""

from __future__ import annotations

from typing import Final

from skep.core.policy.growth import Growth, Use
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot, WorkerRun
from skep.core.text import Text

APART_SECONDS: Final = 3600.0
"""Least time between two renewals."""
EDGE_SECONDS: Final = 3600.0
"""How long the end of an epoch is waited for; then the worker leaves as it does otherwise."""
AFRESH: Final = Text("renewal.starts_afresh")


def grown(snapshot: Snapshot, worker: WorkerRun, use: Use) -> Growth:
    """The growth of `worker` after a measurement: only those count that were taken while it trained.

    The buffers of a round are made at its first one, so what was used before does not count.
    """
    progress = snapshot.progress
    rounds = worker.joined_at is not None and progress is not None and progress.epoch > worker.joined_epoch
    if snapshot.phase is not Phase.TRAINING or not rounds:
        return worker.growth
    return worker.growth.after(use, present=snapshot.allowance.present)


def is_possible(snapshot: Snapshot, worker: WorkerRun) -> bool:
    """Whether `worker` may be asked to end now."""
    at, now = snapshot.renewed_at, snapshot.policy_state.steady
    rested = at is None or now - at >= APART_SECONDS
    return rested and snapshot.phase is Phase.TRAINING and not (worker.failed or worker.departing)


def is_asked(snapshot: Snapshot, worker: WorkerRun) -> bool:
    """Whether `worker` was asked to end: it and not the one that takes its place."""
    return snapshot.renewing and worker.joined_at is not None and not worker.failed


def is_late(snapshot: Snapshot, worker: WorkerRun) -> bool:
    """Whether `worker` was asked to end at the end of an epoch, and none came."""
    at = snapshot.renewed_at
    waited = at is not None and snapshot.policy_state.steady - at >= EDGE_SECONDS
    return waited and is_asked(snapshot, worker) and not worker.departing
