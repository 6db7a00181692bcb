"""Notes in a home that a practice swarm runs there, so that its processes are known as skep's own.

It must not end it: whoever runs it does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final

from skep.adapters.process.process_tree import Mark, mark
from skep.adapters.storage.atomic import atomic_write

_NAME: Final = "process.json"


@contextmanager
def noted(folder: Path) -> Iterator[None]:
    """Note this process as the one that runs the swarm kept in `folder`, meanwhile. Raises OSError."""
    file = folder / _NAME
    if own := mark(os.getpid()):
        atomic_write(file, json.dumps(asdict(own)).encode())
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def running(folder: Path) -> int | None:
    """The number of the process that runs the swarm kept in `folder`; None when none does."""
    try:
        body = json.loads((folder / _NAME).read_bytes())
        found = Mark(int(body["pid"]), float(body["started"])).find()
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return found.pid if found else None
