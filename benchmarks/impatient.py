"""skep's terminal program, but the user counts as away after a few seconds: a trial takes seconds, not minutes.

    python impatient.py SKEP'S ARGUMENTS

Nothing else is changed; the setting compute.idle_minutes may be below its minimum here.
"""

from __future__ import annotations

import sys

from skep.cli.main import run
from skep.core.settings.settings import SETTINGS

LEAST_MINUTES = 0.02


def allow_impatience() -> None:
    object.__setattr__(SETTINGS["compute.idle_minutes"], "minimum", LEAST_MINUTES)


if __name__ == "__main__":
    allow_impatience()
    sys.exit(run())
