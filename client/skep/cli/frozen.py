"""The entry point of the frozen terminal program: the command line, or a module of skep as a separate process.

Only the modules in `programs.MODULES` can be run, so that a frozen skep is not a general Python interpreter. Imports
here are light, since every worker and every verb starts here. `--pack FOLDER` after the module's name gives it the
packages of a compute pack.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from skep.adapters.process.programs import MODULES, PACK_OPTION, use_pack

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
    if sys.argv[1:2] == [PACK_OPTION]:
        folder = sys.argv[2] if len(sys.argv) > 2 else ""  # noqa: PLR2004 - program, option, folder
        if not folder or not Path(folder).is_dir():
            sys.stderr.write(
                f"skep {PACK_OPTION} needs the folder of a compute pack, and {folder or 'none'} is none.\n"
            )
            return USAGE
        del sys.argv[1:3]
        use_pack(Path(folder))
    loaded = importlib.import_module(module)
    entry = getattr(loaded, "run", None) or loaded.main
    return int(entry() or 0)


if __name__ == "__main__":
    sys.exit(run())
