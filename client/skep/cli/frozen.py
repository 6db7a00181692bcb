"""The entry of the frozen terminal program: the command line, or one of our modules as a process of its own.

It must know no module but those of `programs.MODULES`: a frozen skep is no Python for whoever finds it. Only light
imports here, since every worker and every verb comes this way.
"""

from __future__ import annotations

import importlib
import sys

from skep.adapters.process.programs import MODULES

OPTION = "-m"
USAGE = 2


def run() -> int:
    """Run what the arguments of this process ask for; returns the exit code."""
    if sys.argv[1:2] != [OPTION]:
        from skep.cli.main import run as terminal  # noqa: PLC0415 - a worker needs none of it

        return terminal()
    module = sys.argv[2] if len(sys.argv) > 2 else ""  # noqa: PLR2004 - program, option, module
    if module not in MODULES:
        sys.stderr.write(f"skep {OPTION} is for skep itself, and knows no {module or 'empty name'}.\n")
        return USAGE
    # as `python -m` would leave them
    del sys.argv[1:3]
    loaded = importlib.import_module(module)
    entry = getattr(loaded, "run", None) or loaded.main
    return int(entry() or 0)
