"""A volunteer as a person has it: `skep join` with its own home, started again whenever its front end has ended."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from families import alive, kill
from faults.family import Family, family_of
from skep.adapters.storage.paths import Home
from terminals import Running, devote, skep

LOOK_SECONDS = 0.25
START_SECONDS = 240.0
"""Seconds within which it joins and has a confirmed contribution on a busy computer."""


@dataclass(frozen=True)
class Entry:
    """One contribution in the ledger. `recorded` and `settled` are wall clock, in seconds; `settled` 0 while pending."""

    epoch: int
    samples: int
    state: str
    recorded: float
    settled: float


Ledger = dict[str, Entry]


class Volunteer:
    """A home, its front end, and everything that its front ends have said.

    It computes at `share`, whatever else the computer does, on `device`, the setting compute.device. `place` is a command
    that runs the front end elsewhere.
    """

    def __init__(
        self, home: Path, link: str, *, share: float = 1.0, device: str = "", place: Sequence[str] = ()
    ) -> None:
        self.home = Home(devote(home, **{"compute.share_using": share, "compute.device": device}).absolute())
        self._link, self._place = link, place
        self._earlier: list[dict[str, Any]] = []
        self.inspected: Ledger = {}
        """As it was when a fault was over."""
        self.running = self._begin()

    def _begin(self) -> Running:
        return Running(self.home.root, "join", self._link, place=self._place)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [*self._earlier, *self.running.events]

    def keep_running(self) -> None:
        """Start the front end again if it has ended."""
        if self.running.process.poll() is not None:
            self.running.end()
            self._earlier += self.running.events
            self.running = self._begin()

    def begin_anew(self) -> None:
        """End a front end that does not recover, with its processes, and start another one."""
        self.end()
        self.keep_running()

    def train_anew(self) -> None:
        """The same, until it trains. Raises TimeoutError."""
        self.begin_anew()
        self.wait_until_training()

    def end(self) -> None:
        tree = self.running.family() if self.running.process.poll() is None else []
        with contextlib.suppress(subprocess.TimeoutExpired):  # `finish` has killed it
            self.running.finish()
        kill(alive(tree))

    def family(self) -> Family | None:
        return family_of(self.running.process.pid)

    def identity(self) -> str:
        """Hashes of its keys, and the peer ids under which it has joined."""
        files = sorted(self.home.identities_folder.glob("*.key"))
        keys = [hashlib.sha256(file.read_bytes()).hexdigest()[:12] for file in files]
        return " ".join([*keys, *sorted({event["peer_id"] for event in self.events if event["event"] == "joined"})])

    def ledger(self) -> Ledger:
        if not self.home.ledger_file.exists():
            return {}
        query = "SELECT id, epoch, samples, state, recorded_at, ifnull(settled_at, 0) FROM contributions"
        with contextlib.closing(
            sqlite3.connect(f"{self.home.ledger_file.as_uri()}?mode=ro", uri=True, timeout=10.0)
        ) as file:
            return {name: Entry(*values) for name, *values in file.execute(query)}

    def acknowledged(self) -> set[str]:
        """Ids of the contributions that a front end has shown as confirmed."""
        return {each["id"] for each in self.events if each["event"] == "contribution" and each["state"] == "confirmed"}

    def first_confirmed(self, since: float) -> Entry | None:
        """The first contribution that was confirmed of those that went into a round after `since`, wall clock."""
        found = [each for each in self.ledger().values() if each.state == "confirmed" and each.recorded >= since]
        return min(found, key=lambda each: each.settled, default=None)

    def wait_until_training(self, within: float = START_SECONDS) -> Family:
        """Wait for a whole family with a confirmed contribution of its own. Raises TimeoutError."""
        began, whole = time.time(), 0.0
        while time.time() < began + within:
            self.keep_running()
            family = self.family()
            whole = whole or time.time() if family else 0.0
            if family and self.first_confirmed(whole):
                return family
            time.sleep(LOOK_SECONDS)
        raise TimeoutError(f"no confirmed contribution within {within:g} s; last events: {self.events[-3:]}")

    def phase(self) -> str:
        """What the screen says now; empty when no front end answers."""
        try:
            return str(skep(self.home.root, "status")[1]["phase"])
        except Exception:  # noqa: BLE001 - a front end that hangs is a finding, not an error of the instrument
            return ""


@contextlib.contextmanager
def volunteer(home: Path, link: str, **more: Any) -> Iterator[Volunteer]:
    made = Volunteer(home, link, **more)
    try:
        yield made
    finally:
        made.end()


def damage(before: Ledger, after: Ledger, acknowledged: set[str]) -> tuple[int, int]:
    """How many acknowledged contributions were lost, and how many were counted twice.

    Acknowledged are those confirmed in the ledger before, and those that a front end has shown. A peer has one
    contribution in a round, so two confirmed ones of the same epoch have been counted twice.
    """
    settled = {name: each for name, each in before.items() if each.state == "confirmed"}
    changed = {name for name, each in settled.items() if after.get(name) != each}
    missing = {name for name in acknowledged if name not in after or after[name].state != "confirmed"}
    return len(changed | missing), max(0, _twice(after) - _twice(before))


def _twice(ledger: Ledger) -> int:
    epochs = [each.epoch for each in ledger.values() if each.state == "confirmed"]
    return len(epochs) - len(set(epochs))
