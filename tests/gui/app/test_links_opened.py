"""A link or a `.skep` file opens the page before joining and does not join, at the start and later."""

import contextlib

import pytest

from gui_starts import remember, started, wait
from manifests import signed
from skep import bootstrap
from skep.core.session.phases import Phase
from skep_gui.main import parser


@pytest.fixture
def start(dressed, qtbot, home):
    remember(home)
    with contextlib.ExitStack() as running:
        yield lambda link="": running.enter_context(started(dressed, qtbot, home, hidden=True, link=link))


def shows_what_it_would_use(app):
    projects = app.window.projects
    return app.window.isVisible() and projects.currentWidget() is projects.permission


def test_a_project_named_at_the_start_is_shown_and_not_joined(start, qtbot, tmp_path):
    app = start(str(signed(tmp_path)))
    wait(qtbot, lambda: shows_what_it_would_use(app))
    assert app.window.pages.currentWidget() is app.window.projects
    assert app.snapshot.phase is Phase.IDLE


def test_a_second_start_hands_its_link_to_the_first(start, qtbot, home, tmp_path):
    app = start()
    wait(qtbot, lambda: app.window is not None)
    bootstrap.ask(home, {"verb": "show", "link": signed(tmp_path).as_uri()})
    wait(qtbot, lambda: shows_what_it_would_use(app))
    assert app.snapshot.phase is Phase.IDLE


def test_a_file_without_a_link_is_refused_in_the_window(start, qtbot, tmp_path):
    file = tmp_path / "bad.skep"
    file.write_text("hello")
    app = start(str(file))
    wait(qtbot, lambda: "contains no join link" in app.window.projects.said.text())
    assert app.snapshot.phase is Phase.IDLE


def test_the_link_is_the_one_word_that_needs_no_option():
    assert parser().parse_args(["skep://join?x"]).link == "skep://join?x"
    assert not parser().parse_args([]).link
