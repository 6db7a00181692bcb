"""How a program of ours is started as a process of its own: with this Python, or frozen, where there is no Python.

The frozen programs lie in one folder, and the terminal's takes the place of Python there: `skep -m MODULE` runs one of
MODULES (see `skep.cli.frozen`). It must not start anything.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

TERMINAL: Final = "skep"
APP: Final = "skep-gui"
APP_MODULE: Final = "skep_gui.main"
MODULES: Final = (
    "skep.cli.main",
    "skep.host.export",
    "skep.host.inspection",
    "skep.host.server.seed",
    "skep.worker.main",
)
"""What skep runs as processes of their own. Nothing else can be run through the frozen program."""
START: Final = "AppRun"
VERSIONS: Final = "versions"
CURRENT: Final = "current"
PROGRAM: Final = PurePosixPath("usr/lib/skep", TERMINAL)
"""The terminal's program below the folder of a version in the portable folder; the app's lies beside it."""
FACTS_FILE: Final = "skep-build.json"
ROOT_FILE: Final = "skep-updates-root.json"
"""The keys that vouch for updates, as TUF has them; beside the facts of a build that looks for updates."""


def is_frozen() -> bool:
    return bool(getattr(sys, "frozen", False))


def module_command(module: str) -> tuple[str, ...]:
    """The command that runs a module of MODULES; its arguments follow."""
    program = _beside(TERMINAL) if is_frozen() else sys.executable
    return (program, "-m", module)


def app_command() -> tuple[str, ...]:
    """The command that starts the app, whether or not it is installed; in the portable folder it outlives updates."""
    if not is_frozen():
        return (sys.executable, "-m", APP_MODULE)
    portable = portable_version()
    return (str(portable.parents[1] / START),) if portable else (_beside(APP),)


def portable_version() -> Path | None:
    """The folder of this version in the portable folder (see `portable_folder`); None when skep was installed otherwise."""
    folders = Path(sys.executable).parents if is_frozen() else ()
    version = folders[len(PROGRAM.parts) - 1] if len(folders) > len(PROGRAM.parts) + 1 else None
    if version is None or version.parent.name != VERSIONS or not (version.parents[1] / CURRENT).is_symlink():
        return None
    return version


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


@dataclass(frozen=True)
class UpdateSource:
    """Where the updates of this build lie, and its root of trust as TUF has it."""

    address: str
    root: bytes


def update_source() -> UpdateSource | None:
    """None for a skep that was not frozen, and for a build that was told of no place."""
    address = build_facts().get("updates", "")
    try:
        root = (Path(getattr(sys, "_MEIPASS", "")) / ROOT_FILE).read_bytes()
    except OSError:
        return None
    return UpdateSource(address, root) if address else None
