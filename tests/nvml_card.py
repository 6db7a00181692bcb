"""A stand-in for an NVIDIA card behind the real pynvml: it heats up, fills, is shared, is lost, as the test says."""

import contextlib
import ctypes
import shutil
import subprocess
from pathlib import Path

import pynvml
import pytest

SOURCE = Path(__file__).parent / "adapters" / "nvml_stub.c"
LIBRARY = "libnvidia-ml.so.1"


def build_library(folder):
    """Compile the stand-in for the driver's library into `folder`; skips the test where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build the stand-in for NVIDIA's library with")
    wanted = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", str(folder / LIBRARY), str(SOURCE)]
    subprocess.run([compiler, *wanted], check=True, timeout=60)
    return folder


class Card:
    """Sets the card's state from now on; the words are explained in nvml_stub.c."""

    def __init__(self, folder):
        self.file = Path(folder) / "card"
        self._words, self._lines = {}, []
        self.say()

    def say(self, **words):
        """Add to what was said, or say it anew; a call's name with an error makes it fail, with 0 no more."""
        self._words |= words
        self._write()

    def share_with(self, *processes):
        """The processes the driver has something to tell of: number, percent, time stamp."""
        self._lines = [f"process {pid} {percent} {stamp}" for pid, percent, stamp in processes]
        self._write()

    @property
    def limit(self):
        """The power limit that was set, in watts; None when none was."""
        with contextlib.suppress(FileNotFoundError):
            return int(self._limit_file.read_text()) / 1000
        return None

    @limit.setter
    def limit(self, watts):
        self._limit_file.write_text(f"{watts * 1000:.0f}\n")

    @property
    def _limit_file(self):
        return self.file.with_name("card.limit")

    def _write(self):
        fresh = self.file.with_name("card.new")
        lines = [*(f"{word} {number}" for word, number in self._words.items()), *self._lines]
        fresh.write_text("\n".join(lines) + "\n")
        fresh.replace(self.file)


@contextlib.contextmanager
def plugged_in(library_folder, folder, monkeypatch):
    made = Card(folder)
    monkeypatch.setenv("NVML_STUB_FILE", str(made.file))
    # a copy, since a library keeps what it remembers for as long as the process lives
    library = shutil.copy(library_folder / LIBRARY, Path(folder) / LIBRARY)
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(library)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    yield made
