"""The entry point of the frozen terminal program: the command line, or a module of skep as a separate process.

Only the modules in `programs.MODULES` can be run, so that a frozen skep is not a general Python interpreter. Imports
here are light, since every worker and every verb starts here.
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
