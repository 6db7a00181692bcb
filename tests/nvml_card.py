"""A stand-in for an NVIDIA card behind the real pynvml: tests set its temperature, memory, processes and failures."""

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
    """Compile the stand-in for the driver's library into `folder`; skip the test if there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build the stand-in for NVIDIA's library with")
    wanted = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", str(folder / LIBRARY), str(SOURCE)]
    subprocess.run([compiler, *wanted], check=True, timeout=60)
    return folder


class Card:
    """Sets the card's state; nvml_stub.c explains the words."""

    def __init__(self, folder):
        self.file = Path(folder) / "card"
        self._words, self._lines = {}, []
        self.say()

    def say(self, **words):
        """Set or add values; the name of a call with an error makes that call fail, with 0 it succeeds again."""
        self._words |= words
        self._write()

    def share_with(self, *processes):
        """Set the processes that the driver lists: id, percent, time stamp."""
        self._lines = [f"process {pid} {percent} {stamp}" for pid, percent, stamp in processes]
        self._write()

    @property
    def limit(self):
        """The first card's power limit that was set, in watts; None if none was set."""
        return self.limit_of(1)

    def limit_of(self, number):
        """As `limit`, for the second card and so on."""
        with contextlib.suppress(FileNotFoundError):
            return int(self.file.with_name(f"card.limit{number if number > 1 else ''}").read_text()) / 1000
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
    # a copy, since a loaded library keeps its state until the process ends
    library = shutil.copy(library_folder / LIBRARY, Path(folder) / LIBRARY)
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(library)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    yield made
