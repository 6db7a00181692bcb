"""Where a part runs: a temporary folder for all its processes, a practice swarm, a volunteer that trains."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from faults.family import kill
from faults.volunteer import Volunteer, volunteer
from terminals import practice_swarm


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """A temporary folder, in which every process started meanwhile puts its temporary files too; it ends with them."""
    with tempfile.TemporaryDirectory(prefix="sf-", ignore_cleanup_errors=True) as folder:
        os.environ.pop("XDG_RUNTIME_DIR", None)
        earlier, os.environ["TMPDIR"] = os.environ.get("TMPDIR"), folder
        try:
            yield Path(folder)
        finally:
            kill(each for each in psutil.process_iter() if _uses(each, folder))
            del os.environ["TMPDIR"]
            os.environ |= {"TMPDIR": earlier} if earlier else {}


def _uses(process: psutil.Process, folder: str) -> bool:
    """Whether its temporary files are there; this process has set that for its children only."""
    with contextlib.suppress(psutil.Error, OSError):
        return process.environ().get("TMPDIR", "").startswith(folder)
    return False


@contextlib.contextmanager
def trained_volunteer() -> Iterator[Volunteer]:
    """A volunteer in a practice swarm of three, with its first confirmed contribution."""
    with own_folder() as folder, practice_swarm(folder / "swarm") as link, volunteer(folder / "home", link) as made:
        made.wait_until_training()
        yield made
