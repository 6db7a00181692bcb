"""The real app in a real tray: opened by a click, its menu opened and a pause chosen with mouse and keys, then quit."""

import pytest

from skep_gui_process import answered, running, status
from tray_desktops import desktop, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"not installed: {', '.join(missing())}")


def test_the_tray_menu_pauses_and_a_click_opens_the_window(home):
    with desktop() as screen, running(home, screen.environ, "--hidden") as app:
        screen.until(lambda: status(home))
        bar = screen.until(lambda: screen.visible("trayer"))
        screen.until(lambda: screen.box(bar)[2] > 8)  # the icon is in the tray
        left, top, width, height = screen.box(bar)
        x, y = left + width // 2, top + height // 2
        assert answered(home)["pause"] is None

        def paused():
            # a key may arrive before the menu has the focus; choosing the pause twice has no further effect
            screen.xdotool("key", "Escape")
            screen.click(x, y, button=3)
            screen.xdotool(
                "sleep", "0.5", "key", "Down", "sleep", "0.3", "key", "Right", "sleep", "0.3", "key", "Return"
            )
            screen.xdotool("sleep", "0.5")
            return answered(home)["pause"]

        assert screen.until(paused)["until"] is not None

        def opened():
            screen.click(x, y)
            screen.xdotool("sleep", "0.5")
            return screen.xdotool("search", "--onlyvisible", "--name", "^skep$")

        screen.xdotool("key", "Escape")
        assert screen.until(opened)
        app.terminate()
        assert app.wait(20) == 0
    assert status(home) is None
