"""NVIDIA cards, as the driver's own library (NVML) reports them, and the reason for each card it cannot report.

It must not import torch: whether torch can use a card is the worker's question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pynvml

from skep.adapters.gpu import pci
from skep.core.device import Device, DeviceKind
from skep.core.text import Text

_AMPERE = 8
"""Major compute capability from which cards compute in bfloat16."""
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
    """What NVML told: usable cards, their PCI addresses, the errors of cards it would not open, or its own failure."""

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
    if not silent and _proves_a_card(found.failure):
        return [(None, found.failure)]
    return [(card, found.failure) for card in silent]


def _proves_a_card(error: pynvml.NVMLError) -> bool:
    # Without a card on the bus (containers, WSL) a missing library or an idle driver says nothing about hardware.
    return error.value not in {_LIBRARY_MISSING, _DRIVER_NOT_LOADED}


def _unusable(root: Path, index: int, card: pci.Card | None, error: pynvml.NVMLError | None) -> Device:
    reason = _reason(card.driver if card else None, error)
    return Device(DeviceKind.NVIDIA, index, _name(root, card), unusable=reason)


def _name(root: Path, card: pci.Card | None) -> str:
    if card is None:
        return "NVIDIA graphics card"
    told = pci.text(root / "proc/driver/nvidia/gpus" / card.address / "information") or ""
    for line in told.splitlines():
        key, _, value = line.partition(":")
        if key == "Model" and value.strip():
            return value.strip()
    return f"NVIDIA graphics card at {card.address}"


def words(error: Any) -> Text:
    """What an NVMLError of a card that has worked means, in a sentence."""
    return _BY_CODE.get(error.value, Text("nvidia.nvidia_driver_library_reports", reason=str(error)))


def _reason(driver: str | None, error: pynvml.NVMLError | None) -> Text:
    if driver in _BY_DRIVER:
        return _BY_DRIVER[driver]
    if error is None:
        return _unlisted(driver)
    if error.value == _LIBRARY_MISSING:
        return _without_library(driver)
    return words(error)


def _unlisted(driver: str | None) -> Text:
    if driver is None:
        return Text("amd.no_driver_loaded")
    return Text("nvidia.nvidia_driver_does_not_offer")


def _without_library(driver: str | None) -> Text:
    if driver is None:
        return Text("nvidia.no_nvidia_driver_installed")
    return Text("nvidia.nvidia_driver_loaded_but_library")


def _ask_nvml() -> _Found:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return _Found(failure=error)
    try:
        return _read_all()
    except pynvml.NVMLError as error:
        return _Found(failure=error)
    finally:
        shut_down()


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
    """One working card; every reading that the driver refuses is None."""
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
        temperature=_try(lambda: degrees(handle)),
        power=None if milliwatts is None else milliwatts / 1000,
        utilisation=None if use is None else use.gpu / 100,
        bf16=None if capability is None else capability[0] >= _AMPERE,
    )


def degrees(handle: Any) -> float:
    """The card's temperature in degrees Celsius. Raises NVMLError."""
    sensor = pynvml.NVML_TEMPERATURE_GPU
    try:
        return float(pynvml.nvmlDeviceGetTemperatureV(handle, sensor))
    except pynvml.NVMLError:  # drivers before 570 know only the older call, which newer ones will drop
        return float(pynvml.nvmlDeviceGetTemperature(handle, sensor))


def shut_down() -> None:
    """Let go of the driver's library; what it has to say about that is of no use."""
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
