"""Sets the clock of a front end's training processes wrongly: `place` is the command to run the front end with.

The file itself is copied as `sitecustomize.py`, which Python imports when it starts, to a folder that PYTHONPATH names.
There it adds to the clock what the file beside it says, in the training process and all that it forks. hivemind's
`get_dht_time` is that clock. The front end's own clock stays right, and with it the times in the ledger.
"""

from __future__ import annotations

import mmap
import shutil
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path

WORKER = "skep.worker.main"
SECONDS = struct.Struct("d")
FILE = "seconds"


class OtherClock:
    """Off by no second at first. `folder` must not exist yet."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        shutil.copy(__file__, folder / "sitecustomize.py")
        self._file = folder / FILE
        self._file.write_bytes(SECONDS.pack(0.0))
        self.place: Sequence[str] = ("env", f"PYTHONPATH={folder}")

    def set(self, ahead: float) -> None:
        """From now on the clock is so many seconds ahead, or behind if negative."""
        with self._file.open("r+b") as file:  # in place: it is mapped into the processes
            file.write(SECONDS.pack(ahead))


def shift() -> None:
    """Let this process's clock be off, and those of its later forks."""
    with Path(__file__).with_name(FILE).open("rb") as file:
        ahead, right = mmap.mmap(file.fileno(), SECONDS.size, prot=mmap.PROT_READ), time.time
    time.time = lambda: right() + SECONDS.unpack(ahead)[0]


if __name__ == "sitecustomize" and WORKER in sys.orig_argv:
    shift()
