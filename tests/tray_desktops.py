"""A private desktop for a test: an X server, a session bus, a window manager and a tray, all ended with the test."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from Xlib import X
from Xlib.display import Display

NEEDED = ("Xvfb", "dbus-daemon", "openbox", "trayer", "xdotool", "xprop")
PATIENCE = 60.0
TRAYER = ["trayer", "--edge", "bottom", "--align", "left", "--widthtype", "request", "--height", "32"]


def missing() -> list[str]:
    return [name for name in NEEDED if shutil.which(name) is None]


@dataclass
class Desktop:
    """A program started with `environ` appears on this desktop."""

    environ: dict[str, str]

    def xdotool(self, *arguments: str) -> str:
        done = subprocess.run(["xdotool", *arguments], env=self.environ, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def until(self, condition: Callable[[], object], patience: float = PATIENCE) -> object:
        """The first true value of the condition. Fails after `patience` seconds."""
        deadline = time.monotonic() + patience
        while not (found := condition()):
            assert time.monotonic() < deadline, "it did not come to that"
            time.sleep(0.1)
        return found

    def is_managed(self) -> bool:
        """Whether a window manager runs."""
        return "window id" in self._say("xprop", "-root", "_NET_SUPPORTING_WM_CHECK")

    def visible(self, name: str) -> str:
        """The id of a visible window with this class, "" if there is none."""
        return self.xdotool("search", "--onlyvisible", "--class", name).partition("\n")[0]

    def box(self, window: str) -> tuple[int, int, int, int]:
        """Left, top, width, height."""
        text = self.xdotool("getwindowgeometry", window)
        numbers = re.search(r"Position: (-?\d+),(-?\d+).*Geometry: (\d+)x(\d+)", text, re.DOTALL)
        assert numbers, text
        left, top, width, height = map(int, numbers.groups())
        return left, top, width, height

    def lies_whole(self, window: str, width: int, height: int) -> bool:
        """Whether a window and its frame are completely inside a screen of that size."""
        said = self._say("xwininfo", "-id", window) + self._say("xprop", "-id", window, "_NET_FRAME_EXTENTS")
        corner = re.search(r"Absolute upper-left X: +(-?\d+).*Absolute upper-left Y: +(-?\d+)", said, re.DOTALL)
        extent = re.search(r"Width: (\d+).*Height: (\d+)", said, re.DOTALL)
        frame = re.search(r"_NET_FRAME_EXTENTS\(CARDINAL\) = (\d+), (\d+), (\d+), (\d+)", said)
        if not (corner and extent and frame):
            return False
        (x, y), (wide, high), edges = (list(map(int, each.groups())) for each in (corner, extent, frame))
        return x >= edges[0] and y >= edges[2] and x + wide + edges[1] <= width and y + high + edges[3] <= height

    def _say(self, *command: str) -> str:
        return subprocess.run(command, env=self.environ, capture_output=True, text=True, check=False).stdout

    def picture(self, file: Path) -> list[tuple[int, object]] | None:
        """Write a picture of the screen to `file`; returns its colours."""
        connection = Display(self.environ["DISPLAY"])
        try:
            root = connection.screen().root
            size = root.get_geometry()
            raw = root.get_image(0, 0, size.width, size.height, X.ZPixmap, 0xFFFFFFFF).data
        finally:
            connection.close()
        picture = Image.frombytes("RGB", (size.width, size.height), raw, "raw", "BGRX")
        picture.save(file)
        return picture.getcolors(1 << 24)

    def click(self, x: int, y: int, button: int = 1) -> None:
        self.xdotool("mousemove", str(x), str(y), "click", str(button))


@contextlib.contextmanager
def desktop(*, tray: bool = True, size: str = "1280x800") -> Iterator[Desktop]:
    """`tray` starts an XEmbed tray, the older kind; `size` is the screen's, in pixels."""
    with contextlib.ExitStack() as stack:
        reading, writing = os.pipe()
        # without -noreset the server resets when its last client disconnects, which may be one that only reads
        command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{size}x24", "-nolisten", "tcp", "-noreset"]
        _running(stack, command, dict(os.environ), pass_fds=(writing,))
        os.close(writing)
        with os.fdopen(reading) as pipe:
            display = f":{pipe.readline().strip()}"
        environ = {**os.environ, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb"}
        environ.pop("WAYLAND_DISPLAY", None)
        bus = _running(
            stack,
            ["dbus-daemon", "--session", "--nofork", "--print-address"],
            environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        environ["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()
        stack.callback(bus.stdout.close)
        made = Desktop(environ)
        _running(stack, ["openbox"], environ)
        # a window that is mapped while the window manager is still starting may never be shown
        made.until(made.is_managed)
        if tray:
            _running(stack, TRAYER, environ)
        yield made


def _running(stack: contextlib.ExitStack, command: list[str], environ: dict[str, str], **more):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | more
    process = subprocess.Popen(command, env=environ, **quiet)
    stack.callback(_end, process)
    return process


def _end(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
