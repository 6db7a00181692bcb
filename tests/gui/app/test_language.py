"""The language changes immediately and everywhere, and the window does not move; changes to Qt are undone."""

import subprocess
import sys
import time
from datetime import datetime

import pytest
from PySide6.QtCore import QCoreApplication, QLocale
from PySide6.QtWidgets import QLabel

import snapshots as shots
from gui_starts import remember, started, wait
from skep.adapters.storage.ledger_sqlite import SqliteLedger
from skep.core.policy.allowance import Change
from skep.core.record.contributions import Contribution, ContributionState
from skep.core.session import messages as m
from skep.core.text import Problem, Text
from skep_gui.app.language import Language

GERMANY = QLocale("de_DE")
AMERICA = QLocale("en_US")


@pytest.fixture
def language(qapp):
    before = QLocale()
    made = Language(qapp, AMERICA)
    yield made
    made.speak("en")
    QLocale.setDefault(before)


@pytest.mark.parametrize(
    ("system", "wanted", "code"),
    [(GERMANY, "system", "de"), (AMERICA, "system", "en"), (QLocale("fr_FR"), "system", "en"), (GERMANY, "en", "en")],
)
def test_system_is_the_desktops_language_where_there_are_words_for_it(qapp, language, system, wanted, code):
    made = Language(qapp, system)
    made.speak(wanted)
    assert made.code == code
    made.speak("en")


class Mixed(QLocale):
    """A desktop in English with German formats."""

    def uiLanguages(self, *_):  # noqa: N802 - Qt's name
        return ["en-GB", "en"]


def test_words_and_formats_may_be_of_two_languages(qapp, language):
    made = Language(qapp, Mixed("de_DE"))
    assert made.speak("system").numbers.figure(2.5) == "2,5"
    assert made.code == "en"


@pytest.mark.parametrize(
    ("system", "wanted", "figure", "time"),
    [
        (GERMANY, "system", "2,5", "15:30"),
        (AMERICA, "system", "2.5", "3:30\u202fPM"),
        (AMERICA, "de", "2,5", "15:30"),
        (QLocale("de_AT"), "de", "2,5", "15:30"),
        (QLocale.c(), "en", "2.5", "15:30"),
    ],
)
def test_numbers_and_times_are_those_of_the_language_and_the_country(qapp, language, system, wanted, figure, time):
    made = Language(qapp, system)
    numbers = made.speak(wanted).numbers
    assert numbers.figure(2.5) == figure
    assert numbers.time(datetime(2026, 1, 2, 15, 30)) == time  # noqa: DTZ001 - shown unchanged, without a zone
    made.speak("en")


def test_qt_speaks_it_too_and_no_more_afterwards(qapp, language):
    language.speak("de")
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "Abbrechen"
    assert QCoreApplication.translate("Tray", "Quit") == "Beenden"
    language.speak("en")
    assert QCoreApplication.translate("Tray", "Quit") == "Quit"
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "Cancel"


def test_the_tray_in_german_waits_for_nothing_that_only_the_core_needs():
    code = (
        "import sys; from PySide6.QtCore import QCoreApplication, QLocale; from skep_gui.app.language import Language; "
        "from skep_gui.words.now import Now; from skep.core.session.snapshot import Snapshot; app = QCoreApplication([]); "
        "language = Language(app, QLocale('de_DE')); print(Now(language.speak('system')).first_line(Snapshot(), 0.0)); "
        "assert 'skep_gui.words.projects' not in sys.modules"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "In keinem Projekt.\n"


# --- in the app


@pytest.fixture
def app(dressed, qtbot, home, language):
    remember(home)
    with started(dressed, qtbot, home, language=language) as running:
        yield running


def rail(window):
    return [window.rail.item(row).text() for row in range(window.rail.count())]


def test_a_change_holds_at_once_everywhere(app, qtbot, home):
    window, place = app.window, app.window.geometry()
    window.go_to(window.settings)
    window.settings.search.setText("app")
    window.settings.rows["app.language"].control.setFocus()
    app.commands.post(m.ChangeSettings({"app.language": "de"}))
    wait(qtbot, lambda: rail(window) == ["Jetzt", "Projekte", "Statistik", "Einstellungen"])
    assert app.window is window
    assert window.geometry() == place
    assert window.isVisible()
    assert window.pages.currentWidget() is window.settings
    assert window.settings.search.text() == "app"
    assert app.tray.first.text() == "In keinem Projekt."
    assert [action.text() for action in app.tray.menu.actions() if action.text()][-2:] == ["skep öffnen", "Beenden"]
    wait(qtbot, lambda: window.focusWidget() is window.settings.rows["app.language"].control)
    assert window.settings.rows["app.theme"].control.accessibleName() == "Farbschema"
    assert "de" in home.settings_file.read_text()
    app.commands.post(m.ChangeSettings({"app.language": "en"}))
    wait(qtbot, lambda: rail(window) == ["Now", "Projects", "Stats", "Settings"])
    assert app.tray.first.text() == "Not in a project."


def test_the_new_pages_are_connected(app, qtbot):
    app.commands.post(m.ChangeSettings({"app.language": "de"}))
    wait(qtbot, lambda: rail(app.window)[0] == "Jetzt")
    app.window.settings.changed.emit("compute.share_away", 0.4)
    wait(qtbot, lambda: app.snapshot.settings["compute.share_away"] == 0.4)
    app.tray.pause.actions()[3].trigger()
    wait(qtbot, lambda: app.snapshot.pause is not None)
    wait(qtbot, lambda: app.window.now.resume.isVisibleTo(app.window.now))
    app.window.now.resume.click()
    wait(qtbot, lambda: app.snapshot.pause is None)


def seen(app, language):
    """The app shows training in a swarm, slowed, and a problem."""
    settings = dict(app.snapshot.settings) | {"app.language": language}
    return shots.replace(shots.SLOWED, problem=shots.RECOVERING.problem, settings=settings)


@pytest.mark.parametrize("code", ["de", "en"])
def test_what_the_engine_said_before_changes_its_language_too(app, qtbot, code):
    other = {"de": "en", "en": "de"}[code]
    app._changed(seen(app, other))
    app._changed(seen(app, code))
    reason, hint, rule = {
        "de": (
            "20 %, während du diesen Computer nutzt.",
            "Prüfe die Internetverbindung",
            "Trainiert mit vollem Anteil.",
        ),
        "en": ("20 % while you use this computer.", "Check this computer's internet", "Training at full share."),
    }[code]
    assert app.tray.first.text() == f"Tiny code model: {reason}"
    assert app.window.now.sentence.text() == reason
    assert rule in [each.text() for each in app.window.now.rules_card.findChildren(QLabel)]
    assert app.window.strip.hint.text().startswith(hint)
    app._changed(app.controller.snapshot)


def test_what_the_ledger_kept_is_said_in_the_language_of_today(app, qtbot, home):
    now = time.time()
    ledger = SqliteLedger(home.ledger_file)
    lost = Contribution("a", 3, 512, ContributionState.LOST, Text("round.no_other_peer"), 0)
    ledger.record("practice", lost)
    ledger.record_change(Change(now - 1, "practice", 0.0, "battery", Text("rule.on_battery")))
    ledger.close()
    stats = app.window.stats
    app.window.go_to(stats)
    app.bridge.settled.emit()

    def shown():
        return [each.text() for each in stats.findChildren(QLabel)]

    wait(qtbot, lambda: {"On battery.", "No other peer: 512 samples in 1 epoch"} <= set(shown()))
    app.commands.post(m.ChangeSettings({"app.language": "de"}))
    wait(qtbot, lambda: app.window.stats is not stats)
    stats = app.window.stats
    wait(qtbot, lambda: {"Im Akkubetrieb.", "Kein anderer Peer: 512 Beispiele in 1 Epoche"} <= set(shown()))


def test_what_the_engine_tells_and_what_fails_is_said_in_it(app, qtbot, tmp_path):
    app.commands.post(m.ChangeSettings({"app.language": "de"}))
    wait(qtbot, lambda: app.language.code == "de")
    app._notified(Problem(Text("worker.training_process_ended_unexpectedly"), Text("worker.worker_log_has_details")))
    assert app.tray.told == [
        ("Der Trainingsprozess endete unerwartet.", "Einzelheiten stehen im Protokoll des Trainingsprozesses.")
    ]
    app._notified(Problem(Text("rule.on_battery"), Text("shard_cache.raise_setting", setting="disk.cache_gb")))
    assert app.tray.told[1] == ("Im Akkubetrieb.", "Erhöhe die Einstellung „Grenze des Zwischenspeichers“.")
    (tmp_path / "x.invitation").write_text("hello")
    app.projects.accept(str(tmp_path / "x.invitation"))
    wait(qtbot, lambda: app.window.projects.said.text().startswith("Die Einladung ist nicht gültig:"))
