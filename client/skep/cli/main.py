"""The console script. Only light imports here: Ctrl-C while the rest is loaded must end quietly too."""

from __future__ import annotations

import os
import signal
import sys

from skep.cli.interrupt import INTERRUPTED


def run() -> int:
    """Run the command line of this process; returns the exit code."""
    try:
        from skep.cli.application import main  # noqa: PLC0415 - see the module's docstring

        code = main(sys.argv[1:], os.environ)
    except KeyboardInterrupt:
        code = INTERRUPTED
    # a late Ctrl-C while the interpreter winds down would print a traceback
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


if __name__ == "__main__":
    sys.exit(run())
