"""How a program of ours is started as a process of its own: with this Python, or frozen, where there is no Python.

The frozen programs lie in one folder, and the terminal's takes the place of Python there: `skep -m MODULE` runs one of
MODULES (see `skep.cli.frozen`). It must not start anything.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

TERMINAL: Final = "skep"
APP: Final = "skep-gui"
APP_MODULE: Final = "skep_gui.main"
MODULES: Final = (
    "skep.cli.main",
    "skep.host.export",
    "skep.host.inspection",
    "skep.host.keeper",
    "skep.host.seed",
    "skep.worker.main",
)
"""What skep runs as processes of their own. Nothing else can be run through the frozen program."""
FACTS_FILE: Final = "skep-build.json"


def is_frozen() -> bool:
    return bool(getattr(sys, "frozen", False))


def module_command(module: str) -> tuple[str, ...]:
    """The command that runs a module of MODULES; its arguments follow."""
    program = _beside(TERMINAL) if is_frozen() else sys.executable
    return (program, "-m", module)


def app_command() -> tuple[str, ...]:
    """The command that starts the app, whether or not it is installed."""
    return (_beside(APP),) if is_frozen() else (sys.executable, "-m", APP_MODULE)


def _beside(name: str) -> str:
    # a program ends in .exe where programs do
    ours = Path(sys.executable)
    return str(ours.with_name(name + ours.suffix))


def build_facts() -> dict[str, Any]:
    """What the build wrote down about itself: commit, time, versions of what is inside. Empty unless frozen."""
    if not is_frozen():
        return {}
    file = Path(getattr(sys, "_MEIPASS", "")) / FACTS_FILE
    try:
        facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts
