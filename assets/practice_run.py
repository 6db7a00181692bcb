"""Reads and writes the recording of a practice run: the engine's messages to observers with wall clock, and the ledger.

`run.jsonl` begins with the computer of the run. Each further line is one message, with the fields of the snapshot that
it changed, by their paths: whole snapshots would need fifty times the space. `ledger.sql` is a dump of the ledger.
"""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from skep.core.device import Device
from skep.core.project.data import Project
from skep.core.project.manifest import VerifiedProject
from skep.core.session.control import finite, snapshot_of, status
from skep.core.session.snapshot import Snapshot
from skep.core.session.wire import build
from skep.recipes.registry import parse_manifest

FOLDER: Final = Path(__file__).resolve().parent / "recording"
RUN, LEDGER = "run.jsonl", "ledger.sql"
REPORT: Final = "WorkerProgress"
"""The message that adds one point to the page's plots."""
DEPTH: Final = 3
"""Depth to which changed fields are written separately; deeper objects are written whole."""


@dataclass(frozen=True)
class Computer:
    """The computer and the versions of the run. `made` is its date, `memory` and `disk_free` are bytes."""

    made: str
    command: str
    devices: tuple[Device, ...]
    cores: int
    memory: int
    disk_free: int
    projects: tuple[VerifiedProject, ...]
    """The projects of its home; the first is the one that was joined."""


@dataclass(frozen=True)
class Moment:
    """The observers' snapshot at `at`, wall clock seconds, after the message of that name."""

    at: float
    message: str
    snapshot: Snapshot


@dataclass(frozen=True)
class Run:
    computer: Computer
    moments: Sequence[Moment]


class Recorder:
    """Writes the lines of one run; called in the engine's thread."""

    def __init__(self, file: Path, shown: Mapping[str, str]) -> None:
        """`shown` maps folders of this computer to the names that replace them in the recording, inner ones first."""
        self._out = file.open("w", encoding="utf-8")
        self._shown = shown
        self._before: dict[str, Any] = {}

    def begin(self, computer: Computer) -> None:
        body: dict[str, Any] = msgspec.to_builtins(replace(computer, projects=()))
        names = [field.name for field in fields(Project)] + ["text"]
        self._write(body | {"projects": [{name: getattr(each, name) for name in names} for each in computer.projects]})

    def see(self, at: float, message: str, snapshot: Snapshot) -> None:
        """Messages that change nothing visible are left out, except training reports."""
        # includes the settings, which the answer to `skep status` does not need
        body = json.loads(json.dumps(status(snapshot) | {"settings": finite(snapshot.settings)}))
        changed = dict(_changed(self._before, body))
        if changed or message == REPORT:
            self._write({"at": round(at, 3), "message": message, "changed": changed})
        self._before = body

    def close(self) -> None:
        self._out.close()

    def _write(self, body: Mapping[str, Any]) -> None:
        line = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        for folder, name in self._shown.items():
            line = line.replace(folder, name)
        self._out.write(line + "\n")


def _changed(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The path and the new value of each difference; an object with other fields is one value."""
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict) and value.keys() == old.keys() and path.count("/") < DEPTH:
            yield from _changed(old, value, f"{path}{name}/")
        elif name not in before or value != old:
            yield f"{path}{name}", value


def load(folder: Path = FOLDER) -> Run:
    """The recorded run. Raises ValueError, NotRunning for a file of another format version."""
    head, *lines = (folder / RUN).read_text(encoding="utf-8").splitlines()
    return Run(_computer(json.loads(head)), list(_moments(lines)))


def _computer(body: dict[str, Any]) -> Computer:
    projects = tuple(
        VerifiedProject(**each, manifest=parse_manifest(each["text"].encode())) for each in body.pop("projects")
    )
    devices = tuple(build(Device, each) for each in body.pop("devices"))
    return Computer(**body, devices=devices, projects=projects)


def _moments(lines: Sequence[str]) -> Iterator[Moment]:
    before = Snapshot()
    body = status(before)  # for fields that were added after the recording
    for line in lines:
        told = json.loads(line)
        for path, value in told["changed"].items():
            _set(body, path, value)
        shown = copy.deepcopy(body)
        before = _told(shown, told["message"], before)
        yield Moment(told["at"], told["message"], before)


def _told(body: dict[str, Any], message: str, before: Snapshot) -> Snapshot:
    settings = body.pop("settings")
    snapshot = replace(snapshot_of(body), settings=settings)
    if message != REPORT and snapshot.progress == before.progress:
        # the plots add a report once, by its identity
        return replace(snapshot, progress=before.progress)
    return snapshot


def _set(body: dict[str, Any], path: str, value: Any) -> None:
    *way, last = path.split("/")
    for name in way:
        body = body[name]
    body[last] = value


def dump_ledger(ledger: Path, to: Path) -> None:
    """The ledger as SQL, its version included."""
    connection = sqlite3.connect(ledger)
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        to.write_text("\n".join([*connection.iterdump(), f"PRAGMA user_version = {version};", ""]), encoding="utf-8")
    finally:
        connection.close()


def restore_ledger(to: Path, folder: Path = FOLDER) -> None:
    """Write the recorded ledger as an SQLite file."""
    connection = sqlite3.connect(to)
    try:
        connection.executescript((folder / LEDGER).read_text(encoding="utf-8"))
    finally:
        connection.close()
