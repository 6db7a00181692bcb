"""The console script. Only light imports here: Ctrl-C while the rest is loaded must end quietly too."""

from __future__ import annotations

import os
import signal
import sys

from skep.cli.interrupt import INTERRUPTED


def run() -> int:
    """Run the command line of this process; returns the exit code. Ctrl-C is ignored from then on.

    While the interpreter winds down it would print a traceback. So it may while modules are loaded: Python prints and forgets
    an exception that is raised where it only tidies up after an import. Nothing has begun then, and Ctrl-C ends it at once.
    """
    try:
        usual = signal.getsignal(signal.SIGINT)
        if usual is signal.default_int_handler:  # a shell may have had it ignored
            signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
        from skep.cli.application import load, main  # noqa: PLC0415 - see the module's docstring

        load(sys.argv[1:])
        signal.signal(signal.SIGINT, usual)
        code = main(sys.argv[1:], os.environ)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # in here, since Ctrl-C may come before it has taken effect
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = INTERRUPTED
    return code


if __name__ == "__main__":
    sys.exit(run())
