"""The power limits of NVIDIA cards in watts: setting them while skep computes, and restoring them."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pynvml

from skep.adapters.gpu import nvidia
from skep.adapters.storage.files import atomic_write
from skep.core.device import PowerCap
from skep.core.policy.device_shares import limits_of
from skep.core.session import messages as m
from skep.core.session.snapshot import Snapshot
from skep.core.settings.setting import Value
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


class Unlimited:
    """A card whose power skep cannot limit."""

    def look(self) -> PowerCap:
        return PowerCap(refused=ONLY_NVIDIA)

    def limit(self, watts: float) -> PowerCap:  # noqa: ARG002 - as NvidiaLimiter
        return self.look()


Limiter = NvidiaLimiter | Unlimited


def _words(error: Any) -> Text:
    return _BY_CODE.get(error.value) or nvidia.words(error)


_SETTINGS: Final[Sequence[str]] = ("heat.power_cap_watts", "compute.device_limits")
SAME_WATTS: Final = 0.5
"""Limits this close count as equal: cards round them."""
CLOSE_SECONDS: Final = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Card:
    """A graphics card. `name` is stable while it is in its slot; `device` is its Device.choice.

    It `trains` if the setting compute.device chooses it.
    """

    name: str
    device: str
    limiter: Limiter
    trains: bool = True


Find = Callable[[], Sequence[Card]]
Wanted = Mapping[str, Value]
"""The settings while skep computes, else none."""


class _Noted(msgspec.Struct, frozen=True):
    """A limit that skep has set on a card: the old and the new value in watts."""

    card: str
    before: float
    ours: float


@dataclass(frozen=True)
class _Held:
    """A limit in force: what was noted, the watts that were asked for, and what came of it."""

    note: _Noted
    limiter: Limiter
    asked: float
    cap: PowerCap


class PowerCapKeeper:
    """Keeps the limits, as an observer of the engine; driver calls run in a separate thread, since they may be slow.

    `find` returns every graphics card; `note` is the file of the limits that are set.
    """

    def __init__(self, find: Find, note: Path, post: Post) -> None:
        self._find, self._note, self._post = find, note, post
        self._wanted: Wanted = {}
        self._devices: list[str] = []
        """Those that train, as last seen."""
        self._orders: queue.SimpleQueue[Wanted | None] = queue.SimpleQueue()
        self._held: dict[str, _Held] = {}
        self._told: dict[str, PowerCap] = {}
        self._thread = threading.Thread(target=self._run, name="power-cap", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def observe(self, message: m.Message, snapshot: Snapshot) -> None:  # noqa: ARG002 - as the port names it
        """Implements ports.Observer."""
        computes = snapshot.worker is not None and snapshot.allowance.share > 0
        wanted = {key: snapshot.settings[key] for key in _SETTINGS if key in snapshot.settings} if computes else {}
        devices = [each.id for each in snapshot.devices] if computes else []
        if (wanted, devices) != (self._wanted, self._devices):
            self._wanted, self._devices = wanted, devices
            self._orders.put(wanted)

    def close(self) -> None:
        """Restore the old limits; waits a few seconds for that."""
        self._orders.put(None)
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        self._guarded(self._mend)
        while (wanted := self._orders.get()) is not None:
            self._guarded(partial(self._obey, wanted))
        self._guarded(partial(self._obey, {}))

    def _guarded(self, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception:
            log.exception("the power caps are in an unknown state")

    def _obey(self, wanted: Wanted) -> None:
        cards = [card for card in self._find() if card.trains] if any(map(wanted.get, _SETTINGS)) else []
        watts = {card.name: limits_of(wanted, card.device).watts for card in cards}
        self._put_back([name for name, held in self._held.items() if held.asked != watts.get(name)])
        left = self._mend()
        caps = dict[str, PowerCap]()
        for card in cards:
            if card.name in self._held:
                caps[card.device] = self._held[card.name].cap
            elif watts[card.name]:
                caps[card.device] = self._limit(card, watts[card.name], left.get(card.name))
        if caps != self._told:
            self._told = caps
            self._post(m.PowerCapSeen(caps))

    def _limit(self, card: Card, watts: float, left: _Noted | None) -> PowerCap:
        before = card.limiter.look()
        if before.watts is None or before.refused:
            log.warning("the power cap of %s is not set: %s", card.name, before.refused)
            return before
        # a limit of ours that could not be removed is not the card's own
        own = left.before if left and _is(before.watts, left.ours) else before.watts
        note = _Noted(card.name, own, min(before.highest or watts, max(before.lowest or watts, watts)))
        self._remember([*(each for each in self._noted() if each.card != card.name), note])
        cap = card.limiter.limit(note.ours)
        self._held[card.name] = _Held(note, card.limiter, watts, cap)
        return cap

    def _put_back(self, names: Sequence[str]) -> None:
        stay = {each.card: each for each in self._noted()}
        for name in names:
            held = self._held.pop(name)
            if _restore(held.note, held.limiter):
                stay.pop(name, None)
        if names:
            self._remember(list(stay.values()))

    # --- limits that were not put back: skep was killed, or the card refused

    def _remember(self, held: Sequence[_Noted]) -> None:
        """Note what is to be put back; nothing once there is none."""
        try:
            if held:
                atomic_write(self._note, msgspec.json.encode(held))
            else:
                self._note.unlink(missing_ok=True)
        except OSError as error:
            log.warning("the cards' own power limits cannot be noted: %s", error)

    def _noted(self) -> list[_Noted]:
        try:
            found = msgspec.json.decode(self._note.read_bytes(), type=list[_Noted] | _Noted)
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            log.warning("the note about the cards' own power limits cannot be read: %s", error)
            return []
        return found if isinstance(found, list) else [found]  # one alone: by skep of before it limited several

    def _mend(self) -> Mapping[str, _Noted]:
        """Put back the limits that are noted; return by card those of which that is not possible now, which stay noted."""
        noted = self._noted()
        past = [each for each in noted if each.card not in self._held]
        if not past and (noted or not self._note.exists()):
            return {}
        limiters = {card.name: card.limiter for card in self._find()}
        left = [each for each in past if each.card not in limiters or not _restore(each, limiters[each.card])]
        self._remember([each for each in noted if each in left or each.card in self._held])
        return {each.card: each for each in left}


def _restore(held: _Noted, limiter: Limiter) -> bool:
    """Put back the old limit unless the user has changed ours since. Returns whether ours does not apply any more."""
    now = limiter.look().watts
    if now is None:
        return False
    return not _is(now, held.ours) or _is(limiter.limit(held.before).watts, held.before)


def _is(watts: float | None, expected: float) -> bool:
    return watts is not None and abs(watts - expected) <= SAME_WATTS
