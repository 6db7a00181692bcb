"""The app with its real engine, home, settings, ledger and control socket, without a screen and without a worker."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QThread

import snapshots as shots
from english import in_english
from manifests import signed
from skep import bootstrap
from skep.adapters.storage.ledger_sqlite import SqliteLedger
from skep.adapters.storage.settings_file import PauseFile
from skep.core.record.contributions import Contribution, ContributionState
from skep.core.session import messages as m
from skep.core.text import Problem, verbatim
from skep_gui.app import wiring
from skep_gui.app.app import App
from skep_gui.app.background import Errands
from skep_gui.app.controller import Desk
from skep_gui.app.launch import Options
from skep_gui.app.tray import Tray
from skep_gui.widgets import theme
from skep_gui.words.mark import State, look
from skep_gui.words.now import Now

SOON = 20_000


@pytest.fixture
def before():
    """What window.ini says before the app starts, beside [General]."""
    return ""


@pytest.fixture
def app(before, dressed, qtbot, home, monkeypatch, tmp_path):
    if before:
        index = "http://127.0.0.1:9/index.json"  # nobody listens there
        bootstrap.catalogue(home).add(str(signed(tmp_path, name="kept.json", data__index=index)))
        (home.root / "window.ini").write_text(f"[General]\nfirst-run-done=done\n{before}\n")
    made = App(dressed, Options(home=str(home.root)), make_tray(), lambda: wiring)
    monkeypatch.setattr(dressed, "exit", lambda code=0: ended.append(code), raising=False)
    ended = []
    made.ended = ended
    with qtbot.waitSignal(made.ready, timeout=SOON):
        made.start()
    yield made
    made.quit()
    qtbot.waitUntil(lambda: bool(ended), timeout=SOON)
    for each in (getattr(made, "first_steps", made.tray), made.window, made):
        each.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def make_tray():
    return Tray(Now(), "#6B665E")


def wait(qtbot, condition):
    qtbot.waitUntil(condition, timeout=SOON)


def test_the_first_start_shows_the_window_and_the_first_steps(app, qtbot):
    assert app.window.isVisible()
    assert app.first_steps.isVisible()
    wait(qtbot, lambda: app.first_steps.found.text() != "Looking …")
    assert app.tray.first.text() == "Not in a project."


def test_a_pause_is_kept_and_shown(app, qtbot, home):
    app.pause(None)
    wait(qtbot, lambda: app.tray.first.text() == "Not in a project, and paused.")
    assert app.tray.resume.isVisible()
    assert PauseFile(home.pause_file).load() == (True, None)
    app.tray.resume.trigger()
    wait(qtbot, lambda: app.snapshot.pause is None)


def test_a_changed_setting_holds_at_once_and_is_saved(app, qtbot, home):
    app.post(m.ChangeSettings({"compute.share_away": 0.35}))
    wait(qtbot, lambda: app.snapshot.allowance.share == 0.35)
    assert "35" in home.settings_file.read_text()
    wait(qtbot, lambda: app.window.settings._values.get("compute.share_away") == 0.35)


def test_devices_are_looked_for_when_somebody_looks_at_the_settings(app, qtbot, monkeypatch):
    monkeypatch.setattr(app.desk, "devices", lambda: shots.DEVICES)
    app.window.go_to(app.window.settings)
    chooser = app.window.settings.rows["compute.device"].control
    wait(qtbot, lambda: chooser.findText("NVIDIA GeForce RTX 4070") > 0)


def test_a_second_start_raises_the_first_ones_window(app, qtbot, home):
    app.window.close()
    assert not app.window.isVisible()
    assert bootstrap.ask(home, {"verb": "show"}) == {"ok": True}
    wait(qtbot, app.window.isVisible)


def test_other_terminals_reach_the_app(app, home):
    assert bootstrap.ask(home, {"verb": "status"})["status"]["phase"] == "idle"


def test_a_project_is_added_by_file_and_its_page_opens(app, qtbot, tmp_path):
    app.projects.add(str(signed(tmp_path)))
    page = app.window.projects
    wait(qtbot, lambda: page.currentWidget() is page.permission)
    assert page.permission.title.text() == "Tiny code model"


@pytest.mark.parametrize("before", ["active=tiny-code-lm"])
def test_a_project_that_ran_is_joined_again_and_what_fails_is_said(app, qtbot, home):
    wait(qtbot, lambda: app.snapshot.problem is not None)
    wait(qtbot, app.window.strip.isVisible)
    assert app.window.strip.title.text() == in_english(app.snapshot.problem.title)
    assert look(app.snapshot).state is State.PROBLEM
    assert "active=tiny-code-lm" in (home.root / "window.ini").read_text()  # and again at the next start


def test_a_file_that_is_no_invitation_is_refused_in_words(app, qtbot, tmp_path):
    (tmp_path / "x.invitation").write_text("hello")
    app.projects.accept(str(tmp_path / "x.invitation"))
    wait(qtbot, lambda: app.window.projects.said.property("tone") == "problem")


def test_a_file_that_is_no_manifest_is_refused_in_words(app, qtbot, tmp_path):
    path = tmp_path / "photo.json"
    path.write_bytes(b"\x89PNG\r\n")
    app.projects.add(str(path))
    wait(qtbot, lambda: app.window.projects.said.property("tone") == "problem")
    assert "photo.json" in app.window.projects.said.text()


def test_the_identity_can_be_copied(app, qtbot, dressed, home):
    app.projects.copy_identity()
    wait(qtbot, lambda: dressed.clipboard().text() == bootstrap.identity(home).peer_id)


def test_stats_are_the_ledgers(app, qtbot, home, tmp_path):
    ledger = SqliteLedger(home.ledger_file)
    ledger.record("practice", Contribution("a", 3, 512, ContributionState.CONFIRMED, peers=1))
    ledger.close()
    app.bridge.settled.emit()
    wait(qtbot, lambda: app.window.stats.record.whole.totals.confirmed.samples == 512)
    app.export(str(tmp_path / "out.csv"))
    wait(qtbot, (tmp_path / "out.csv").exists)
    assert "practice,a,3,512,confirmed" in (tmp_path / "out.csv").read_text()


def test_the_theme_follows_its_setting(app, qtbot):
    app._changed(replace(app.snapshot, settings=app.snapshot.settings | {"app.theme": "dark"}))
    assert theme.current() is theme.DARK
    app._changed(replace(app.snapshot, settings=app.snapshot.settings | {"app.theme": "light"}))
    assert theme.current() is theme.LIGHT


@pytest.mark.parametrize(("chosen", "told"), [("problems", 1), ("all", 2), ("none", 0)])
def test_notifications_are_as_chosen(app, monkeypatch, chosen, told):
    heard = []
    monkeypatch.setattr(app.tray, "tell", lambda *words: heard.append(words))
    settings = app.snapshot.settings | {"app.notifications": chosen}
    app._changed(replace(shots.JOINING, settings=settings))
    app._changed(replace(shots.TRAINING, settings=settings))
    app._notified(Problem(verbatim("The seeds do not answer.")))
    assert len(heard) == told


def test_a_home_that_is_no_folder_is_said_in_words(dressed, qtbot, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    ended = []
    monkeypatch.setattr(dressed, "exit", lambda code=0: ended.append(code), raising=False)
    app = App(dressed, Options(home=str(tmp_path / "file")), make_tray(), lambda: wiring)
    app.start()
    wait(qtbot, lambda: app.box is not None)
    assert "cannot be skep's folder" in app.box.text()
    app.box.close()
    wait(qtbot, lambda: bool(ended))


def test_errands_answer_in_qts_thread_and_a_bug_is_told(dressed, qtbot):
    errands, heard = Errands(dressed), []
    here = QThread.currentThread()
    errands.run(
        QThread.currentThread,
        lambda there: heard.append((there is here, QThread.currentThread() is here)),
        heard.append,
    )
    wait(qtbot, lambda: len(heard) == 1)
    assert heard == [(False, True)]
    errands.run(lambda: 1 / 0, heard.append, heard.append)
    wait(qtbot, lambda: len(heard) == 2)
    assert isinstance(heard[1], Problem)
    errands.close()


def test_whoever_quits_while_it_opens_ends_it_once(dressed, qtbot, home, monkeypatch):
    closed, ended, opened, close = [], [], App._opened, Desk.close

    def closes(desk):
        closed.append(desk)
        close(desk)

    def quits_first(app, answer):
        app.quit()
        opened(app, answer)

    monkeypatch.setattr(Desk, "close", closes)
    monkeypatch.setattr(App, "_opened", quits_first)
    monkeypatch.setattr(dressed, "exit", lambda code=0: ended.append(code), raising=False)
    made = App(dressed, Options(home=str(home.root)), make_tray(), lambda: wiring)
    made.start()
    wait(qtbot, lambda: bool(ended))
    qtbot.wait(200)  # a second end would come now
    assert ended == [0]
    assert len(closed) == 1
    assert made.window is None
    made.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
