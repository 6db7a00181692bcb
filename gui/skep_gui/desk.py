"""The app's desk in this home: hosts the engine, keeps the catalogue, starts the practice swarm. No Qt.

Everything here may take its time, so that it is only called from errands, never from Qt's main thread; `post` alone
returns at once. Raises SkepError in words for people.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skep import bootstrap, diagnosis, updating
from skep.core import messages as m
from skep.core import timeline
from skep.core.day import segments
from skep.core.errors import InvitationError, SecretsError, SkepError, StorageError
from skep.core.fit import Verdict
from skep.core.manifest import parse
from skep.core.model import Device, Problem, Project
from skep.core.periods import day_of
from skep.core.settings import Value
from skep.core.snapshot import Snapshot
from skep.engine import Engine
from skep.host.practice_process import PracticeProcess
from skep.ports import Observer
from skep.summary import history, summary
from skep_gui.present.problems import Problems
from skep_gui.present.projects import PRACTICE, Known
from skep_gui.present.stats import Asked, Record, to_csv

FAREWELL: Final = 10.0
"""Seconds within which an engine that was told to quit has ended; it needs 2."""
POLITE: Final = 4.0
"""Seconds the practice swarm may take to end by itself."""


@dataclass(frozen=True)
class NoKeyring:
    """Nothing was kept: what the keyring said, and the folder where it would lie without one."""

    problem: Problem
    folder: str


class Desk:
    """Construct in any thread; nothing starts before `open`."""

    def __init__(self, home: str | None) -> None:
        """`home` is the folder asked for, None: the usual one. Raises BadInput."""
        self._home = bootstrap.home(home, os.environ)
        self._stack = contextlib.ExitStack()
        self._engine: Engine | None = None
        self._practice: PracticeProcess | None = None
        self._practice_folder: Path | None = None
        self._practice_lock = threading.Lock()
        self._stop_practice = threading.Event()
        self.updates = updating.updates(self._home)

    @property
    def folder(self) -> Path:
        return self._home.root

    def open(self, observe: Observer, notify: Callable[[Problem], None], show: Callable[[str], None]) -> None:
        """Hold the home and start the engine. Raises AlreadyRunning, and whatever keeps an engine from starting."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(bootstrap.hold(self._home))
            parts = stack.enter_context(bootstrap.build(self._home, show=show, notify=notify))
            parts.engine.observe(observe)
            parts.engine.start()
            self._engine = parts.engine
            self._stack = stack.pop_all()
        self.updates.tidy()

    def forget_settings(self) -> None:
        """Move damaged settings away, so that the next `open` has the defaults. Raises StorageError."""
        bootstrap.set_settings_aside(self._home)

    def raise_other(self, link: str = "") -> bool:
        """Ask the skep that runs already to show its window, on a link where there is one. False where it has none."""
        try:
            bootstrap.ask(self._home, {"verb": "show", "link": link})
        except SkepError:
            return False
        return True

    def post(self, command: m.Command) -> None:
        if self._engine is not None:
            self._engine.post(command)

    @property
    def snapshot(self) -> Snapshot:
        """The engine's latest; from any thread."""
        return self._engine.snapshot if self._engine is not None else Snapshot()

    def close(self) -> None:
        """Leave the swarm, end the engine and the practice swarm, let go of the home."""
        self._stop_practice.set()
        self.updates.stop()
        self.post(m.Quit())
        if self._engine is not None:
            self._engine.join(FAREWELL)
        self.end_practice()
        self._stack.close()

    # --- projects

    def known(self) -> list[Known]:
        """Every project of this home with how it fits this computer as it is now."""
        return [self._known(project) for project in bootstrap.catalogue(self._home).projects()]

    def _known(self, project: Project) -> Known:
        plan = parse(project.manifest.encode())
        problem = None
        try:
            bootstrap.check_fit(self._home, project)
        except SkepError as error:
            problem = error.problem
        fit = bootstrap.fit(self._home, plan)
        # what is too big says so itself
        estimate = bootstrap.estimate(plan)
        return Known(project, fit, None if fit.verdict is Verdict.TOO_BIG else problem, estimate)

    def add(self, source: str) -> Project:
        return bootstrap.add_project(self._home, source, consent=False)

    def prepare(self, project_id: str) -> Project:
        """The project as it may be joined now; the practice swarm is started first. Raises SkepError."""
        project = self._practice_project() if project_id == PRACTICE else self._found(project_id)
        bootstrap.check_fit(self._home, project)
        try:
            bootstrap.check_invitation(self._home, project)
        except InvitationError as error:
            raise InvitationError(
                error.title,
                "Copy this computer's identity below and send it to the publisher; accept the invitation that comes back.",
            ) from None
        except SecretsError as error:
            raise SecretsError(
                error.title,
                "The invitation to this project is looked for there: start or unlock the keyring, or accept the invitation "
                "again and keep it in a file.",
            ) from None
        return project

    def _found(self, project_id: str) -> Project:
        return bootstrap.catalogue(self._home).find(project_id)

    def accept(self, path: str, *, in_file: bool) -> str | NoKeyring:
        """Keep the invitation in a file; the title of the project it is to. What the keyring refuses needs consent."""
        try:
            return bootstrap.accept_invitation(self._home, Path(path), in_file=in_file).title
        except SecretsError as error:
            return NoKeyring(error.problem, str(self._home.secrets_folder))

    def peer_id(self) -> str:
        return bootstrap.identity(self._home).peer_id

    def devices(self) -> Sequence[Device]:
        return bootstrap.devices().list()

    # --- what may change outside skep

    def outside(self) -> dict[str, Value]:
        """Settings that somebody else may change, as they are now."""
        return {"app.start_at_login": bootstrap.autostart(self._home).is_on()}

    def lacking(self) -> dict[str, str]:
        """By key, why a setting cannot be obeyed on this computer."""
        refused = {
            "app.start_at_login": bootstrap.autostart(self._home).refused,
            "app.check_updates": self.updates.lacking,
        }
        return {key: why for key, why in refused.items() if why}

    # --- the practice swarm

    def _practice_project(self) -> Project:
        with self._practice_lock:
            if self._practice is None:
                self._stop_practice.clear()
                self._practice_folder = Path(tempfile.mkdtemp(prefix="skep-practice-"))
                self._practice = PracticeProcess(self._home.root, self._practice_folder / "run", os.environ)
                self._practice.start()
            process = self._practice
        try:
            manifest = process.manifest(self._stop_practice.is_set)
        except SkepError:
            self.end_practice()
            raise
        if manifest is None:
            self.end_practice()
            raise SkepError("The practice swarm was not started.", "It was cancelled.")
        return bootstrap.add_project(self._home, str(manifest), consent=True)

    def cancel_practice(self) -> None:
        """Give up waiting for its start. Returns at once."""
        self._stop_practice.set()

    def end_practice(self) -> None:
        with self._practice_lock:
            process, self._practice = self._practice, None
            if process is not None:
                process.end(POLITE)
            if self._practice_folder is not None:
                shutil.rmtree(self._practice_folder, ignore_errors=True)
                self._practice_folder = None

    # --- the ledger

    def record(self, asked: Asked) -> Record:
        """What the page Stats shows. Raises StorageError."""
        now, zone = bootstrap.clock().wall(), bootstrap.clock().zone()
        day = day_of(now, zone, asked.back)
        with bootstrap.ledger(self._home) as ledger:
            return Record(
                projects={project: summary(ledger, project) for project in ledger.projects()},
                whole=summary(ledger),
                asked=asked,
                past=history(ledger, asked.unit, now, zone),
                day=day,
                segments=segments(ledger.changes(*day), day[0], min(day[1], now)),
                reaction=timeline.sentence(ledger.reactions(timeline.KEPT)),
                now=now,
                zone=zone,
            )

    def export(self, path: str) -> str:
        """Write every contribution as CSV. Raises StorageError."""
        with bootstrap.ledger(self._home) as ledger:
            rows = {project: ledger.contributions(project) for project in ledger.projects()}
        try:
            Path(path).write_text(to_csv(rows), encoding="utf-8", newline="")
        except OSError as error:
            raise StorageError(
                f"{path} cannot be written: {error.strerror or error}.", "Choose another place."
            ) from None
        return path

    # --- trouble

    def diagnose(self) -> str:
        """What somebody who helps needs to know, redacted; takes some seconds."""
        return diagnosis.diagnose(self._home, self.snapshot)

    def report(self, traces: str, words: Problems) -> str:
        """Errors of skep's own as a text, redacted."""
        names = diagnosis.names(self._home)
        return words.report(traces, diagnosis.versions(), str(Path.home()), names)

    def keep(self, path: str, text: str) -> str:
        """Raises StorageError."""
        diagnosis.keep(Path(path), text)
        return path
