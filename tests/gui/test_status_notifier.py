"""The real app in a StatusNotifierItem tray, the newer kind: its icon and menu are read, and a pause is chosen."""

import contextlib
import subprocess

import pytest

from skep_gui_process import answered, command, running, status
from tray_desktops import desktop, missing
from tray_watcher import watcher

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"not installed: {', '.join(missing())}")


@contextlib.contextmanager
def watched(home):
    with (
        desktop(tray=False) as screen,
        watcher(screen.environ["DBUS_SESSION_BUS_ADDRESS"]) as tray,
        running(home, screen.environ, "--hidden") as app,
    ):
        screen.until(lambda: tray.item)
        screen.until(lambda: status(home))
        yield screen, tray, app


def windows(screen):
    return screen.xdotool("search", "--onlyvisible", "--name", "^skep$")


def test_a_status_notifier_reads_the_menu_and_pauses(home):
    with watched(home) as (screen, tray, app):
        assert tray.property("Title") == "skep"
        assert "Not in a project." in tray.property("ToolTip")[2]
        sizes = {width for width, _, _ in tray.property("IconPixmap")}
        assert {16, 22, 32} <= sizes
        assert [*tray.entries()][1:4] == ["Pause", "For 15 minutes", "For 1 hour"]
        first = tray.entries()["Not in a project."][1]
        assert first["enabled"] is False
        assert "Resume" not in tray.entries()
        drawn = tray.property("IconPixmap")

        tray.choose("For 1 hour")
        assert screen.until(lambda: answered(home)["pause"])["until"] is not None
        screen.until(lambda: "Not in a project, and paused." in tray.entries())
        tray.choose("Resume")
        screen.until(lambda: answered(home)["pause"] is None)
        screen.until(lambda: tray.property("IconPixmap") == drawn)

        assert not windows(screen)
        tray.click()
        screen.until(lambda: windows(screen))
        tray.choose("Quit")
        assert app.wait(20) == 0


def test_a_second_start_raises_the_window_of_the_first_and_ends(home):
    with watched(home) as (screen, _tray, app):
        assert not windows(screen)
        assert subprocess.run(command(home), env=screen.environ, check=False, timeout=60).returncode == 0
        screen.until(lambda: windows(screen))
        assert len(windows(screen).split()) == 1
        assert app.poll() is None
