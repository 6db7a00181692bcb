"""The part `disk`: a volunteer's disk is full or read-only at each kind of write, and each file of its home is damaged.

The home is on a small disk in a mount namespace of this process (as root), so that nothing stays mounted.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from report import Row

from damages import emptied, halved, random_bytes
from families import kill
from faults.places import own_folder
from faults.rows import Measured, Part
from faults.volunteer import volunteer
from manifests import signed
from refusals import make_past
from skep.adapters.net.catalogue import FileCatalogue
from skep.adapters.storage.paths import Home
from skep.adapters.storage.settings_file import PauseFile, SettingsFile
from skep.core.errors import SkepError
from small_disks import filled, read_only, small_disk
from terminals import SKEP, Running, devote, is_event, practice_swarm, skep, wait_until

KILOBYTES = 256 * 1024
VERB_SECONDS = 120.0
TRAINED_SECONDS = 900.0
"""Seconds within which even a very busy computer joins, or has a contribution confirmed."""
CLONE_NEWNS = 0x00020000
HINDRANCES = {"full": filled, "read-only": read_only}
VERBS: dict[str, tuple[str, ...]] = {
    "settings": ("settings", "set", "compute.idle_minutes", "7"),
    "identity": ("identity", "--new"),
    "publisher's key": ("key", "new", "--name", "mine", "--unencrypted-file"),
    "project": ("project", "add", "MANIFEST"),
    "diagnostics": ("diagnostics", "HOME/diagnostics.txt"),
}
"""Kinds of writes by one verb; MANIFEST and HOME stand for paths."""
FILES = (
    "settings.toml",
    "settings.last.toml",
    "ledger.sqlite",
    "identities/*.key",
    "projects/*/project.json",
    "pause.json",
    "control.json",
    "worker.json",
    "lock",
    "logs/*.log",
    "peers/*.json",
    "snapshots/*/*.safetensors",
    "cache/*.safetensors",
)
DAMAGES: dict[str, Callable[[Path], None]] = {"emptied": emptied, "halved": halved, "random bytes": random_bytes}
LEFT_BY_A_KILL = ("control.json", "worker.json")
GOES_ON = (is_event("joined"), is_event("paused"))


class Place:
    """Homes to be copied to a small disk, and a practice swarm, made when they are needed and ended with `ending`."""

    def __init__(self, folder: Path, ending: contextlib.ExitStack) -> None:
        self._folder, self._ending = folder, ending
        self.disk = folder / "disk"

    @functools.cached_property
    def link(self) -> str:
        return self._ending.enter_context(practice_swarm(self._folder / "swarm"))

    @functools.cached_property
    def used(self) -> Path:
        """A home with settings, an identity, a project and a ledger."""
        return make_past(self._folder)

    @functools.cached_property
    def trained(self) -> Path:
        """One with every file that training in the swarm leaves, and those that a killed front end leaves."""
        made = train(self._folder / "trained", self.link)
        for file in self._folder.glob("swarm/practice/served/*.safetensors"):  # so that a full disk lacks no data
            shutil.copy(file, made / "cache")
        return made

    @functools.cached_property
    def manifest(self) -> Path:
        return signed(self._folder, id="another")

    def copied(self, home: Path) -> Home:
        made = self.disk / "home"
        shutil.copytree(home, made, copy_function=shutil.copy)
        made.chmod(0o700)
        return Home(made)


@dataclass
class Said:
    """What one start or verb said; `code` is None for a start that went on until it was ended."""

    code: int | None
    titles: list[str]
    traces: int


def measure(numbers: range) -> Iterator[Measured]:
    own_mounts()
    with own_folder() as folder, contextlib.ExitStack() as ending:
        place = Place(folder, ending)
        for number in numbers:
            with small_disk(place.disk, KILOBYTES):
                measured = CASES[number % len(CASES)](place)
            said = [each.replace(str(folder), "FOLDER") for each in measured["said"]]
            yield {"number": number} | measured | {"said": said}


def own_mounts() -> None:
    """What this process mounts, only it and its children see. Raises RuntimeError when that cannot be had."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        raise RuntimeError(f"a small disk cannot be mounted ({os.strerror(ctypes.get_errno())}): it takes root")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def train(folder: Path, link: str) -> Path:
    devote(folder, **{"disk.keep_free_gb": 0.1})
    with volunteer(folder, link) as made:
        made.wait_until_training(TRAINED_SECONDS)
        for name in LEFT_BY_A_KILL:
            shutil.copy(folder / name, folder / f"{name}.kept")
        assert made.running.process.poll() is None
        made.running.process.send_signal(signal.SIGINT)
        made.running.process.wait(VERB_SECONDS)
    for name in LEFT_BY_A_KILL:
        (folder / f"{name}.kept").rename(folder / name)
    return folder


# --- what a home holds, and what is lost of it


def facts(home: Home) -> dict[str, Any]:
    """What must not change unsaid; None for what cannot be read."""
    return {
        "settings": read(lambda: SettingsFile(home.settings_file).load()),
        "contributions": read(lambda: confirmed(home)),
        "identity": read(home.identity_file.read_bytes),
        "identities": {file.name: read(file.read_bytes) for file in home.identities_folder.glob("*.key")},
        "projects": read(lambda: [each.id for each in FileCatalogue(home.projects_folder).projects()]),
        "pause": read(lambda: PauseFile(home.pause_file).load()[0]),
    }


def read(look: Callable[[], Any]) -> Any:
    with contextlib.suppress(SkepError, OSError, sqlite3.Error):
        return look()
    return None


def confirmed(home: Home) -> list[str]:
    with contextlib.closing(sqlite3.connect(home.ledger_file, timeout=10.0)) as file:
        rows = file.execute("SELECT id FROM contributions WHERE state = 'confirmed' ORDER BY number")
        return [name for (name,) in rows]


def recorded(home: Home) -> set[str]:
    return set(read(lambda: confirmed(home)) or ())


def missing(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The names of those facts that are not what they were; contributions may have been added."""
    earned = set(before["contributions"] or ()) <= set(after["contributions"] or ())
    return [each for each in before if (not earned if each == "contributions" else before[each] != after[each])]


# --- single runs


def run(home: Home, *verb: str) -> Said:
    """A verb to its end."""
    done = subprocess.run(
        [*SKEP, "--home", str(home.root), "--json", *verb],
        capture_output=True,
        text=True,
        timeout=VERB_SECONDS,
        check=False,
    )
    titles = done.stderr.splitlines()[:1] if done.returncode else []
    return Said(done.returncode, titles, traces(done.stdout + done.stderr))


def start(home: Home, link: str, meanwhile: Callable[[Running], None] = lambda _: None) -> Said:
    """A front end, until it has ended or gone on as far as the swarm and `meanwhile`; then it is interrupted."""
    running = Running(home.root, "join", link)
    try:
        deadline = time.monotonic() + TRAINED_SECONDS
        while running.process.poll() is None and time.monotonic() < deadline:
            if any(condition(event) for event in running.events for condition in GOES_ON):
                break
            time.sleep(0.1)
        refused = running.process.poll()
        if refused is None and time.monotonic() < deadline:
            meanwhile(running)
    finally:
        family = running.family() if running.process.poll() is None else []
        if family:
            running.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.process.wait(VERB_SECONDS)
        error = running.process.stderr.read() if running.process.poll() is not None else ""
        running.end()
        kill(family)
    late = refused is None and not any(condition(event) for event in running.events for condition in GOES_ON)
    titles = [event["title"] for event in running.named("problem")]
    return Said(-1 if late else refused, titles, traces(error) + sum("internal error" in each for each in titles))


def traces(text: str) -> int:
    return text.count("Traceback") + text.count("internal error")


def row(case: str, how: str, said: Said, lost: list[str], *, recovered: bool) -> Measured:
    return {
        "case": case,
        "how": how,
        "code": said.code,
        "said": said.titles,
        "traces": said.traces,
        "lost": lost,
        "silent": bool(lost or said.code) and not said.titles,
        "recovered": recovered,
    }


# --- the rows


def by_verb(name: str, how: str) -> Callable[[Place], Measured]:
    def measured(place: Place) -> Measured:
        home, manifest = place.copied(place.used), place.manifest
        verb = [word.replace("MANIFEST", str(manifest)).replace("HOME", str(home.root)) for word in VERBS[name]]
        before = facts(home)
        with HINDRANCES[how](place.disk):
            said = run(home, *verb)
        lost = missing(before, facts(home))
        return row(name, how, said, lost, recovered=bool(said.code) and run(home, *verb).code == 0)

    return measured


def at_the_start(how: str) -> Callable[[Place], Measured]:
    """A home that has trained starts: on a full disk it goes on, and what it says is not kept is kept when there is room."""

    def measured(place: Place) -> Measured:
        home = place.copied(place.trained)
        before, shown = facts(home), set[str]()

        def trains(running: Running) -> None:
            shown.add(running.wait_for(is_event("contribution", state="confirmed"), TRAINED_SECONDS)["id"])
            (place.disk / "ballast").write_bytes(b"")
            wait_until(lambda: shown <= recorded(home), VERB_SECONDS)

        with HINDRANCES[how](place.disk):
            said = start(home, place.link, trains)
        recovered = not said.code or start(home, place.link).code is None
        return row("start", how, said, missing(before, facts(home)), recovered=recovered)

    return measured


def first_start(how: str) -> Callable[[Place], Measured]:
    def measured(place: Place) -> Measured:
        home, link = Home(place.disk / "new"), place.link
        with HINDRANCES[how](place.disk):
            said = start(home, link)
        recovered = bool(said.code) and run(home, "identity").code == 0
        return row("first start", how, said, [], recovered=recovered)

    return measured


def while_training(place: Place) -> Measured:
    """The disk becomes full while it trains: it trains on, and all that was shown is in the ledger when there is room."""
    home = place.copied(place.trained)
    before, recovered = facts(home), []

    def trains(running: Running) -> None:
        running.wait_for(is_event("contribution", state="confirmed"), TRAINED_SECONDS)
        told = len(ids(running))
        with filled(place.disk):
            skep(home.root, *VERBS["settings"], within=VERB_SECONDS)
            skep(home.root, "pause", "--for", "1s", within=VERB_SECONDS)
            running.wait_for(lambda _: len(ids(running)) > told + 1, TRAINED_SECONDS)
        wait_until(lambda: ids(running) <= recorded(home), VERB_SECONDS)
        recovered.append(True)

    said = start(home, place.link, trains)
    lost = [each for each in missing(before, facts(home)) if each != "settings"]
    return row("while it trains", "full", said, lost, recovered=bool(recovered) and bool(said.titles))


def ids(running: Running) -> set[str]:
    return {event["id"] for event in running.named("contribution") if event["state"] == "confirmed"}


def damaged(pattern: str, how: str) -> Callable[[Place], Measured]:
    def measured(place: Place) -> Measured:
        home = place.copied(place.trained)
        if pattern == "pause.json":
            PauseFile(home.pause_file).save(paused=True, until=None)
        before, files = facts(home), list(home.root.glob(pattern))
        assert files, f"training left no {pattern}"
        for file in files:
            DAMAGES[how](file)
        said = start(home, place.link)
        kept = said.code is None or way_on(home, place, pattern)
        return row(pattern, how, said, missing(before, facts(home)), recovered=kept)

    return measured


def way_on(home: Home, place: Place, pattern: str) -> bool:
    """Do what the refusal says: put back a backup of the key; remove the project and add it again."""
    if pattern.startswith("identities/"):
        shutil.copytree(place.trained / "identities", home.identities_folder, dirs_exist_ok=True)
        return start(home, place.link).code is None
    if pattern.startswith("projects/"):
        shutil.rmtree(home.projects_folder)
        return run(home, "project", "add", place.link).code == 0
    return False


CASES: list[Callable[[Place], Measured]] = [
    *(by_verb(name, how) for name in VERBS for how in HINDRANCES),
    *(first_start(how) for how in HINDRANCES),
    *(at_the_start(how) for how in HINDRANCES),
    while_training,
    *(damaged(pattern, how) for pattern in FILES for how in DAMAGES),
]


def judged(rows: list[Measured]) -> list[Row]:
    of = [0.0] * len(rows)
    return [
        Row("tracebacks", sum(each["traces"] for each in rows), "", 0, of),
        Row("lost or refused without a sentence", sum(each["silent"] for each in rows), "", 0, of),
        Row("not recovered", sum(not each["recovered"] for each in rows), "", 0, of),
        Row("kinds of writes and damages", len({(each["case"], each["how"]) for each in rows}), "", None, of),
    ]


PART = Part("disk", "a disk that is full or read-only, and damaged files", len(CASES), measure, judged)
