"""What an NVIDIA card does now, as its driver's library (NVML) tells it: others' use, free memory, heat, power.

Other programs are only ever summed up. It must not choose the card, nor change anything about it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import pynvml

from skep.adapters.gpu import nvidia
from skep.adapters.process.own_processes import OwnProcesses
from skep.core.policy.conditions import Condition, Reading, Seen, Source, answered, missing, silent
from skep.core.text import Text

STALE_SECONDS: Final = 2.0
"""How long the driver's last word about a process counts, when no newer one comes."""
_NEVER: Final = {
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NO_PERMISSION,
}
"""Errors of a card that works and will never tell this."""
_NOTHING_NEW: Final = {pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_SUCCESS}
_WHOLE_ONLY: Final = Text("amd.driver_tells_card_use_only")

T = TypeVar("T")


class NvidiaCard:
    """The card that NVML numbers `index`; opened at the first reading, and after a failure again."""

    def __init__(self, index: int, ours: OwnProcesses, clock: Callable[[], float] = time.monotonic) -> None:
        self._index, self._ours, self._clock = index, ours, clock
        self._handle: Any = None
        self._samples: dict[int, tuple[int, float]] = {}
        """By process: the driver's time stamp of its latest sample, and when we first saw that."""

    def read(self) -> Seen:
        """Never raises: a card that is lost is silent."""
        try:
            self._open()
        except pynvml.NVMLError as error:
            return _all_silent(error)
        seen = {
            Condition.GPU_USE: self._use(),
            Condition.GPU_MEMORY: self._reading(
                Text("amd.free_memory"), lambda: int(pynvml.nvmlDeviceGetMemoryInfo(self._handle).free)
            ),
            Condition.TEMPERATURE: self._reading(Text("amd.temperature"), lambda: nvidia.degrees(self._handle)),
            Condition.POWER: self._reading(
                Text("amd.power"), lambda: pynvml.nvmlDeviceGetPowerUsage(self._handle) / 1000
            ),
        }
        if any(reading.source is Source.SILENT for reading in seen.values()):
            self.close()  # so that the next reading begins with the driver as it is then
        return seen

    def close(self) -> None:
        """Let go of the driver's library. By the thread that reads."""
        if self._handle is not None:
            self._handle = None
            nvidia.shut_down()

    def _open(self) -> None:
        if self._handle is None:
            pynvml.nvmlInit()
            try:
                self._handle = pynvml.nvmlDeviceGetHandleByIndex(self._index)
            except pynvml.NVMLError:
                nvidia.shut_down()
                raise

    def _reading(self, what: Text, ask: Callable[[], T]) -> Reading[T]:
        try:
            return answered(ask(), Text("nvidia.nvidia_driver"))
        except pynvml.NVMLError as error:
            if error.value in _NEVER:
                return missing(Text("amd.graphics_card_does_not_tell", what=what))
            return silent(nvidia.words(error))

    # --- use by others

    def _use(self) -> Reading[float]:
        try:
            return answered(self._use_of_others(), Text("nvidia.nvidia_driver_process"))
        except pynvml.NVMLError as error:
            if error.value in _NEVER:
                return self._use_of_all()
            return silent(nvidia.words(error))

    def _use_of_others(self) -> float:
        now, ours = self._clock(), self._ours.look()
        samples = {}
        total = 0
        for sample in self._ask_samples():
            stamp, since = self._samples.get(sample.pid, (0, now))
            samples[sample.pid] = (sample.timeStamp, since if stamp == sample.timeStamp else now)
            if sample.pid and sample.pid not in ours and now - samples[sample.pid][1] <= STALE_SECONDS:
                total += min(100, sample.smUtil)
        self._samples = samples
        return min(1.0, total / 100)

    def _ask_samples(self) -> list[Any]:
        """The latest of each process; the driver goes on telling those of processes that do nothing any more."""
        latest: dict[int, Any] = {}
        try:
            for sample in pynvml.nvmlDeviceGetProcessUtilization(self._handle, 0):
                if sample.pid not in latest or sample.timeStamp > latest[sample.pid].timeStamp:
                    latest[sample.pid] = sample
        except pynvml.NVMLError as error:
            if error.value not in _NOTHING_NEW:
                raise
        return list(latest.values())

    def _use_of_all(self) -> Reading[float]:
        """Of the whole card, which is that of others while nothing of ours is on it."""
        running = self._reading(
            Text("nvidia.what_runs"), lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        )
        if running.value is None or any(process.pid in self._ours.look() for process in running.value):
            return missing(_WHOLE_ONLY)
        return self._reading(
            Text("amd.use"), lambda: min(1.0, pynvml.nvmlDeviceGetUtilizationRates(self._handle).gpu / 100)
        )


def _all_silent(error: Any) -> Seen:
    words = nvidia.words(error)
    conditions = (Condition.GPU_USE, Condition.GPU_MEMORY, Condition.TEMPERATURE, Condition.POWER)
    return {condition: silent(words) for condition in conditions}
