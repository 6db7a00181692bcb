"""Takes the documents' pictures from a recorded practice run, in one process without a screen.

    python assets/screenshots.py [FOLDER]

The pages show snapshots from chosen moments of the run, and Stats its ledger. Light and dark in
English, and one page in German; at twice the size with QT_SCALE_FACTOR=2.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["TZ"] = "UTC"  # the time zone of the recording
time.tzset()

from practice_run import Moment, Run, load, restore_ledger
from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QApplication, QWidget

from skep.adapters.storage.ledger_sqlite import SqliteLedger
from skep.core.project.fit import check, estimate
from skep.core.session.phases import Phase, Stage
from skep_gui.app.controller import read_record
from skep_gui.app.interpreter import prepare
from skep_gui.app.language import Language
from skep_gui.app.main_window import MainWindow
from skep_gui.pages.first_run import FirstRun
from skep_gui.widgets import theme
from skep_gui.words.now import History
from skep_gui.words.projects import Known, titled
from skep_gui.words.speaker import Tongue, english
from skep_gui.words.stats import Asked, Record
from skep_gui.words.translation import Translation

SIZE = (960, 640)


def known(run: Run) -> list[Known]:
    """The projects as known on the recorded computer."""
    here = run.computer
    return [
        Known(
            each,
            check(each.manifest, here.devices, memory=here.memory, disk_free=here.disk_free),
            estimate=estimate(each.manifest, here.devices, cores=here.cores),
        )
        for each in here.projects
    ]


def history(run: Run, until: Moment) -> History:
    """The plots at that moment."""
    seen = History()
    for each in run.moments[: run.moments.index(until) + 1]:
        seen.see(each.snapshot, each.at)
    return seen


def record(run: Run, asked: Asked | None = None) -> Record:
    """The data of the page Stats after the run."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.sqlite"
        restore_ledger(file)
        ledger = SqliteLedger(file)
        try:
            return read_record(ledger, asked or Asked(), run.moments[-1].at, UTC)
        finally:
            ledger.close()


def chosen(run: Run) -> Mapping[str, Moment]:
    """The moments that the pictures show, by the picture's name, in order."""

    def during(phase: Phase) -> list[Moment]:
        return [each for each in run.moments if each.snapshot.phase is phase]

    training = during(Phase.TRAINING)
    joining = [each for each in during(Phase.JOINING) if each.at < training[0].at and _stage(each) is Stage.WARM_UP]
    return {
        "joining": joining[0],
        "problem": next(each for each in during(Phase.RECOVERING) if each.snapshot.problem),
        "now-paused": during(Phase.PAUSED)[-1],
        "now": [each for each in training if each.snapshot.allowance.rule == "away"][-1],
        # in the middle of an epoch
        "now-slowed": [each for each in training if each.snapshot.allowance.share < 1 and _computes(each)][-1],
        "now-idle": run.moments[-1],
    }


def _computes(moment: Moment) -> bool:
    progress = moment.snapshot.progress
    return progress is not None and progress.samples_per_second > 1 and progress.samples_accumulated > 0


def _stage(moment: Moment) -> Stage | None:
    return moment.snapshot.stage.stage if moment.snapshot.stage else None


class Studio:
    def __init__(self, folder: Path, suffix: str, tongue: Tongue, run: Run) -> None:
        self.folder, self.suffix, self.tongue, self.run = folder, suffix, tongue, run
        self.translation = Translation(tongue)
        self.moments, self.record, self.known = chosen(run), record(run), known(run)

    def window(self, name: str) -> MainWindow:
        """The window with all pages, at the moment of that name."""
        moment = self.moments[name]
        window, snapshot = MainWindow(self.translation), titled(moment.snapshot, self.tongue)
        window.resize(*SIZE)
        window.show()
        window.projects.show_projects(self.known, snapshot)
        window.settings.show_offered({"compute.device": self.translation.devices.offered(self.run.computer.devices)})
        window.stats.show_record(self.record, window.projects.titles())
        window.show_snapshot(snapshot, history(self.run, moment), moment.at)
        settle()
        return window

    def keep(self, widget: QWidget, name: str) -> None:
        settle()
        if focused := QApplication.focusWidget():
            focused.clearFocus()
        settle()
        widget.grab().save(str(self.folder / f"{name}{self.suffix}.png"))
        widget.close()
        widget.deleteLater()
        settle()

    def now(self) -> None:
        for name in ("joining", "problem", "now-paused", "now", "now-slowed"):
            self.keep(self.window(name), name)

    def stats(self) -> None:
        window = self.window("now-idle")
        window.go_to(window.stats)
        self.keep(window, "stats")

    def projects(self) -> None:
        window = self.window("now-idle")
        window.go_to(window.projects)
        self.keep(window, "projects")
        window = self.window("now-idle")
        window.go_to(window.projects)
        window.projects.open(self.known[-1].project.id)
        self.keep(window, "permissions")

    def settings(self) -> None:
        window = self.window("now-idle")
        window.go_to(window.settings)
        self.keep(window, "settings")

    def first_run(self) -> None:
        for step in range(3):
            steps = FirstRun(self.translation.devices)
            steps.show_devices(self.run.computer.devices)
            steps.show()
            for _ in range(step):
                steps.next.click()
            self.keep(steps, f"first-run-{step + 1}")


def settle() -> None:
    for _ in range(8):
        QCoreApplication.processEvents()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    prepare()
    app, run = QApplication(sys.argv[:1]), load()
    QCursor.setPos(SIZE[0] - 1, SIZE[1] - 1)  # where no widget is highlighted by it
    double = os.environ.get("QT_SCALE_FACTOR") == "2"
    end = "-200" if double else ""
    for colours, suffix in ((theme.LIGHT, ""), (theme.DARK, "-dark")):
        theme.apply(app, colours)
        studio = Studio(folder, suffix + end, english, run)
        if double:
            studio.keep(studio.window("now"), "now")
            studio.stats()
            continue
        studio.now()
        studio.stats()
        studio.projects()
        studio.settings()
        studio.first_run()
    language = Language(app)
    for colours, suffix in ((theme.LIGHT, "-de"), (theme.DARK, "-de-dark")):
        theme.apply(app, colours)
        Studio(folder, suffix + end, language.speak("de"), run).settings()


if __name__ == "__main__":
    main()
