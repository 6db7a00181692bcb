"""Homes on a small disk: a used one, one that has trained, what of them must not be lost, and what skep says there."""

from __future__ import annotations

import contextlib
import functools
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from families import kill
from faults.rows import Measured
from faults.volunteer import volunteer
from manifests import signed
from refusals import make_past
from skep.adapters.net.catalogue import FileCatalogue
from skep.adapters.storage.paths import Home
from skep.adapters.storage.settings_file import PauseFile, SettingsFile
from skep.core.errors import SkepError
from terminals import SKEP, Running, devote, is_event, practice_swarm

VERB_SECONDS = 120.0
TRAINED_SECONDS = 900.0
"""Seconds within which even a very busy computer joins, or has a contribution confirmed."""
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


@dataclass
class Said:
    """What one start or verb said; `code` is None for a start that went on until it was ended.

    `traces` counts errors that nothing has foreseen, shown or in the log of the app or of `skep join`.
    """

    code: int | None
    titles: list[str]
    traces: int


def run(home: Home, *verb: str) -> Said:
    """A verb to its end."""
    logged = in_logs(home)
    done = subprocess.run(
        [*SKEP, "--home", str(home.root), "--json", *verb],
        capture_output=True,
        text=True,
        timeout=VERB_SECONDS,
        check=False,
    )
    titles = done.stderr.splitlines()[:1] if done.returncode else []
    return Said(done.returncode, titles, traces(done.stdout + done.stderr) + in_logs(home) - logged)


def start(home: Home, link: str, meanwhile: Callable[[Running], None] = lambda _: None) -> Said:
    """A front end, until it has ended or gone on as far as the swarm and `meanwhile`; then it is interrupted."""
    logged = in_logs(home)
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
        error = interrupted(running)
    late = refused is None and not any(condition(event) for event in running.events for condition in GOES_ON)
    titles = [event["title"] for event in running.named("problem")]
    seen = traces(error) + sum("internal error" in each for each in titles) + in_logs(home) - logged
    return Said(-1 if late else refused, titles, seen)


def interrupted(running: Running) -> str:
    """End it as a person does, with all its processes; what it has written to its standard error."""
    family = running.family() if running.process.poll() is None else []
    if family:
        running.process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.process.wait(VERB_SECONDS)
    error = running.process.stderr.read() if running.process.poll() is not None else ""
    running.end()
    kill(family)
    return str(error)


def traces(text: str) -> int:
    return text.count("Traceback") + text.count("internal error")


def in_logs(home: Home) -> int:
    """Errors that nothing has foreseen, in the front end's log.

    Those of the worker and of a host have hivemind's tracebacks of rounds without a group, which are foreseen.
    """
    texts = (read(lambda file=file: file.read_text(errors="replace")) for file in home.logs_folder.glob("skep.log*"))
    return sum(traces(text or "") for text in texts)


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
