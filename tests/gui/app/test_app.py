"""The app with its real engine, home, settings, ledger and control socket, without a screen and without a worker."""

import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QThread
from PySide6.QtWidgets import QFileDialog, QPushButton

import snapshots as shots
from english import in_english
from gui_starts import remember, started, wait
from manifests import signed
from skep import bootstrap
from skep.adapters.storage.ledger_sqlite import SqliteLedger
from skep.adapters.storage.settings_file import PauseFile
from skep.core.record.contributions import Contribution, ContributionState
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.text import Problem, verbatim
from skep_gui.app import controller
from skep_gui.app.app import App
from skep_gui.app.background import Background, Commands
from skep_gui.pages.projects_page import ProjectCard
from skep_gui.widgets import theme
from skep_gui.words.mark import State, look


@pytest.fixture
def before():
    """The contents of window.ini before the app starts, in addition to [General]."""
    return ""


@pytest.fixture
def app(before, dressed, qtbot, home, tmp_path):
    if before:
        index = "http://127.0.0.1:9/index.json"  # no server listens there
        bootstrap.catalogue(home).add(str(signed(tmp_path, name="kept.json", data__index=index)))
        remember(home, before)
    with started(dressed, qtbot, home) as running:
        yield running


def test_the_first_start_shows_the_window_and_the_first_steps(app, qtbot):
    assert app.window.isVisible()
    assert app.first_steps.isVisible()
    wait(qtbot, lambda: app.first_steps.found.text() != "Looking …")
    assert app.tray.first.text() == "Not in a project."


def test_a_pause_is_kept_and_shown(app, qtbot, home):
    app.commands.pause(None)
    wait(qtbot, lambda: app.tray.first.text() == "Not in a project, and paused.")
    assert app.tray.resume.isVisible()
    assert PauseFile(home.pause_file).load() == (True, None)
    app.tray.resume.trigger()
    wait(qtbot, lambda: app.snapshot.pause is None)


def test_a_changed_setting_holds_at_once_and_is_saved(app, qtbot, home):
    app.commands.post(m.ChangeSettings({"compute.share_away": 0.35}))
    wait(qtbot, lambda: app.snapshot.allowance.share == 0.35)
    assert "35" in home.settings_file.read_text()
    wait(qtbot, lambda: app.window.settings._values.get("compute.share_away") == 0.35)


def test_devices_are_looked_for_when_somebody_looks_at_the_settings(app, qtbot):
    found = app.translation.devices.offered(bootstrap.devices().list())
    app.window.go_to(app.window.settings)
    chooser = app.window.settings.rows["compute.device"].control
    wait(qtbot, lambda: chooser.count() > 1)
    assert tuple((chooser.itemData(row), chooser.itemText(row)) for row in range(1, chooser.count())) == found


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
def test_a_project_that_ran_is_joined_again_and_what_fails_is_said_and_tried_again(app, qtbot, home):
    wait(qtbot, lambda: app.snapshot.phase is Phase.RECOVERING)
    wait(qtbot, app.window.strip.isVisible)
    assert app.window.strip.title.text() == in_english(app.snapshot.problem.title)
    wait(qtbot, lambda: look(app.snapshot).state is State.PROBLEM)
    wait(qtbot, lambda: app.snapshot.failures > 1)
    assert app.window.now.checklist.isVisible()
    assert "active=tiny-code-lm" in (home.root / "window.ini").read_text()  # it joins again at the next start


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
    app.lookups.export(str(tmp_path / "out.csv"))
    wait(qtbot, (tmp_path / "out.csv").exists)
    assert "practice,a,3,512,confirmed" in (tmp_path / "out.csv").read_text()
    assert (tmp_path / "out.csv").stat().st_mode & 0o077 == 0


def finished(app, qtbot, home, monkeypatch):
    """The app after a run, which takes minutes to its end in a real swarm; returns the folder of what is kept of it."""
    run = bootstrap.catalogue(home).find("tiny-code-lm")
    over = replace(app.controller.snapshot, last_project=run, finished=verbatim("Tiny is finished."))
    leaving = replace(over, phase=Phase.LEAVING, project=run, last_project=None)
    monkeypatch.setattr(type(app.controller), "snapshot", over)
    app._changed(leaving)
    app._changed(over)
    wait(qtbot, lambda: not app.projects._reading)
    return home.snapshots_folder / run.run_id


def keep(folder, *epochs):
    folder.mkdir(parents=True, exist_ok=True)
    for epoch in epochs:
        (folder / f"epoch-{epoch:08d}.safetensors").write_text(f"of epoch {epoch}")


@pytest.fixture
def places(monkeypatch, tmp_path):
    """What a person chooses in the system's dialog: nothing, a new file, a folder that is missing."""
    chosen = iter(["", str(tmp_path / "model.safetensors"), str(tmp_path / "no" / "x")])
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (next(chosen), ""))


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize("before", ["shown=true"])
def test_the_model_of_a_finished_run_is_saved_where_the_person_says(app, qtbot, home, tmp_path, monkeypatch):
    now = app.window.now
    kept = finished(app, qtbot, home, monkeypatch)
    assert not now.save_result.isVisible()  # nothing is kept
    keep(kept, 9, 10)
    finished(app, qtbot, home, monkeypatch)
    wait(qtbot, now.save_result.isVisible)
    now.save_result.click()
    now.save_result.click()
    wait(qtbot, lambda: "Written to" in app.window.said.text())
    assert (tmp_path / "model.safetensors").read_text() == "of epoch 10"
    now.save_result.click()
    wait(qtbot, lambda: "cannot be written" in app.window.said.text())
    for path in kept.iterdir():
        path.unlink()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "gone"), ""))
    now.save_result.click()
    wait(qtbot, lambda: "has kept no model" in app.window.said.text())


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize("before", ["shown=true"])
@pytest.mark.parametrize(("epoch", "over"), [(1999, False), (2000, True)])
def test_after_a_restart_the_page_projects_says_which_run_is_finished_and_saves_its_model(
    app, qtbot, home, tmp_path, epoch, over
):
    run = bootstrap.catalogue(home).find("tiny-code-lm")
    assert run.manifest.schedule.total_epochs == 2000
    keep(home.snapshots_folder / run.run_id, epoch)
    app.window.go_to_projects()
    app.projects.refresh()
    wait(qtbot, lambda: not app.projects._reading)
    assert app.snapshot.phase is Phase.IDLE  # no worker is started for this
    page = app.window.projects.list
    said = [card.over.text() for card in page.findChildren(ProjectCard)]
    buttons = {each.text(): each for each in page.findChildren(QPushButton)}
    sentence = "The run is finished. Its model is on this computer."
    assert (sentence in said, "Save the model …" in buttons) == (over, over)
    if over:
        buttons["Save the model …"].click()
        buttons["Save the model …"].click()
        wait(qtbot, (tmp_path / "model.safetensors").exists)
        wait(qtbot, lambda: "Written to" in app.window.said.text())


@pytest.mark.parametrize("before", ["shown=true"])
def test_a_model_that_is_kept_while_the_projects_are_read_is_shown_too(app, qtbot, home, monkeypatch):
    wait(qtbot, lambda: not app.projects._reading)
    run, known = bootstrap.catalogue(home).find("tiny-code-lm"), app.controller.known
    read, go_on = threading.Event(), threading.Event()

    def slowly():
        found = known()
        read.set()
        assert go_on.wait(20)
        return found

    monkeypatch.setattr(app.controller, "known", slowly)
    app.projects.refresh()
    wait(qtbot, read.is_set)
    keep(home.snapshots_folder / run.run_id, 2000)
    app.projects.refresh()
    go_on.set()
    page = app.window.projects.list
    wait(qtbot, lambda: any("finished" in card.over.text() for card in page.findChildren(ProjectCard)))


def test_quitting_waits_as_long_as_the_model_is_saved(monkeypatch):
    monkeypatch.setattr(controller, "FAREWELL", 0.3)
    asked = []

    def join(timeout):
        asked.append(timeout)
        return len(asked) > 10  # ten times LOOK is longer than FAREWELL

    def waits(*, saving):
        asked.clear()
        engine = SimpleNamespace(join=lambda timeout: time.sleep(timeout) or join(timeout), snapshot=shots.LEAVING)
        engine.snapshot = replace(shots.LEAVING, saving=saving)
        controller.Controller._await_end(None, engine)
        return len(asked) > 10

    assert waits(saving=True)
    assert not waits(saving=False)


@pytest.mark.parametrize("saving", [True, False])
def test_a_second_quit_does_not_wait_for_a_model_that_is_saved(app, qtbot, saving):
    told = []
    commands = Commands(app.background)
    commands.open(told.append)
    commands.close()
    commands.insist(replace(shots.LEAVING, saving=saving))
    app.background.run(lambda: None, lambda _: told.append("next"))
    wait(qtbot, lambda: "next" in told)
    assert told == ([m.Quit(), "next"] if saving else ["next"])


def test_the_theme_follows_its_setting(app, qtbot):
    app._changed(replace(app.snapshot, settings=app.snapshot.settings | {"app.theme": "dark"}))
    assert theme.current() is theme.DARK
    app._changed(replace(app.snapshot, settings=app.snapshot.settings | {"app.theme": "light"}))
    assert theme.current() is theme.LIGHT


@pytest.mark.parametrize(("chosen", "told"), [("problems", 1), ("all", 2), ("none", 0)])
def test_notifications_are_as_chosen(app, chosen, told):
    settings = app.snapshot.settings | {"app.notifications": chosen}
    app._changed(replace(shots.JOINING, settings=settings))
    app._changed(replace(shots.TRAINING, settings=settings))
    app._notified(Problem(verbatim("The seeds do not answer.")))
    assert len(app.tray.told) == told


def test_a_home_that_is_no_folder_is_said_in_words(dressed, qtbot, tmp_path):
    (tmp_path / "file").write_text("")
    with started(dressed, qtbot, SimpleNamespace(root=tmp_path / "file"), ready=False) as app:
        wait(qtbot, lambda: app.box is not None)
        assert "cannot be used as the home" in app.box.text()
        app.box.close()
        wait(qtbot, lambda: app.endings)


def test_the_background_answers_in_qts_thread_and_a_bug_is_told(dressed, qtbot):
    background, heard = Background(dressed), []
    here = QThread.currentThread()
    background.run(
        QThread.currentThread,
        lambda there: heard.append((there is here, QThread.currentThread() is here)),
        heard.append,
    )
    wait(qtbot, lambda: len(heard) == 1)
    assert heard == [(False, True)]
    background.run(lambda: 1 / 0, heard.append, heard.append)
    wait(qtbot, lambda: len(heard) == 2)
    assert isinstance(heard[1], Problem)
    background.close()


class PausedFirst(App):
    def _opened(self, controller):
        self.tray.pause_chosen.emit(None)
        super()._opened(controller)


def test_a_pause_that_is_chosen_while_it_opens_holds(dressed, qtbot, home):
    with started(dressed, qtbot, home, kind=PausedFirst) as app:
        wait(qtbot, lambda: app.snapshot.pause is not None)
        wait(qtbot, lambda: app.tray.first.text() == "Not in a project, and paused.")


class QuitsFirst(App):
    def _opened(self, controller):
        self.quit()
        super()._opened(controller)


def test_whoever_quits_while_it_opens_ends_it_once(dressed, qtbot, home):
    with started(dressed, qtbot, home, kind=QuitsFirst, ready=False) as app:
        wait(qtbot, lambda: app.endings)
        qtbot.wait(200)  # a second `ended` would arrive in this time
        assert app.endings == [True]
        assert app.window is None
