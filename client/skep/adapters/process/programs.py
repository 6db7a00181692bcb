"""Commands that start skep's programs as separate processes: with this Python, or frozen without Python.

The frozen programs are in one folder, and the terminal's replaces Python there: `skep -m MODULE` runs one of MODULES
(see `skep.cli.frozen`), with the training stack beside the programs or with that of a compute pack: `--pack FOLDER`.
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
FROZEN_MODULE: Final = "skep.cli.frozen"
PACK_OPTION: Final = "--pack"
MODULES: Final = (
    "skep.cli.main",
    "skep.host.export",
    "skep.host.inspection",
    "skep.host.server.seed",
    "skep.worker.main",
    "skep.worker.probe",
    "skep.worker.sandbox.report",
    "skep.worker.trial",
)
"""Modules that skep runs as separate processes. The frozen program runs no others."""
START: Final = "AppRun"
VERSIONS: Final = "versions"
CURRENT: Final = "current"
PROGRAM: Final = PurePosixPath("usr/lib/skep", TERMINAL)
"""The terminal's program in the folder of a version in the portable folder; the app's program is beside it."""
FACTS_FILE: Final = "skep-build.json"
ROOT_FILE: Final = "skep-updates-root.json"
"""TUF's root of trust for updates, beside the facts of a build that checks for updates."""


def is_frozen() -> bool:
    return bool(getattr(sys, "frozen", False))


def made_at() -> float:
    """Wall clock seconds at which this skep was built, or its sources were written: its modules are no files if frozen.

    Raises OSError.
    """
    return _own_file().stat().st_mtime


def was_replaced() -> bool:
    """Whether another skep has taken this one's place since it started, as a package manager does: a process that is
    started now may not understand this one.
    """
    return _identity() != _STARTED_FROM


def _own_file() -> Path:
    return Path(sys.executable if is_frozen() else __file__)


def _identity() -> tuple[int, int] | None:
    try:
        found = _own_file().stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


_STARTED_FROM: Final = _identity()


def has_own_stack() -> bool:
    """Whether the training stack is there without a compute pack: Python's own, or that beside the frozen programs."""
    return not is_frozen() or (_unpacked() / "torch" / "__init__.py").is_file()


def module_command(module: str, pack: Path | None = None) -> tuple[str, ...]:
    """The command that runs a module of MODULES; its arguments follow.

    `pack` is the folder of a compute pack, whose packages go before all others.
    """
    if pack is None:
        return (_beside(TERMINAL) if is_frozen() else sys.executable, "-m", module)
    program = (_beside(TERMINAL),) if is_frozen() else (sys.executable, "-m", FROZEN_MODULE)
    return (*program, "-m", module, PACK_OPTION, str(pack))


def use_pack(folder: Path) -> None:
    """Import from a compute pack before anything else, in this process and in those that multiprocessing starts.

    The folder is laid down as pip lays down site-packages. Its `.pth` files are not read: they are code that runs at
    every start, and no pack needs any.
    """
    sys.path.insert(0, str(folder.absolute()))


def app_command() -> tuple[str, ...]:
    """The command that starts the app, installed or not; in the portable folder it stays valid after updates."""
    if not is_frozen():
        return (sys.executable, "-m", APP_MODULE)
    portable = portable_version()
    return (str(portable.parents[1] / START),) if portable else (_beside(APP),)


def portable_version() -> Path | None:
    """The folder of this version in the portable folder (see `portable_folder`); None for other installations."""
    folders = Path(sys.executable).parents if is_frozen() else ()
    version = folders[len(PROGRAM.parts) - 1] if len(folders) > len(PROGRAM.parts) + 1 else None
    if version is None or version.parent.name != VERSIONS or not (version.parents[1] / CURRENT).is_symlink():
        return None
    return version


def _beside(name: str) -> str:
    # programs end in .exe on Windows
    ours = Path(sys.executable)
    return str(ours.with_name(name + ours.suffix))


def _unpacked() -> Path:
    """The folder of the frozen programs' files."""
    return Path(getattr(sys, "_MEIPASS", ""))


def build_facts() -> dict[str, Any]:
    """Facts recorded by the build: commit, time, versions of the libraries. Empty unless frozen."""
    if not is_frozen():
        return {}
    file = _unpacked() / FACTS_FILE
    try:
        facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts


@dataclass(frozen=True)
class UpdateSource:
    """The address of this build's updates, and its TUF root of trust."""

    address: str
    root: bytes


def update_source() -> UpdateSource | None:
    """None for a skep that is not frozen, and for a build without an update address."""
    address = build_facts().get("updates", "")
    try:
        root = (_unpacked() / ROOT_FILE).read_bytes()
    except OSError:
        return None
    return UpdateSource(address, root) if address else None
