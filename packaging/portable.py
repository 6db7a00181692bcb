"""Makes the portable archives, with an AppDir inside: dist/skep-VERSION-linux-MACHINE.tar.xz of the whole, and
dist/skep-VERSION-app-linux-MACHINE.tar.xz of the app alone.

    python packaging/portable.py [app] [whole]

An AppDir runs from any folder without administrator rights, and stores only the user's data outside of it. Each version has
its own folder, so that an update can be unpacked beside it (see skep.adapters.process.portable_folder).
"""

from __future__ import annotations

import platform
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from build import ROOT, WORK, say
from stage import APP_ID, LINUX, VERSION, Edition, chosen_editions, lay_out, moment

from skep.adapters.process.portable_folder import APP_DIR
from skep.adapters.process.programs import CURRENT, START, VERSIONS
from skep.core.releases import archive_name

XZ: Final = "xz -6 -T0"
"""A format that file managers and Python's standard library can unpack."""


def main() -> None:
    for edition in chosen_editions(__doc__):
        made = ROOT / "dist" / archive_name(VERSION, edition.system, platform.machine())
        with tempfile.TemporaryDirectory(dir=WORK, prefix="portable-") as folder:
            lay_app_dir(edition, Path(folder) / APP_DIR)
            pack(Path(folder), made)
        say(f"{made}: {made.stat().st_size / 1e6:.0f} MB")


def lay_app_dir(edition: Edition, app: Path) -> None:
    version = app / VERSIONS / VERSION
    version.mkdir(parents=True)
    lay_out(edition, version)
    run = version / START
    run.write_bytes((LINUX / START).read_bytes())
    for each in (app, app / VERSIONS, version, run):
        each.chmod(0o755)
    (app / CURRENT).symlink_to(f"{VERSIONS}/{VERSION}")
    for name, place in (
        (START, START),
        ("skep", START),
        ("usr", "usr"),
        (f"{APP_ID}.desktop", f"usr/share/applications/{APP_ID}.desktop"),
        (f"{APP_ID}.svg", f"usr/share/icons/hicolor/scalable/apps/{APP_ID}.svg"),
        (".DirIcon", f"usr/share/icons/hicolor/256x256/apps/{APP_ID}.png"),
    ):
        (app / name).symlink_to(f"{CURRENT}/{place}")


def pack(folder: Path, made: Path) -> None:
    subprocess.run(
        ["tar", "--create", "--sort=name", f"--mtime=@{moment().timestamp():.0f}", "--owner=0", "--group=0",
         "--numeric-owner", f"--use-compress-program={XZ}", f"--file={made}", f"--directory={folder}", APP_DIR],
        check=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
