"""A disk of a few kilobytes, to fill it, and one that is read-only."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


def mount(folder: Path, *options: str) -> None:
    done = subprocess.run(["mount", *options, str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"only root can mount a small disk: {done.stderr.strip()}")


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A disk of that size at `folder`."""
    folder.mkdir(exist_ok=True)
    mount(folder, "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=700", "none")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def filled(disk: Path, *, left: int = 0) -> Iterator[None]:
    """A context in which so many bytes are free."""
    with Path(disk, "ballast").open("wb", buffering=0) as ballast:
        with contextlib.suppress(OSError):
            while True:
                ballast.write(bytes(4096))
        ballast.truncate(ballast.tell() - left)
    assert shutil.disk_usage(disk).free == left
    try:
        yield
    finally:
        Path(disk, "ballast").unlink()


@contextlib.contextmanager
def read_only(disk: Path) -> Iterator[None]:
    mount(disk, "-o", "remount,ro")
    try:
        yield
    finally:
        mount(disk, "-o", "remount,rw")
