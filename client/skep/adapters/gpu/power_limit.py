"""The power limit of an NVIDIA card in watts: setting it while skep computes, and restoring it."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pynvml

from skep.adapters.gpu import nvidia
from skep.adapters.storage.files import atomic_write
from skep.core.device import PowerCap
from skep.core.session import messages as m
from skep.core.session.snapshot import Snapshot
from skep.core.text import NOTHING, Text
from skep.ports import Post

ONLY_NVIDIA: Final = Text("power_limit.skep_can_limit_power_nvidia")
_NOT_SUPPORTED: Final = Text("power_limit.card_power_cannot_limited")
_BY_CODE: Final = {
    pynvml.NVML_ERROR_NO_PERMISSION: Text("power_limit.system_lets_only_administrator_limit"),
    pynvml.NVML_ERROR_NOT_SUPPORTED: _NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: _NOT_SUPPORTED,
}


class NvidiaLimiter:
    """The card with NVML's number `index`. Each call opens and closes the driver's library."""

    def __init__(self, index: int) -> None:
        self._index = index

    def look(self) -> PowerCap:
        """The limit now, and whether it may be changed. Never raises.

        This sets the limit to its present value: the driver has no other way to query whether a change is permitted.
        """
        return self._set(None)

    def limit(self, watts: float) -> PowerCap:
        """Set the limit, as near to `watts` as the card's bounds allow; return the result. Never raises."""
        return self._set(watts)

    def _set(self, watts: float | None) -> PowerCap:
        try:
            with nvidia.library():
                card = pynvml.nvmlDeviceGetHandleByIndex(self._index)
                now = pynvml.nvmlDeviceGetPowerManagementLimit(card)
                low, high = pynvml.nvmlDeviceGetPowerManagementLimitConstraints(card)
                refused = NOTHING
                try:
                    wanted = now if watts is None else min(high, max(low, round(watts * 1000)))
                    pynvml.nvmlDeviceSetPowerManagementLimit(card, wanted)
                except pynvml.NVMLError as error:
                    refused = _words(error)
                now = pynvml.nvmlDeviceGetPowerManagementLimit(card)
                return PowerCap(watts=now / 1000, lowest=low / 1000, highest=high / 1000, refused=refused)
        except pynvml.NVMLError as error:
            return PowerCap(refused=_words(error))


def _words(error: Any) -> Text:
    return _BY_CODE.get(error.value) or nvidia.words(error)


SETTING: Final = "heat.power_cap_watts"
SAME_WATTS: Final = 0.5
"""Limits this close count as equal: cards round them."""
CLOSE_SECONDS: Final = 5.0

log = logging.getLogger(__name__)

Find = Callable[[], tuple[str, NvidiaLimiter] | None]
"""The training card with a stable name, or None if its power cannot be limited."""


class _Held(msgspec.Struct, frozen=True):
    """A limit that skep has set on a card: the old and the new value in watts."""

    card: str
    before: float
    ours: float


class PowerCapKeeper:
    """Keeps the limit, as an observer of the engine; driver calls run in a separate thread, since they may be slow."""

    def __init__(self, find: Find, note: Path, post: Post) -> None:
        self._find, self._note, self._post = find, note, post
        self._wanted = 0.0
        self._orders: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        self._held: tuple[_Held, NvidiaLimiter] | None = None
        self._thread = threading.Thread(target=self._run, name="power-cap", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def observe(self, message: m.Message, snapshot: Snapshot) -> None:  # noqa: ARG002 - as the port names it
        """Implements ports.Observer."""
        computes = snapshot.worker is not None and snapshot.allowance.share > 0
        wanted = float(snapshot.settings.get(SETTING, 0)) if computes else 0.0
        if wanted != self._wanted:
            self._wanted = wanted
            self._orders.put(wanted)

    def close(self) -> None:
        """Restore the old limit; waits a few seconds for that."""
        self._orders.put(None)
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        self._guarded(self._mend)
        while (wanted := self._orders.get()) is not None:
            self._guarded(partial(self._obey, wanted))
        self._guarded(self._put_back)

    def _guarded(self, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception:
            log.exception("the power cap is in an unknown state")

    def _obey(self, watts: float) -> None:
        self._put_back()
        left = self._mend()
        found = self._find() if watts else None
        if found is None:
            return
        card, limiter = found
        before = limiter.look()
        if before.watts is None or before.refused:
            log.warning("the power cap is not set: %s", before.refused)
            self._post(m.PowerCapSeen(before))
            return
        # a limit of ours that could not be removed is not the card's own
        own = left.before if left and left.card == card and _is(before.watts, left.ours) else before.watts
        held = _Held(card, own, min(before.highest or watts, max(before.lowest or watts, watts)))
        self._remember(held)
        self._held = (held, limiter)
        after = limiter.limit(held.ours)
        self._post(m.PowerCapSeen(after))

    def _put_back(self) -> None:
        if self._held is None:
            return
        held, limiter = self._held
        self._held = None
        if _restore(held, limiter):
            self._note.unlink(missing_ok=True)
        self._post(m.PowerCapSeen(None))

    # --- limits that were not put back: skep was killed, or the card refused

    def _remember(self, held: _Held) -> None:
        try:
            atomic_write(self._note, msgspec.json.encode(held))
        except OSError as error:
            log.warning("the card's own power limit cannot be noted: %s", error)

    def _mend(self) -> _Held | None:
        """Put back the limit that is noted, and return it if that is not possible now; then the note stays."""
        try:
            held = msgspec.json.decode(self._note.read_bytes(), type=_Held)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            log.warning("the note about the card's own power limit cannot be read: %s", error)
        else:
            found = self._find()
            if found is None or found[0] != held.card or not _restore(held, found[1]):
                return held
        self._note.unlink(missing_ok=True)
        return None


def _restore(held: _Held, limiter: NvidiaLimiter) -> bool:
    """Put back the old limit unless the user has changed ours since. Returns whether ours does not apply any more."""
    now = limiter.look().watts
    if now is None:
        return False
    return not _is(now, held.ours) or _is(limiter.limit(held.before).watts, held.before)


def _is(watts: float | None, expected: float) -> bool:
    return watts is not None and abs(watts - expected) <= SAME_WATTS
