"""The power limit of an NVIDIA card: what may be set, by whom, and setting it. Watts here, milliwatts in the driver.

It must not decide when a limit holds, nor remember what it was before (cap_keeper does).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

import pynvml

from skep.adapters.gpu import nvidia
from skep.core.model import PowerCap

ONLY_NVIDIA: Final = "skep can limit the power of NVIDIA cards only."
_NOT_PERMITTED: Final = "The system lets only the administrator limit the card's power."
_NOT_SUPPORTED: Final = "This card's power cannot be limited."


class Limiter(Protocol):
    """One card whose power may be limited."""

    def look(self) -> PowerCap: ...

    def limit(self, watts: float) -> PowerCap: ...


class NvidiaLimiter:
    """The card that NVML numbers `index`. Each call opens the driver's library and lets go of it again."""

    def __init__(self, index: int) -> None:
        self._index = index

    def look(self) -> PowerCap:
        """The limit now, and whether it may be changed. Never raises.

        The driver is asked by setting the limit to what it is: it has no other way to tell whether it would obey.
        """
        try:
            with _card(self._index) as card:
                now = pynvml.nvmlDeviceGetPowerManagementLimit(card)
                return _set(card, now)
        except pynvml.NVMLError as error:
            return PowerCap(refused=_words(error))

    def limit(self, watts: float) -> PowerCap:
        """Set the limit, as near to `watts` as the card's bounds allow; what came of it. Never raises."""
        try:
            with _card(self._index) as card:
                low, high = pynvml.nvmlDeviceGetPowerManagementLimitConstraints(card)
                return _set(card, min(high, max(low, round(watts * 1000))))
        except pynvml.NVMLError as error:
            return PowerCap(refused=_words(error))


@contextmanager
def _card(index: int) -> Iterator[Any]:
    pynvml.nvmlInit()
    try:
        yield pynvml.nvmlDeviceGetHandleByIndex(index)
    finally:
        nvidia.shut_down()


def _set(card: Any, milliwatts: int) -> PowerCap:
    low, high = (each / 1000 for each in pynvml.nvmlDeviceGetPowerManagementLimitConstraints(card))
    refused = ""
    try:
        pynvml.nvmlDeviceSetPowerManagementLimit(card, milliwatts)
    except pynvml.NVMLError as error:
        refused = _words(error)
    now = pynvml.nvmlDeviceGetPowerManagementLimit(card) / 1000
    return PowerCap(watts=now, lowest=low, highest=high, refused=refused)


def _words(error: Any) -> str:
    if error.value == pynvml.NVML_ERROR_NO_PERMISSION:
        return _NOT_PERMITTED
    if error.value in {pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND}:
        return _NOT_SUPPORTED
    return nvidia.words(error)
