"""Draws the app's icon in the forms of macOS and Windows: packaging/icons/skep.icns (needs iconutil) and skep.ico."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from PIL import Image

from skep_gui.widgets.icons import image

HERE: Final = Path(__file__).resolve().parent
DRAWING: Final = (HERE.parent / "assets" / "icons" / "skep.svg").read_text(encoding="utf-8")
MAC_SIZES: Final = (16, 32, 128, 256, 512)
WINDOWS_SIZES: Final = (16, 24, 32, 48, 64, 128, 256)


def main() -> None:
    (HERE / "icons").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        largest = Path(folder) / "large.png"
        image(DRAWING, max(WINDOWS_SIZES)).save(str(largest))
        with Image.open(largest) as opened:
            opened.save(HERE / "icons" / "skep.ico", sizes=[(size, size) for size in WINDOWS_SIZES])
        if shutil.which("iconutil") is None:
            sys.stdout.write("iconutil, which makes skep.icns, is on a Mac only.\n")
            return
        drawn = Path(folder) / "skep.iconset"
        drawn.mkdir()
        for size in MAC_SIZES:
            image(DRAWING, size).save(str(drawn / f"icon_{size}x{size}.png"))
            image(DRAWING, 2 * size).save(str(drawn / f"icon_{size}x{size}@2x.png"))
        subprocess.run(["iconutil", "--convert", "icns", "--output", HERE / "icons" / "skep.icns", drawn], check=True)


if __name__ == "__main__":
    main()
