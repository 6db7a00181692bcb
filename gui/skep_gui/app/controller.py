"""The app's controller of one home: runs the engine, keeps the catalogue, starts the practice swarm. Without Qt.

All methods may block, so they are called from background threads, never from Qt's main thread; only `post` returns
immediately. Raises SkepError with messages for the user.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Final

from skep import bootstrap
from skep.core.device import Device
from skep.core.errors import AlreadyRunning, InvitationError, SecretsError, SettingsError, SkepError, StorageError
from skep.core.findings import Finding
from skep.core.project.fit import Verdict
from skep.core.project.manifest import VerifiedProject
from skep.core.record.timeline_segments import segments
from skep.core.record.usage import day_of
from skep.core.sandbox import Sandbox
from skep.core.session import messages as m
from skep.core.session import timeline
from skep.core.session.snapshot import Snapshot
from skep.core.settings.setting import Value
from skep.core.text import Problem, Text
from skep.engine.engine import Engine
from skep.files import os_errors, replacing
from skep.host.practice.process import PracticeProcess
from skep.ports import Ledger, Observer
from skep.services import diagnosis, joining, packs, results, updating
from skep.services.doctor.case import Case
from skep.services.doctor.examination import examine
from skep.services.protection import protection
from skep.services.summary import history, summary
from skep_gui.words.notices import Problems
from skep_gui.words.projects import PRACTICE, Known
from skep_gui.words.stats import Asked, Record, to_csv

FAREWELL: Final = 10.0
"""Timeout in seconds for the engine's end after a quit; it needs 2, unless a worker saves its state."""
LOOK: Final = 0.2
"""How often it is asked in the meantime whether the worker saves its state."""
POLITE: Final = 4.0
"""Timeout in seconds for the practice swarm to end by itself."""


@dataclass(frozen=True)
class NoKeyring:
    """Nothing was stored. Holds the keyring's error, and the folder that would hold the secret as a file."""

    problem: Problem
    folder: str


class Controller:
    """May be constructed in any thread; nothing starts before `open`."""

    def __init__(self, home: str | None) -> None:
        """`home` is the folder asked for; None: the default one. Raises BadInput."""
        self._home = bootstrap.home(home, os.environ)
        self._stack = contextlib.ExitStack()
        self._engine: Engine | None = None
        self._practice: PracticeProcess | None = None
        self._practice_folder: Path | None = None
        self._practice_lock = threading.Lock()
        self._stop_practice = threading.Event()
        self._closed = threading.Event()
        self._pack_lock = threading.Lock()
        self.updates = updating.updates(self._home)
        self.packs = packs.packs(self._home)
        self.pack_progress = packs.Progress()
        self.pack_ended: Callable[[], object] = lambda: None
        """What is told while a compute pack is fetched for a join, and at the end of that."""
        self.mended: Problem | None = None
        """What was damaged at the start, and how skep goes on."""
        self.cannot_read_settings = False
        """Whether `open` failed for that reason."""

    @property
    def folder(self) -> Path:
        return self._home.root

    def open(
        self, observe: Observer, notify: Callable[[Problem], None], show: Callable[[str], None], link: str = ""
    ) -> bool:
        """Lock the home and start the engine; False if a skep that runs here already shows its window on `link`.

        Raises AlreadyRunning if that skep has no window, and any error that prevents the engine's start.
        """
        try:
            with contextlib.ExitStack() as stack:
                mended = stack.enter_context(bootstrap.hold(self._home))
                engine = stack.enter_context(bootstrap.build(self._home, mended=mended, show=show, notify=notify))
                engine.observe(observe)
                engine.start()
                self._engine, self.mended = engine, next(iter(mended), None)
                self._stack = stack.pop_all()
        except AlreadyRunning as running:
            try:
                bootstrap.ask(self._home, {"verb": "show", "link": link})
            except SkepError:
                raise running from None
            return False
        except SettingsError:
            self.cannot_read_settings = True
            raise
        self.updates.tidy()
        self.packs.tidy()
        return True

    def forget_settings(self) -> None:
        """Move damaged settings away, so that the next `open` uses the defaults. Raises StorageError."""
        bootstrap.set_settings_aside(self._home)

    def post(self, command: m.Command) -> None:
        if self._engine is not None:
            self._engine.post(command)

    @property
    def snapshot(self) -> Snapshot:
        """The engine's latest snapshot; may be called in any thread."""
        return self._engine.snapshot if self._engine is not None else Snapshot()

    def close(self) -> None:
        """Leave the swarm, end the engine and the practice swarm, unlock the home."""
        self._closed.set()
        self.updates.stop()
        self.packs.stop()
        self.post(m.Quit())
        if self._engine is not None:
            self._await_end(self._engine)
        self.end_practice()
        self._stack.close()

    def _await_end(self, engine: Engine) -> None:
        """Wait at most FAREWELL, and as long as the worker saves its state, which the engine limits."""
        deadline = time.monotonic() + FAREWELL
        while not engine.join(LOOK) and time.monotonic() < deadline:
            if engine.snapshot.saving:
                deadline = time.monotonic() + FAREWELL

    # --- projects

    def known(self) -> list[Known]:
        """Every project of this home, with whether it fits this computer now."""
        return [self._known(project) for project in bootstrap.catalogue(self._home).projects()]

    def _known(self, project: VerifiedProject) -> Known:
        plan, problem = project.manifest, None
        try:
            joining.check_fit(self._home, project)
        except SkepError as error:
            problem = error.problem
        fit = joining.fit(self._home, plan)
        kept = results.kept(self._home, plan)
        return Known(
            project,
            fit,
            None if fit.verdict is Verdict.TOO_BIG else problem,  # which has its own message
            joining.estimate(self._home, plan),
            kept=kept is not None,
            finished=kept is not None and kept.last,
        )

    def protection(self) -> Sandbox | None:
        """What this system keeps the training process from; None if that could not be tried."""
        return protection()

    def add(self, source: str) -> VerifiedProject:
        return bootstrap.catalogue(self._home).add(source)

    def prepare(self, project_id: str) -> VerifiedProject:
        """The project ready to be joined; a practice swarm is started first, unless that was cancelled. Raises SkepError."""
        self.ready_pack()
        if project_id != PRACTICE:
            return self._checked(bootstrap.catalogue(self._home).find(project_id))
        try:
            return self._checked(self._practice_project())
        except BaseException:
            self.end_practice()  # it computes
            raise

    def _checked(self, project: VerifiedProject) -> VerifiedProject:
        """The project, if this computer may join it. Raises SkepError."""
        joining.check_fit(self._home, project)
        try:
            joining.check_invitation(self._home, project)
        except InvitationError as error:
            raise InvitationError(error.title, Text("app.copy_computer_identity_below_send")) from None
        except SecretsError as error:
            raise SecretsError(error.title, Text("app.invitation_project_looked_there_start")) from None
        return project

    def ready_pack(self) -> None:
        """Fetch a compute pack if there is none, or if a new driver broke it. Raises SkepError.

        A second call waits for the first one: at the start a project is resumed while the pack is tried.
        """
        with self._pack_lock:
            if self.packs.own_stack or not self.packs.check():
                return
            try:
                if self.packs.fetch(self.pack_progress) is None:
                    raise SkepError(Text("app.pack_not_fetched"), Text("app.was_cancelled"))
            finally:
                self.pack_ended()

    def accept(self, path: str, *, in_file: bool) -> str | NoKeyring:
        """Store the invitation; returns its project's title. If the keyring refuses, storing it as a file needs
        consent.
        """
        try:
            hint = Text("joining.add_project_first")
            return joining.accept_invitation(self._home, Path(path), hint, in_file=in_file)[0].title
        except SecretsError as error:
            return NoKeyring(error.problem, str(self._home.secrets_folder))

    def peer_id(self) -> str:
        return bootstrap.identity(self._home).peer_id

    def devices(self) -> Sequence[Device]:
        return bootstrap.devices().list()

    # --- settings kept outside skep

    def outside(self) -> dict[str, Value]:
        """The current values of settings that other programs may change."""
        return {"app.start_at_login": bootstrap.autostart(self._home).is_on()}

    def lacking(self) -> dict[str, Text]:
        """By key, why a setting has no effect on this computer."""
        refused = {
            "app.start_at_login": bootstrap.autostart(self._home).refused,
            "app.check_updates": self.updates.lacking,
        }
        return {key: why for key, why in refused.items() if why}

    # --- the practice swarm

    def _practice_project(self) -> VerifiedProject:
        with self._practice_lock:
            if self._practice is None and not self._is_cancelled():
                pack = bootstrap.pack(self._home)
                self._practice_folder = Path(tempfile.mkdtemp(prefix="skep-practice-"))
                self._practice = PracticeProcess(self._home.root, self._practice_folder / "run", os.environ, pack)
                self._practice.start()
            process = self._practice
        manifest = process.manifest(self._is_cancelled) if process is not None else None
        if manifest is None:
            raise SkepError(Text("app.practice_swarm_was_not_started"), Text("app.was_cancelled"))
        return bootstrap.catalogue(self._home).add(str(manifest), consent=True)

    def _is_cancelled(self) -> bool:
        return self._stop_practice.is_set() or self._closed.is_set()

    def may_practise(self) -> None:
        """Forget an earlier `cancel_practice`. Returns immediately."""
        self._stop_practice.clear()

    def cancel_practice(self) -> None:
        """Cancel its start, and the wait for it. Returns immediately."""
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
        """The data of the page Stats. Raises StorageError."""
        with bootstrap.ledger(self._home) as ledger:
            return read_record(ledger, asked, bootstrap.clock().wall(), bootstrap.clock().zone())

    def export(self, path: str) -> str:
        """Write every contribution as CSV. Raises StorageError."""
        with bootstrap.ledger(self._home) as ledger:
            rows = {project: ledger.contributions(project) for project in ledger.projects()}
        return self.keep(path, to_csv(rows))

    def keep_result(self, project_id: str, path: str) -> str:
        """Copy this computer's own state of a project's run to `path`, for its user only. Raises SkepError."""
        kept = results.kept(self._home, bootstrap.catalogue(self._home).find(project_id).manifest)
        if kept is None:
            raise StorageError(Text("app.no_state_kept"), Text("app.result_elsewhere"))
        failed = os_errors(Text("app.cannot_written", path=path), Text("app.choose_another_place"))
        with failed, replacing(Path(path)) as copy:
            shutil.copyfile(kept.path, copy)
        return path

    # --- errors and diagnostics

    def diagnose(self) -> str:
        """The diagnostic report, redacted; takes some seconds."""
        return diagnosis.diagnose(self._home, self.snapshot)

    def examine(self, project_id: str, stopped: Callable[[], bool]) -> Iterator[Finding]:
        """The connection doctor's findings as they come, in about half a minute; "" for this computer only."""
        project = bootstrap.catalogue(self._home).find(project_id) if project_id else None
        pack = None
        with contextlib.suppress(SkepError):
            pack = bootstrap.pack(self._home)
        yield from examine(Case(self._home, project, snapshot=self.snapshot, pack=pack), stopped=stopped)

    def report(self, traces: str, words: Problems) -> str:
        """Errors in skep itself as a text, redacted."""
        return words.report(traces, diagnosis.versions(), str(Path.home()), diagnosis.names(self._home))

    def keep(self, path: str, text: str) -> str:
        """Raises StorageError."""
        diagnosis.keep(Path(path), text)
        return path


def read_record(ledger: Ledger, asked: Asked, now: float, zone: tzinfo) -> Record:
    """The data of the page Stats from a ledger at `now`, wall clock seconds. Raises StorageError."""
    day = day_of(now, zone, asked.back)
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
