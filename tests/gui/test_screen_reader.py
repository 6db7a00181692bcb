"""The real app as a screen reader meets it: the practice project is joined and paused without the mouse."""

import pytest

import screen_reader as reading
import tray_desktops
from skep_gui_process import running, status

LACKS = [*tray_desktops.missing(), *reading.missing()]
pytestmark = pytest.mark.skipif(bool(LACKS), reason=f"not installed: {', '.join(LACKS)}")
JOINED = 240.0


def key(screen, *names):
    screen.xdotool("key", *names)


@pytest.mark.timeout(500)
def test_a_screen_reader_joins_the_practice_swarm_and_pauses(home):
    with (
        tray_desktops.desktop() as screen,
        reading.screen_reader(screen.environ) as reader,
        running(home, screen.environ | reading.ASKS),
    ):
        screen.until(lambda: "Not in a project." in reader.names("label"))
        assert reader.focus("list item", "Projects") or reader.focus("list", "Pages")
        screen.until(lambda: _there(reader, screen, "Start and join: Practice swarm"))
        assert reader.press("push button", "Start and join: Practice swarm")
        screen.until(lambda: (status(home) or {}).get("phase") == "training", JOINED)
        screen.until(lambda: "Practice swarm" in reader.names("label"))

        def menu():
            reader.focus("push button", "Pause")
            key(screen, "space")
            return "Until I resume" in reader.names("menu item")

        screen.until(menu)
        # the menu has the keyboard; its last entry is one up from its first
        key(screen, "Up", "Return")
        screen.until(lambda: status(home)["pause"] is not None)
        screen.until(lambda: "Paused until you resume." in reader.names("label"))
        screen.until(lambda: "Resume" in reader.names("push button"))
        assert reader.press("push button", "Resume")
        screen.until(lambda: status(home)["pause"] is None)


def _there(reader, screen, name):
    key(screen, "Down")
    return name in reader.names("push button")
