"""The sensor of other programs' processor use."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import psutil

from skep.adapters.process.own_processes import OwnProcesses
from skep.adapters.sensors.source import Polled
from skep.core.policy.conditions import Condition, Seen, answered
from skep.core.text import Text

SHORTEST_SECONDS: Final = 0.25
"""Processor time is counted in hundredths of a second, so shorter measurements are imprecise."""


@dataclass(frozen=True)
class Spent:
    """Processor seconds of one process: its own, and those of ended children that it has waited for."""

    own: float
    children: float

    @property
    def all(self) -> float:
        return self.own + self.children


@dataclass(frozen=True)
class Look:
    """Processor seconds since the start: of all cores, in use, and of each process of ours; `at` is monotonic time."""

    total: float
    busy: float
    ours: dict[int, Spent]
    at: float = 0.0


class ProcessorSensor(Polled):
    """Implements ports.Sensor. Its reading is the mean since the last one."""

    name = "Processor use"
    conditions: Sequence[Condition] = (Condition.PROCESSOR_USE,)

    def __init__(
        self,
        ours: OwnProcesses,
        used: Callable[[], tuple[float, float]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`used` returns processor seconds of all cores: in total, and in use."""
        super().__init__()
        self._ours, self._used, self._clock = ours, used or used_seconds, clock
        self._last: Look | None = None
        self._use = 0.0

    def read(self) -> Seen:
        if self._last is None:
            self._last = self._look()
            self.closed.wait(SHORTEST_SECONDS)
        if self._clock() - self._last.at >= SHORTEST_SECONDS:
            before, self._last = self._last, self._look()
            self._use = others_use(before, self._last)
        return {Condition.PROCESSOR_USE: answered(self._use, Text("battery.operating_system"))}

    def _look(self) -> Look:
        spent = {pid: times for pid, process in self._ours.look().items() if (times := spent_by(process))}
        return Look(*self._used(), spent, at=self._clock())


def others_use(before: Look, after: Look) -> float:
    """The share of all cores, 0..1, used by processes that are not skep's."""
    total = after.total - before.total
    if total <= 0:
        return 0.0
    others = after.busy - before.busy - own_seconds(before.ours, after.ours)
    return min(1.0, max(0.0, others / total))


def own_seconds(before: dict[int, Spent], after: dict[int, Spent]) -> float:
    """Processor seconds of skep's processes between two looks, including processes that started or ended meanwhile.

    An ended one is included in its parent's sum of children, from which its earlier use is subtracted.
    """
    # a process id with less time than before was reused by another process, all of whose time is new
    same = {pid for pid in before.keys() & after.keys() if after[pid].all >= before[pid].all}
    nothing = Spent(0.0, 0.0)
    own = sum(spent.own - (before[pid] if pid in same else nothing).own for pid, spent in after.items())
    children = sum(spent.children - (before[pid] if pid in same else nothing).children for pid, spent in after.items())
    ended = sum(spent.all for pid, spent in before.items() if pid not in same)
    return own + max(0.0, children - ended)


def spent_by(process: psutil.Process) -> Spent | None:
    """None when it has ended."""
    try:
        times = process.cpu_times()
    except psutil.Error:
        return None
    return Spent(times.user + times.system, times.children_user + times.children_system)


def used_seconds() -> tuple[float, float]:
    """Processor seconds since boot of all cores together: in total, and in use."""
    times = psutil.cpu_times()
    # guest time is included in user time; stolen time belongs to no program of this computer
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    total = sum(times) - guests
    return total, total - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "steal", 0.0)
