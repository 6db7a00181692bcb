"""Takes the pictures of every page, light and dark, in one process without a screen.

    python assets/screenshots.py [FOLDER]

Each is the real page with a made-up snapshot, so that the pictures are the same everywhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(ROOT / "tests"))

from PySide6.QtCore import QCoreApplication  # noqa: E402 - after the platform was chosen
from PySide6.QtGui import QPixmap  # noqa: E402
from PySide6.QtWidgets import QApplication, QWidget  # noqa: E402

import snapshots as shots  # noqa: E402 - found by the path above
from skep.core.model import Problem  # noqa: E402
from skep.core.snapshot import Snapshot  # noqa: E402
from skep_gui import theme  # noqa: E402
from skep_gui.first_run import FirstRun  # noqa: E402
from skep_gui.history import History  # noqa: E402
from skep_gui.kept_singletons import keep_singletons  # noqa: E402
from skep_gui.keyring_consent import KeyringConsent  # noqa: E402
from skep_gui.language import Language  # noqa: E402
from skep_gui.main_window import MainWindow  # noqa: E402
from skep_gui.present.hearing import heard  # noqa: E402
from skep_gui.present.speaker import Tongue, english  # noqa: E402
from skep_gui.present.stats import Record  # noqa: E402
from skep_gui.text_dialog import TextDialog  # noqa: E402
from skep_gui.voice import Voice  # noqa: E402
from skep_gui.wiring import pages  # noqa: E402


def settle() -> None:
    for _ in range(8):
        QCoreApplication.processEvents()


class Studio:
    def __init__(self, folder: Path, suffix: str, tongue: Tongue, size: tuple[int, int] = (960, 640)) -> None:
        self.folder, self.suffix, self.size = folder, suffix, size
        self.tongue = tongue
        self.voice = Voice.of(tongue)

    def window(self, snapshot: Snapshot, history: History | None = None) -> MainWindow:
        window, snapshot = pages(self.voice), heard(snapshot, self.tongue)
        window.resize(*self.size)
        window.show()
        window.projects.show_projects(shots.KNOWN, snapshot)
        window.settings.show_offered({"compute.device": self.voice.devices.offered(shots.DEVICES)})
        window.stats.show_record(shots.record(), window.projects.titles() | {"practice": "Practice swarm"})
        window.show_snapshot(snapshot, history or History(), shots.NOW)
        settle()
        return window

    def keep(self, widget: QWidget, name: str) -> None:
        settle()
        picture: QPixmap = widget.grab()
        picture.save(str(self.folder / f"{name}{self.suffix}.png"))
        widget.close()
        widget.deleteLater()
        settle()

    def take(self, name: str, snapshot: Snapshot, prepare: Callable[[MainWindow], None] | None = None) -> None:
        window = self.window(snapshot, shots.history() if snapshot.progress else None)
        if prepare is not None:
            prepare(window)
        self.keep(window, name)

    def all(self) -> None:
        for name, snapshot in (
            ("now", shots.TRAINING),
            ("now-slowed", shots.SLOWED),
            ("now-paused", shots.PAUSED),
            ("now-idle", shots.IDLE),
            ("joining", shots.JOINING),
            ("problem", shots.RECOVERING),
            ("leaving", shots.LEAVING),
        ):
            self.take(name, snapshot)
        self.take("now-whole", shots.SLOWED, lambda window: window.resize(960, 1080))
        self.take("projects", shots.IDLE, lambda window: window.go_to(window.projects))
        self.take("projects-training", shots.TRAINING, lambda window: window.go_to(window.projects))
        self.take("permissions", shots.IDLE, _permissions)
        self.take("stats", shots.TRAINING, lambda window: window.go_to(window.stats))
        self.take("stats-whole", shots.TRAINING, _whole_stats)
        self.take("stats-empty", shots.IDLE, _empty_stats)
        self.take("settings", shots.IDLE, lambda window: window.go_to(window.settings))
        self.take("settings-search", shots.IDLE, _search)
        self.take("rule-tester", shots.TRAINING, _imagine)
        self.take(
            "update", shots.TRAINING, lambda window: window.news.show_update(self.voice.updates.view(shots.UPDATE))
        )
        self.consent()
        for step in range(3):
            self.first_run(step)
        self.diagnostics()

    def diagnostics(self) -> None:
        dialog = TextDialog("Diagnostics", shots.DIAGNOSTICS_EXPLAINED, "skep-diagnostics.txt")
        dialog.show_text(shots.DIAGNOSTICS)
        dialog.show()
        self.keep(dialog, "diagnostics")

    def consent(self) -> None:
        problem = Problem("There is no keyring on this computer that skep can use.")
        asked = KeyringConsent(self.tongue.problem(problem), "/home/you/.local/share/skep/secrets")
        asked.show()
        self.keep(asked, "keyring-consent")

    def first_run(self, step: int) -> None:
        steps = FirstRun(self.voice.devices)
        steps.show_devices(shots.DEVICES)
        steps.show()
        for _ in range(step):
            steps.next.click()
        self.keep(steps, f"first-run-{step + 1}")


def _permissions(window: MainWindow) -> None:
    window.go_to(window.projects)
    window.projects.open("tiny-code-lm")


def _whole_stats(window: MainWindow) -> None:
    window.go_to(window.stats)
    window.resize(960, 1250)


def _empty_stats(window: MainWindow) -> None:
    window.stats.show_record(Record(), {})
    window.go_to(window.stats)


def _imagine(window: MainWindow) -> None:
    window.go_to(window.settings)
    window.resize(960, 760)
    settle()
    window.settings.tester.choose(("input", "metered"))
    settle()
    window.settings.what_if.click()


def _search(window: MainWindow) -> None:
    window.go_to(window.settings)
    window.settings.search.setText("share")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "assets" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    keep_singletons()
    app = QApplication(sys.argv[:1])
    double = os.environ.get("QT_SCALE_FACTOR") == "2"
    for colours, suffix in ((theme.LIGHT, ""), (theme.DARK, "-dark")):
        theme.apply(app, colours)
        studio = Studio(folder, suffix + ("-200" if double else ""), english)
        if double:
            studio.take("now", shots.TRAINING)
            studio.take("stats", shots.TRAINING, lambda window: window.go_to(window.stats))
        else:
            studio.all()
    language = Language(app)
    for colours, suffix in ((theme.LIGHT, "-de"), (theme.DARK, "-de-dark")):
        theme.apply(app, colours)
        studio = Studio(folder, suffix + ("-200" if double else ""), language.speak("de"))
        if double:
            studio.take("settings", shots.IDLE, lambda window: window.go_to(window.settings))
        else:
            studio.all()


if __name__ == "__main__":
    main()
