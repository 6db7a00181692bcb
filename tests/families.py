"""Processes of a test that may end at any moment, also between two questions about them."""

import contextlib
from collections.abc import Iterable

import psutil


def lives(process: psutil.Process) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def alive(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those of them that run."""
    return [each for each in processes if lives(each)]


def kill(processes: Iterable[psutil.Process]) -> None:
    """Kill those that there still are."""
    for each in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
