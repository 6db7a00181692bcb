"""The transitions that several messages share: a stay in a project from its worker's start to idle again. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from skep.core import messages as m
from skep.core.model import GpuMemory, Phase, Problem
from skep.core.snapshot import Snapshot, WorkerRun

Step = tuple[Snapshot, tuple[m.Effect, ...]]

LEFT: Final = "left before the round"
STOPPED: Final = "the worker stopped before the round"
GB: Final = 1_000_000_000
LONGEST_GOODBYE: Final = 60.0
"""Seconds that leaving waits for the round, at most."""


def trouble(snapshot: Snapshot, problem: Problem) -> Step:
    """Show `problem`, and tell the user once."""
    if snapshot.problem == problem:
        return snapshot, ()
    return replace(snapshot, problem=problem), (m.Notify(problem),)


def start_worker(snapshot: Snapshot) -> Step:
    """A worker for the project whose index is here, at the share granted now."""
    assert snapshot.project is not None
    assert snapshot.index is not None
    settings = snapshot.settings
    starting = m.StartWorker(
        project=snapshot.project,
        index=snapshot.index,
        seeds=snapshot.seeds,
        share=snapshot.allowance.share,
        device=str(settings.get("compute.device", "")),
        threads=int(settings.get("compute.threads", 0)),
        port=int(settings.get("network.port", 0)),
        client_mode=str(settings.get("network.client_mode", "automatic")),
        present=snapshot.allowance.present,
        memory=snapshot.allowance.memory,
        leave_gpu=int(float(settings.get("memory.leave_gpu_gb", 0.0)) * GB),
        leave_ram=int(float(settings.get("memory.leave_ram_gb", 0.0)) * GB),
    )
    joining = replace(snapshot, phase=Phase.JOINING, worker=WorkerRun(), stage=None, restart_at=None, falling=None)
    allowance = snapshot.allowance
    ordinary = (allowance.present, allowance.memory) == (False, GpuMemory.KEEP)
    # the start message says the share alone
    return joining, (starting,) if ordinary else (starting, m.SetAllowance(allowance))


def leave(snapshot: Snapshot) -> Step:
    """Towards idle at once: through leaving while a worker runs. Ends a wait for the round."""
    if snapshot.phase is Phase.IDLE or (snapshot.phase is Phase.LEAVING and snapshot.leaving_until is None):
        return snapshot, ()
    if snapshot.worker is None:
        return become_idle(snapshot)
    return replace(snapshot, phase=Phase.LEAVING, stage=None, leaving_until=None), (m.StopWorker(),)


def leave_after_round(snapshot: Snapshot, now: float) -> Step:
    """Towards idle after the round that takes what was accumulated; at once where there can be nothing to take."""
    if snapshot.phase is Phase.LEAVING:
        return snapshot, ()
    trains = snapshot.phase in (Phase.TRAINING, Phase.PAUSED)
    if not trains or snapshot.worker is None or snapshot.worker.failed:
        return leave(snapshot)
    if snapshot.worker.departing:
        until = snapshot.worker.departing_until
        return leave(snapshot) if until is None else (replace(snapshot, phase=Phase.LEAVING, leaving_until=until), ())
    waiting = replace(snapshot, phase=Phase.LEAVING, leaving_until=now + LONGEST_GOODBYE)
    return waiting, (m.TellWorker(m.FinishTraining()),)


def go_on_leaving(snapshot: Snapshot, now: float) -> Step:
    """Wait no longer than was said; a clock put back must not turn a minute into hours."""
    until = snapshot.leaving_until
    if until is None or until - LONGEST_GOODBYE <= now < until:
        return snapshot, ()
    return leave(snapshot)


def become_idle(snapshot: Snapshot) -> Step:
    """The end of a stay; also of the engine, when it was asked to quit. What was achieved stays on show."""
    idle = replace(
        snapshot,
        phase=Phase.IDLE,
        project=None,
        last_project=snapshot.project,
        index=None,
        stage=None,
        worker=None,
        restart_at=None,
        leaving_until=None,
        falling=None,
    )
    return idle, (m.EndEngine(),) if snapshot.quitting else ()
