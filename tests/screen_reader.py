"""A screen reader on a desktop's accessibility bus, by AT-SPI, which only the system's Python has."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SYSTEM_PYTHON = "/usr/bin/python3"
LAUNCHER = "/usr/libexec/at-spi-bus-launcher"
CHILD = Path(__file__).with_name("screen_reader_child.py")
ASKS = {"QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1"}
"""Without it Qt waits until the desktop reports a screen reader."""
IMPORTS = "import gi; gi.require_version('Atspi', '2.0'); from gi.repository import Atspi"


def missing() -> list[str]:
    found = [] if Path(LAUNCHER).exists() else ["at-spi2-core"]
    if subprocess.run([SYSTEM_PYTHON, "-c", IMPORTS], check=False, capture_output=True).returncode:
        found.append("python3-pyatspi")
    return found


class ScreenReader:
    """Each method reads the tree again; None or [] while the application does not run. The role "" means any."""

    def __init__(self, process: subprocess.Popen[str], application: str) -> None:
        self._process, self._application = process, application

    def tree(self) -> list[dict[str, Any]]:
        """The visible objects: role, name, description, states and actions."""
        return self._ask({"do": "tree"}) or []

    def names(self, *roles: str) -> list[str]:
        """The names of all visible objects, or of those with these roles."""
        return [each["name"] for each in self.tree() if not roles or each["role"] in roles]

    def focused(self) -> list[str]:
        """Names of the focused objects: a list and its current row may both have the focus."""
        return [each["name"] for each in self.tree() if "focused" in each["states"]]

    def press(self, role: str, name: str, action: str = "Press") -> bool:
        return self._ask({"do": "press", "role": role, "name": name, "action": action}) is True

    def focus(self, role: str, name: str) -> bool:
        return self._ask({"do": "focus", "role": role, "name": name}) is True

    def beyond(self) -> int:
        """Ask each visible object for a child that it does not have, as after a change; how many have said so."""
        return self._ask({"do": "beyond"}) or 0

    def _ask(self, request: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request | {"application": self._application}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())["answer"]


@contextlib.contextmanager
def screen_reader(environ: dict[str, str], application: str = "skep") -> Iterator[ScreenReader]:
    """A screen reader and an accessibility bus on this desktop; both end with the context."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    launcher = subprocess.Popen([LAUNCHER, "--launch-immediately"], env=environ, start_new_session=True, **quiet)
    child = subprocess.Popen(
        [SYSTEM_PYTHON, "-W", "ignore", str(CHILD)],
        env=environ | {"PYTHONPATH": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield ScreenReader(child, application)
    finally:
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        child.wait(20)
        # the registry and the bus that it started are in its process group
        with contextlib.suppress(ProcessLookupError):
            os.killpg(launcher.pid, 15)
        launcher.wait(20)
