"""The real app in a real tray: opened by a click, its menu opened and a pause chosen with mouse and keys, then quit."""

import contextlib
import signal
import subprocess
import sys

import pytest

from skep import bootstrap
from skep.core.errors import NotRunning
from tray_desktops import desktop, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"not installed: {', '.join(missing())}")


@contextlib.contextmanager
def running(home, environ):
    (home.root / "window.ini").write_text("[General]\nfirst-run-done=done\n")
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-m", "skep_gui.main", "--home", str(home.root), "--hidden"],
        env=environ,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # says in which line each thread hangs
            process.wait()


def status(home):
    try:
        return bootstrap.ask(home, {"verb": "status"})["status"]
    except NotRunning:
        return None


def test_the_tray_menu_pauses_and_a_click_opens_the_window(home):
    with desktop() as screen, running(home, screen.environ) as app:
        screen.until(lambda: status(home))
        bar = screen.until(lambda: screen.visible("trayer"))
        screen.until(lambda: screen.box(bar)[2] > 8)  # the icon has arrived
        left, top, width, height = screen.box(bar)
        x, y = left + width // 2, top + height // 2
        assert status(home)["pause"] is None

        def paused():
            # a key may come before the menu has the keyboard; what is chosen twice is chosen once
            screen.xdotool("key", "Escape")
            screen.click(x, y, button=3)
            screen.xdotool(
                "sleep", "0.5", "key", "Down", "sleep", "0.3", "key", "Right", "sleep", "0.3", "key", "Return"
            )
            screen.xdotool("sleep", "0.5")
            return status(home)["pause"]

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
