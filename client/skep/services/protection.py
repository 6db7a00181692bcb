"""What this system keeps the training process from, as a process of its own finds out by confining itself.

On systems without a sandbox it finds out that every guard is missing.
"""

from __future__ import annotations

import logging
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Final

import msgspec

from skep.adapters.process.programs import module_command
from skep.core.sandbox import Sandbox

REPORT: Final = module_command("skep.worker.sandbox.report")
SECONDS: Final = 90.0
"""More than the report's own trials on a card may take."""

log = logging.getLogger(__name__)


def protection(command: Sequence[str] = REPORT) -> Sandbox | None:
    """None where it could not be tried; the log then has the details. Takes about a second where there is a card."""
    with tempfile.TemporaryDirectory(prefix="skep-") as folder:
        try:
            done = subprocess.run([*command, folder], capture_output=True, cwd=folder, timeout=SECONDS, check=False)
            return msgspec.json.decode(done.stdout, type=Sandbox)
        except (OSError, subprocess.TimeoutExpired) as error:
            said = str(error)
        except ValueError:  # also what msgspec raises
            said = done.stderr.decode(errors="replace")[-2000:]
    log.warning("the sandbox could not be tried: %s", said)
    return None
