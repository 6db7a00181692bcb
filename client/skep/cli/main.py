"""The console script. Only light imports here: Ctrl-C while the rest is loaded must end quietly too."""

from __future__ import annotations

import os
import signal
import sys

from skep.cli.interrupt import INTERRUPTED, ends_at_once


def run() -> int:
    """Run the command line of this process; returns the exit code. Ctrl-C is ignored from then on.

    While the interpreter winds down it would print a traceback.
    """
    try:
        with ends_at_once():
            from skep.cli.application import main  # noqa: PLC0415 - see the module's docstring

        code = main(sys.argv[1:], os.environ)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # in here, since Ctrl-C may come before it has taken effect
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = INTERRUPTED
    return code


if __name__ == "__main__":
    sys.exit(run())
