"""Makes the portable archive of dist/skep: dist/skep-VERSION-linux-MACHINE.tar.zst, with an AppDir inside.

It runs from wherever it is unpacked, without rights, and leaves nothing in the system but a person's own data.
"""

from __future__ import annotations

import platform
import subprocess
import tempfile
from pathlib import Path

from build import ROOT, WORK, say
from stage import APP_ID, LINUX, VERSION, lay_out, moment


def main() -> None:
    made = ROOT / "dist" / f"skep-{VERSION}-linux-{platform.machine()}.tar.zst"
    with tempfile.TemporaryDirectory(dir=WORK, prefix="portable-") as folder:
        app = Path(folder) / "skep.AppDir"
        app.mkdir()
        app.chmod(0o755)
        lay_out(app)
        run = app / "AppRun"
        run.write_bytes((LINUX / "AppRun").read_bytes())
        run.chmod(0o755)
        (app / "skep").symlink_to("AppRun")
        (app / f"{APP_ID}.desktop").symlink_to(f"usr/share/applications/{APP_ID}.desktop")
        (app / f"{APP_ID}.svg").symlink_to(f"usr/share/icons/hicolor/scalable/apps/{APP_ID}.svg")
        (app / ".DirIcon").symlink_to(f"usr/share/icons/hicolor/256x256/apps/{APP_ID}.png")
        subprocess.run(
            ["tar", "--create", "--sort=name", f"--mtime=@{moment().timestamp():.0f}", "--owner=0", "--group=0",
             "--numeric-owner", "--use-compress-program=zstd -15 -T0", f"--file={made}", f"--directory={folder}", app.name],
            check=True,
        )  # fmt: skip
    say(f"{made}: {made.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
