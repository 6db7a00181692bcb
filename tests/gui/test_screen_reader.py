"""The real app with a screen reader: the practice project is joined and paused without the mouse, and nothing crashes."""

import pytest

import screen_reader as reading
import tray_desktops
from skep_gui_process import answered, running, status

LACKS = [*tray_desktops.missing(), *reading.missing()]
pytestmark = pytest.mark.skipif(bool(LACKS), reason=f"not installed: {', '.join(LACKS)}")
JOINED = 240.0


def key(screen, *names):
    screen.xdotool("key", *names)


@pytest.fixture
def shown(home):
    """The home, the screen, a screen reader, and the app with the focus in its list of pages."""
    with (
        tray_desktops.desktop() as screen,
        reading.screen_reader(screen.environ) as reader,
        running(home, screen.environ | reading.ASKS) as app,
    ):
        screen.until(lambda: "Not in a project." in reader.names("label"))
        # a tree that changes while it is read has no answer
        screen.until(lambda: reader.focus("list", "Pages"))
        screen.until(lambda: "Pages" in reader.focused())
        yield home, screen, reader, app


@pytest.mark.timeout(500)
def test_a_screen_reader_joins_the_practice_swarm_and_pauses(shown):
    home, screen, reader, app = shown
    key(screen, "Down")
    screen.until(lambda: "Start and join: Practice swarm" in reader.names("push button"))
    screen.until(lambda: reader.press("push button", "Start and join: Practice swarm"))
    screen.until(lambda: (status(home) or {}).get("phase") == "training", JOINED)
    screen.until(lambda: "Practice swarm" in reader.names("label"))

    screen.until(lambda: focused_by_tab(reader, screen, "Pause"))

    alone = windows(screen, app)
    key(screen, "space")
    screen.until(lambda: windows(screen, app) - alone)  # the menu is open and has the focus
    # Up from the first entry selects the last
    key(screen, "Up", "Return")
    assert screen.until(lambda: answered(home)["pause"])["until"] is None
    screen.until(lambda: "Paused until you resume." in reader.names("label"))
    screen.until(lambda: "Resume" in reader.names("push button"))
    screen.until(lambda: reader.press("push button", "Resume"))
    screen.until(lambda: answered(home)["pause"] is None)


@pytest.mark.timeout(200)
def test_a_screen_reader_may_ask_for_what_is_no_longer_there(shown):
    _, screen, reader, app = shown
    for _page in range(3):
        key(screen, "Down")
        screen.until(lambda: reader.beyond() > 10)
    assert app.poll() is None


def windows(screen, app):
    return set(screen.xdotool("search", "--onlyvisible", "--pid", str(app.pid)).split())


def focused_by_tab(reader, screen, name):
    if name in reader.focused():
        return True
    key(screen, "Tab")
    return False
