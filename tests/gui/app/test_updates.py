"""An update in the app: found automatically, installed by a click, cancelled, undone; and its texts."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

import snapshots as shots
from english import in_english
from gui_starts import remember, started, wait
from skep.core.policy.conditions import Condition, answered
from skep.core.text import Problem, verbatim
from skep_gui.app import updates
from skep_gui.app.background import Background
from skep_gui.app.updates import Updating, may_look
from skep_gui.words.notices import Update, UpdateStage, UpdateWords
from update_server import lay_app, pack, starts, update_server

WORDS = UpdateWords()


@pytest.fixture
def unpacked(tmp_path):
    return lay_app(tmp_path / "unpacked", "0.1.0")


@pytest.fixture
def server(tmp_path):
    with update_server(tmp_path) as serving:
        yield serving


@pytest.fixture
def app(dressed, qtbot, home, server, unpacked):
    """The app with its window open, from a portable folder whose repository has 0.2.0."""
    remember(home)
    server.publish(pack(server.folder.parent, "0.2.0", ballast=50))
    with started(dressed, qtbot, home) as running:
        running.controller.updates = server.updates(home, unpacked, "0.1.0")
        running.lacking = {}
        running.show_update()
        yield running


def stage(app, qtbot, wanted):
    wait(qtbot, lambda: app.updating.update.stage is wanted)
    return app.window.news


def test_it_is_found_by_itself_and_installed_by_a_click_only(app, qtbot, unpacked):
    app.updating.timer.setInterval(0)
    news = stage(app, qtbot, UpdateStage.FOUND)
    assert news.isVisible()
    assert news.title.text() == "skep 0.2.0 can be installed."
    assert starts(unpacked) == "skep 0.1.0"
    assert app.updating.timer.interval() == updates.HOURLY
    seen = []
    app.updating.changed.connect(lambda update: seen.append(update.stage))
    news.act_button.click()
    stage(app, qtbot, UpdateStage.INSTALLED)
    assert seen[0] is UpdateStage.FETCHING
    assert UpdateStage.UNPACKING in seen
    assert news.act_button.text() == "Start it now"
    assert starts(unpacked) == "skep 0.2.0"
    news.close_button.click()
    assert not news.isVisible()


def test_the_one_before_is_a_click_away(app, qtbot, unpacked):
    settings = app.window.settings
    assert not settings.older.isVisibleTo(settings)
    settings.newer.click()
    stage(app, qtbot, UpdateStage.FOUND).act_button.click()
    stage(app, qtbot, UpdateStage.INSTALLED)
    assert settings.older.text() == "Go back to skep 0.1.0"
    settings.older.click()
    news = stage(app, qtbot, UpdateStage.WENT_BACK)
    assert news.title.text() == "skep 0.1.0 is used again."
    assert starts(unpacked) == "skep 0.1.0"


def test_starting_it_now_ends_this_one_first(app, qtbot, monkeypatch):
    begun = []
    monkeypatch.setattr("skep_gui.app.app.QProcess.startDetached", lambda *command: begun.append(command))
    app.updating.restart_wanted.emit()
    wait(qtbot, lambda: app.endings)
    ((program, arguments),) = begun
    assert program
    assert arguments[-2:] == ["--home", str(app.controller.folder)]


def test_whoever_asks_is_told_that_there_is_nothing_or_why_not(app, qtbot, server):
    (server.folder / "metadata" / "timestamp.json").unlink()
    app.window.settings.newer.click()
    news = stage(app, qtbot, UpdateStage.FAILED)
    assert "cannot be reached" in news.title.text()
    assert not news.act_button.isVisibleTo(news)
    server.publish("--renew")
    app.controller.updates = server.updates(
        app.controller._home, lay_app(server.folder.parent / "new", "0.9.0"), "0.9.0"
    )
    app.window.settings.newer.click()
    assert stage(app, qtbot, UpdateStage.NEWEST).title.text() == "skep 0.9.0 is the newest."


class Failing(Background):
    """Records the problems of its work."""

    def __init__(self, parent):
        super().__init__(parent)
        self.problems = []

    def run(self, work, done, failed=lambda _: None, **lane):
        super().run(work, done, lambda problem: (failed(problem), self.problems.append(problem)), **lane)


def test_unasked_it_bothers_nobody_with_a_server_that_is_silent(dressed, qtbot, home, server, unpacked):
    server.publish(pack(server.folder.parent, "0.2.0"))
    (server.folder / "metadata" / "timestamp.json").unlink()
    background = Failing(dressed)
    made = Updating(background, lambda: shots.IDLE, dressed)
    made.start(SimpleNamespace(updates=server.updates(home, unpacked, "0.1.0")))
    made.timer.setInterval(0)
    wait(qtbot, lambda: background.problems)
    made.end()
    background.close()
    assert "cannot be reached" in in_english(background.problems[0].title)
    assert made.update.stage is UpdateStage.NONE


@pytest.mark.parametrize("seen", [UpdateStage.NEWEST, UpdateStage.FAILED])
def test_what_was_told_of_an_earlier_look_does_not_keep_it_from_looking_by_itself(app, qtbot, seen):
    app.updating._show(Update(seen, problem=Problem(verbatim("The server is silent."))))
    app.updating.timer.setInterval(0)
    stage(app, qtbot, UpdateStage.FOUND)


def test_without_a_place_for_updates_the_button_says_why(dressed, qtbot, home):
    remember(home)
    with started(dressed, qtbot, home) as running:
        running.open()
        settings = running.window.settings
        assert not settings.newer.isEnabled()
        assert "the way it was installed" in settings.newer.accessibleDescription()
        settings._build()
        assert not settings.rows["app.check_updates"].control.isEnabled()


def test_an_installation_is_cancelled_at_once(dressed, qtbot):
    """The background thread stops at its next piece."""
    pieces = []

    def install(_release, fetched, _unpacked):
        while fetched(len(pieces) % 100, 100):
            pieces.append(1)
        return False

    parent = dressed
    background = Background(parent)
    try:
        made = Updating(background, lambda: shots.IDLE, parent)
        made.controller = SimpleNamespace(updates=SimpleNamespace(install=install))
        made._tell(SimpleNamespace(release=SimpleNamespace(version="0.2.0", notes=""), installs=True))
        made.act()
        wait(qtbot, lambda: pieces and made.update.part > 0)
        made.close()
        wait(qtbot, lambda: made.update == Update())
    finally:
        background.close()


def test_it_looks_by_itself_only_where_that_is_wanted():
    wanted = {"app.check_updates": True, "network.metered_pause": True}
    usual = replace(shots.IDLE, settings=wanted)
    metered = replace(usual, conditions=usual.conditions.with_seen({Condition.METERED: answered(value=True)}))
    assert may_look(usual)
    assert not may_look(replace(usual, settings=wanted | {"app.check_updates": False}))
    assert not may_look(metered)
    assert may_look(replace(metered, settings=wanted | {"network.metered_pause": False}))


def test_each_stage_has_its_words():
    assert WORDS.view(Update()) is None
    found = WORDS.view(Update(UpdateStage.FOUND, "0.2.0", "Joins faster."))
    assert (found.hint, found.action, found.close) == ("Joins faster.", "Install", "Later")
    told = WORDS.view(Update(UpdateStage.TOLD, "0.2.0"))
    assert (told.action, told.close) == ("", "Close")
    assert "system" in told.hint
    fetching = WORDS.view(Update(UpdateStage.FETCHING, "0.2.0", part=0.42, size=300_000_000))
    assert fetching.title == "Downloading skep 0.2.0"
    assert fetching.hint == "42\u2009% · 300.0\u2009MB"
    assert (fetching.action, fetching.close, fetching.part) == ("", "Cancel", 0.42)
    assert WORDS.view(Update(UpdateStage.UNPACKING, "0.2.0")).title == "Installing skep 0.2.0"
    failed = WORDS.view(Update(UpdateStage.FAILED, problem=Problem(verbatim("It failed."), verbatim("Try again."))))
    assert (failed.title, failed.hint) == ("It failed.", "Try again.")
