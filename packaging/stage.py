"""Copies the frozen skep into the folder layout of Linux packages: below usr/, with menu entry, icons, man pages and
completions.

There are two editions: the app alone, and the whole with the training stack. The .deb and the portable archive of an
edition contain the same files. Building and packing are done elsewhere.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from build import APP, FOLDER, HERE, ROOT, tidy_modes

from skep.core.releases import APP_ALONE

APP_ID: Final = "org.skep.skep"
LINUX: Final = HERE / "linux"
ICONS: Final = ROOT / "assets" / "icons"
ICON_SIZES: Final = (16, 22, 24, 32, 48, 64, 128, 256, 512)
HOMEPAGE: Final = os.environ.get("SKEP_HOMEPAGE", "https://skep.example.org")
"""The project's web address; set it before a package is published."""
VERSION: Final = version("skep")
SUMMARIES: Final = {
    "skep": "lend this computer's idle GPU to open training projects",
    "skep-gui": "skep in the tray and a window",
}
PROGRAMS: Final = tuple(SUMMARIES)


@dataclass(frozen=True)
class Edition:
    """The frozen folder, the name of the .deb, the system's name in that of the archive, and the .deb's last words.

    `limit` is the maximum size of the .deb and of the archive in bytes, with torch's CPU build, `level` zstd's level of
    compression. `other` is the .deb that cannot be installed beside it.
    """

    folder: Path
    package: str
    other: str
    system: str
    brings: str
    limit: int
    level: int


EDITIONS: Final = {
    "app": Edition(
        APP, "skep-app", "skep", f"{APP_ALONE}linux",
        "The package brings its own Python and Qt. skep fetches PyTorch by itself, in\n the build for your device.",
        70_000_000, 19,
    ),
    "whole": Edition(
        FOLDER, "skep", "skep-app", "linux",
        "The package brings its own Python, Qt and PyTorch.",
        350_000_000, 9,
    ),
}  # fmt: skip


def chosen_editions(description: str | None) -> list[Edition]:
    """The editions that the command line names; both without a name."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    # not by `choices`, which Python 3.11 also asks for the empty list
    made.add_argument("editions", nargs="*", metavar="app|whole")
    names = made.parse_args().editions or list(EDITIONS)
    if unknown := [name for name in names if name not in EDITIONS]:
        made.error(f"there is no edition {unknown[0]}, only {' and '.join(EDITIONS)}")
    return [EDITIONS[name] for name in names]


def moment() -> datetime:
    """The build time: SOURCE_DATE_EPOCH, or now."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(float(given), UTC) if given else datetime.now(UTC)


def lay_out(edition: Edition, root: Path) -> None:
    """Fill `root`/usr. Needs the edition's folder."""
    if not edition.folder.is_dir():
        sys.exit(f"There is no {edition.folder.relative_to(ROOT)} yet: python packaging/build.py makes it.")
    usr = root / "usr"
    # hard links need no space while packing, and nothing here is changed
    shutil.copytree(edition.folder, usr / "lib" / "skep", copy_function=os.link, symlinks=True)
    _programs(usr)
    _menu(usr)
    _icons(usr / "share" / "icons" / "hicolor")
    _manuals(usr / "share" / "man" / "man1")
    _completions(usr / "share")
    tidy_modes(usr / "share")


def _programs(usr: Path) -> None:
    (usr / "bin").mkdir(parents=True)
    for name in PROGRAMS:
        (usr / "bin" / name).symlink_to(f"../lib/skep/{name}")


def _menu(usr: Path) -> None:
    for name, below in (
        (f"{APP_ID}.desktop", "applications"),
        (f"{APP_ID}.metainfo.xml", "metainfo"),
        (f"{APP_ID}.xml", "mime/packages"),
    ):
        text = (LINUX / name).read_text(encoding="utf-8")
        for mark, value in (("HOMEPAGE", HOMEPAGE), ("VERSION", VERSION), ("DATE", f"{moment():%Y-%m-%d}")):
            text = text.replace(f"@{mark}@", value)
        write(usr / "share" / below / name, text)


def _icons(hicolor: Path) -> None:
    for source, below in (("skep.svg", "scalable"), ("skep-idle-symbolic.svg", "symbolic")):
        ending = "-symbolic.svg" if "symbolic" in source else ".svg"
        write(hicolor / below / "apps" / f"{APP_ID}{ending}", (ICONS / source).read_text(encoding="utf-8"))
    from skep_gui.widgets.icons import image  # noqa: PLC0415 - Qt, which nothing else here needs

    drawing = (ICONS / "skep.svg").read_text(encoding="utf-8")
    for size in ICON_SIZES:
        target = hicolor / f"{size}x{size}" / "apps" / f"{APP_ID}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        image(drawing, size).save(str(target))


def _manuals(folder: Path) -> None:
    for program, module, function in (
        ("skep", "skep.cli.application", "parser"),
        ("skep-gui", "skep_gui.main", "parser"),
    ):
        with tempfile.NamedTemporaryFile(suffix=".1") as page:
            run([
                "argparse-manpage", "--module", module, "--function", function, "--prog", program,
                "--description", SUMMARIES[program], "--project-name", "skep", "--version", VERSION, "--url", HOMEPAGE, "--manual-title", "skep",
                "--author", "The skep authors", "--output", page.name,
            ])  # fmt: skip
            target = folder / f"{program}.1.gz"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(gzip.compress(Path(page.name).read_bytes(), 9, mtime=0))


def _completions(share: Path) -> None:
    for shell, place in (("bash", "bash-completion/completions/skep"), ("zsh", "zsh/vendor-completions/_skep")):
        done = run(["shtab", f"--shell={shell}", "--prog=skep", "skep.cli.application.parser"])
        write(share / place, done)


def run(command: Iterable[str]) -> str:
    """The output of a tool of this virtual environment. Ends the build if it fails."""
    name, *arguments = command
    tool = Path(sys.executable).with_name(name)
    done = subprocess.run([str(tool), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{name} failed: {done.stderr.strip()}")
    return done.stdout


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
