"""NVIDIA cards, their readings, and why one is unusable, from the driver's library (NVML).

Whether torch can use a card is determined in the worker. Other programs' use is reported only as a sum.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TypeVar

import pynvml

from skep.adapters.gpu import pci
from skep.adapters.process.own_processes import OwnProcesses
from skep.core.device import Device, DeviceKind
from skep.core.policy.conditions import Condition, Reading, Seen, Source, answered, missing, silent
from skep.core.text import Text

_AMPERE = 8
"""Major compute capability from which cards support bfloat16."""
_LIBRARY_MISSING = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
_DRIVER_NOT_LOADED = pynvml.NVML_ERROR_DRIVER_NOT_LOADED

_BY_CODE = {
    pynvml.NVML_ERROR_NO_PERMISSION: Text("nvidia.you_have_no_permission_use"),
    _DRIVER_NOT_LOADED: Text("nvidia.nvidia_driver_installed_but_not"),
    pynvml.NVML_ERROR_GPU_IS_LOST: Text("nvidia.card_has_stopped_answering_restart"),
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (Text("nvidia.nvidia_driver_was_updated_while")),
}

_BY_DRIVER = {
    "nouveau": Text("nvidia.runs_nouveau_driver_cannot_train"),
    "vfio-pci": Text("amd.set_aside_virtual_machine"),
}


@dataclass(frozen=True)
class _Found:
    """NVML's answer: usable cards, their PCI addresses, the errors of cards it could not open, or its own failure."""

    devices: list[Device] = field(default_factory=list)
    addresses: set[str] = field(default_factory=set)
    errors: list[pynvml.NVMLError] = field(default_factory=list)
    failure: pynvml.NVMLError | None = None


def devices(root: Path) -> list[Device]:
    """Every NVIDIA card of this computer: first those that work, as NVML numbers them, then those that do not."""
    found = _ask_nvml()
    silent = [card for card in pci.cards(root, pci.NVIDIA) if card.address not in found.addresses]
    first = len(found.devices) + len(found.errors)
    unusable = [_unusable(root, index, *pair) for index, pair in enumerate(_pair(silent, found), first)]
    return found.devices + unusable


def _pair(silent: list[pci.Card], found: _Found) -> Sequence[tuple[pci.Card | None, pynvml.NVMLError | None]]:
    """Each silent card with the error that most likely belongs to it; an error without a card stands for one."""
    if found.failure is None:
        return list(zip_longest(silent, found.errors))
    # without a card on the bus (containers, WSL), a missing library or driver does not imply missing hardware
    if not silent and found.failure.value not in {_LIBRARY_MISSING, _DRIVER_NOT_LOADED}:
        return [(None, found.failure)]
    return [(card, found.failure) for card in silent]


def _unusable(root: Path, index: int, card: pci.Card | None, error: pynvml.NVMLError | None) -> Device:
    reason = _reason(card.driver if card else None, error)
    return Device(DeviceKind.NVIDIA, index, _name(root, card), unusable=reason)


def _name(root: Path, card: pci.Card | None) -> str:
    if card is None:
        return "NVIDIA graphics card"
    told = pci.field(root / "proc/driver/nvidia/gpus" / card.address / "information", "Model")
    return told or f"NVIDIA graphics card at {card.address}"


def words(error: Any) -> Text:
    """The meaning of an NVMLError of a card that has worked, as a sentence."""
    return _BY_CODE.get(error.value, Text("nvidia.nvidia_driver_library_reports", reason=str(error)))


def _reason(driver: str | None, error: pynvml.NVMLError | None) -> Text:
    if driver in _BY_DRIVER:
        return _BY_DRIVER[driver]
    if error is None:
        return Text("amd.no_driver_loaded" if driver is None else "nvidia.nvidia_driver_does_not_offer")
    if error.value == _LIBRARY_MISSING:
        return Text(
            "nvidia.no_nvidia_driver_installed" if driver is None else "nvidia.nvidia_driver_loaded_but_library"
        )
    return words(error)


@contextmanager
def library() -> Iterator[None]:
    """A context in which the driver's library is open. Raises NVMLError."""
    pynvml.nvmlInit()
    try:
        yield
    finally:
        _shut_down()


def _ask_nvml() -> _Found:
    try:
        with library():
            return _read_all()
    except pynvml.NVMLError as error:
        return _Found(failure=error)


def _read_all() -> _Found:
    found = _Found()
    driver = _try(pynvml.nvmlSystemGetDriverVersion)
    for index in range(pynvml.nvmlDeviceGetCount()):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        except pynvml.NVMLError as error:
            found.errors.append(error)
            continue
        found.devices.append(_read(index, handle, driver))
        found.addresses.add(_address(handle))
    return found


def _read(index: int, handle: Any, driver: str | None) -> Device:
    """One working card; readings that the driver does not support are None."""
    memory = _try(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    milliwatts = _try(lambda: pynvml.nvmlDeviceGetPowerUsage(handle))
    use = _try(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle))
    capability = _try(lambda: pynvml.nvmlDeviceGetCudaComputeCapability(handle))
    return Device(
        DeviceKind.NVIDIA,
        index,
        _try(lambda: pynvml.nvmlDeviceGetName(handle)) or "NVIDIA graphics card",
        memory_total=None if memory is None else int(memory.total),
        memory_free=None if memory is None else int(memory.free),
        driver=driver,
        temperature=_try(lambda: _degrees(handle)),
        power=None if milliwatts is None else milliwatts / 1000,
        utilisation=None if use is None else use.gpu / 100,
        bf16=None if capability is None else capability[0] >= _AMPERE,
        architecture=None if capability is None else "{}.{}".format(*capability),
    )


def _degrees(handle: Any) -> float:
    """The card's temperature in degrees Celsius. Raises NVMLError."""
    sensor = pynvml.NVML_TEMPERATURE_GPU
    try:
        return float(pynvml.nvmlDeviceGetTemperatureV(handle, sensor))
    except pynvml.NVMLError:  # drivers before 570 have only the older call, which newer ones will remove
        return float(pynvml.nvmlDeviceGetTemperature(handle, sensor))


def _shut_down() -> None:
    """Close the driver's library, ignoring errors."""
    _try(pynvml.nvmlShutdown)


def _address(handle: Any) -> str:
    info = _try(lambda: pynvml.nvmlDeviceGetPciInfo(handle))
    if info is None:
        return ""
    # NVML writes the domain with eight digits, sysfs with four
    domain, _, rest = str(info.busId).lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _try(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except pynvml.NVMLError:
        return None


# --- present readings

STALE_SECONDS: Final = 2.0
"""How long the driver's last sample of a process counts without a newer one."""
_NEVER: Final = {
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NO_PERMISSION,
}
"""Errors of a working card that does not support a reading."""
_NOTHING_NEW: Final = {pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_SUCCESS}
T = TypeVar("T")


class NvidiaCard:
    """Readings of the card with NVML's number `index`; opened at the first reading, and again after a failure."""

    def __init__(self, index: int, ours: OwnProcesses, clock: Callable[[], float] = time.monotonic) -> None:
        self._index, self._ours, self._clock = index, ours, clock
        self._handle: Any = None
        self._samples: dict[int, tuple[int, float]] = {}
        """By process: the driver's time stamp of its latest sample, and when that was first read."""

    def read(self) -> Seen:
        """Never raises: a card that is lost is silent."""
        try:
            self._open()
        except pynvml.NVMLError as error:
            return dict.fromkeys(pci.READINGS, silent(words(error)))
        seen = {
            Condition.GPU_USE: self._use(),
            Condition.GPU_MEMORY: self._reading(
                Text("amd.free_memory"), lambda: int(pynvml.nvmlDeviceGetMemoryInfo(self._handle).free)
            ),
            Condition.TEMPERATURE: self._reading(Text("amd.temperature"), lambda: _degrees(self._handle)),
            Condition.POWER: self._reading(
                Text("amd.power"), lambda: pynvml.nvmlDeviceGetPowerUsage(self._handle) / 1000
            ),
        }
        if any(reading.source is Source.SILENT for reading in seen.values()):
            self.close()  # the next reading opens the driver again
        return seen

    def close(self) -> None:
        """Close the driver's library. Called by the reading thread."""
        if self._handle is not None:
            self._handle = None
            _shut_down()

    def _open(self) -> None:
        if self._handle is None:
            pynvml.nvmlInit()
            try:
                self._handle = pynvml.nvmlDeviceGetHandleByIndex(self._index)
            except pynvml.NVMLError:
                _shut_down()
                raise

    def _reading(self, what: Text, ask: Callable[[], T]) -> Reading[T]:
        try:
            return answered(ask(), Text("nvidia.nvidia_driver"))
        except pynvml.NVMLError as error:
            if error.value in _NEVER:
                return missing(Text("amd.graphics_card_does_not_tell", what=what))
            return silent(words(error))

    # --- use by others

    def _use(self) -> Reading[float]:
        try:
            return answered(self._use_of_others(), Text("nvidia.nvidia_driver_process"))
        except pynvml.NVMLError as error:
            if error.value in _NEVER:
                return self._use_of_all()
            return silent(words(error))

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
        """The latest sample of each process; the driver also repeats old samples of idle processes."""
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
        """Use of the whole card, which equals other programs' use while skep does not use the card."""
        running = self._reading(
            Text("nvidia.what_runs"), lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        )
        if running.value is None or any(process.pid in self._ours.look() for process in running.value):
            return missing(Text("amd.driver_tells_card_use_only"))
        return self._reading(
            Text("amd.use"), lambda: min(1.0, pynvml.nvmlDeviceGetUtilizationRates(self._handle).gpu / 100)
        )
