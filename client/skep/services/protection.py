"""What this system keeps the training process from, as a process of its own finds out by confining itself.

On systems without a sandbox it finds out that every guard is missing.
"""

from __future__ import annotations

import logging
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from skep import bootstrap
from skep.adapters.process.programs import module_command
from skep.core.sandbox import Sandbox

REPORT: Final = module_command("skep.worker.sandbox.report")
SECONDS: Final = 90.0
"""More than the report's own trials on a card may take."""

log = logging.getLogger(__name__)


def protection(
    command: Sequence[str] = REPORT, limit_memory: Callable[[int, int], None] = bootstrap.limit_memory
) -> Sandbox | None:
    """None where it could not be tried; the log then has the details. Takes about a second where there is a card.

    As the worker's, the process's memory is limited by `limit_memory` before it reads a line and confines itself.
    """
    with tempfile.TemporaryDirectory(prefix="skep-") as folder:
        try:
            said, complaint = _ask([*command, folder], folder, limit_memory)
            return msgspec.json.decode(said, type=Sandbox)
        except (OSError, subprocess.TimeoutExpired) as error:
            why = str(error)
        except ValueError:  # also what msgspec raises
            why = complaint.decode(errors="replace")[-2000:]
    log.warning("the sandbox could not be tried: %s", why)
    return None


def _ask(command: Sequence[str], folder: str, limit_memory: Callable[[int, int], None]) -> tuple[bytes, bytes]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder) as asked:
        try:
            limit_memory(asked.pid, 0)
            return asked.communicate(b"\n", SECONDS)
        except BaseException:
            asked.kill()
            raise
