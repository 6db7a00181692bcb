"""Removes unused parts of a build: debugging symbols, and libraries that nothing loads.

PyInstaller collects the dependencies of Qt's plugins before plugins are excluded, and so includes GTK. Linux only.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

STRIPPED: Final = ("libpython*.so*", "lib-dynload/*.so", "torch/lib/*.so", "torch/bin/*")
"""Files worth stripping. Other wheels' libraries were rewritten after linking, and stripping may break them."""
ASKED_BY_NAME: Final = ("libpython*", "libdbus-1.*", "libX11*", "libxcb.*", "libXss*", "libssl*", "libcrypto*")
"""Libraries that are opened by name at run time, so that no other file lists them as needed."""


def strip(internal: Path) -> int:
    """Remove debugging symbols from STRIPPED; returns the bytes saved. Needs binutils."""
    saved = 0
    for path in internal.rglob("*"):
        place = path.relative_to(internal).as_posix()
        if path.is_symlink() or not path.is_file() or not any(fnmatch(place, f"*{each}") for each in STRIPPED):
            continue
        before = path.stat().st_size
        subprocess.run(["strip", "--strip-unneeded", str(path)], check=True)
        saved += before - path.stat().st_size
    return saved


def drop_unneeded(internal: Path) -> list[str]:
    """Remove system libraries at the top of the folder that nothing in the build needs any more; returns their
    names.
    """
    dropped: list[str] = []
    while unneeded := _unneeded(internal):
        for path in unneeded:
            path.unlink()
            dropped.append(path.name)
    return sorted(dropped)


def _unneeded(internal: Path) -> list[Path]:
    binaries = [path for path in internal.rglob("*") if ".so" in path.name and path.is_file() and not path.is_symlink()]
    wanted = needed(binaries)
    top = [path for path in internal.glob("lib*.so*") if not any(fnmatch(path.name, each) for each in ASKED_BY_NAME)]
    return [path for path in top if path.name not in wanted and not path.name.startswith("libQt")]


def needed(binaries: Iterable[Path]) -> set[str]:
    """The names of all libraries that these files are linked to."""
    done = subprocess.run(["objdump", "-p", *map(str, binaries)], capture_output=True, text=True, check=False)
    return set(re.findall(r"^\s+NEEDED\s+(\S+)$", done.stdout, re.MULTILINE))
