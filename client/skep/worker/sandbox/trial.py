"""Trying something in a process of its own, which ends afterwards: what is confined there stays free here."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Final

SECONDS: Final = 20
"""How long a trial may take; a driver may hang."""


def why_it_fails(do: Callable[[], object]) -> str:
    """The reason why `do` fails in a fork of this process, which has one thread; empty if it works."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS)
            do()
        except OSError as error:
            os.write(writing, str(error.strerror or error).encode())
        except BaseException as error:  # noqa: BLE001 - this process must not go on as a second worker
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        reason = said.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return reason or ("" if status == 0 else f"a trial ended with {status}")
