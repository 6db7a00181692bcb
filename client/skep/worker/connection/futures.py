"""hivemind's futures: this process waits with them for answers of the DHT's and the averagers' processes.

Stock behaviour that this corrects, each covered by a test: a wait for an answer has no end; the error of a failed round
keeps the round's future, with a descriptor and a page of shared memory in two processes, until Python's garbage
collector runs: the traceback of an error refers to the frames that raised it, those to the future, and that to the error.
What is awaited in a loop is not corrected: such futures have no memory of their own.
"""

from __future__ import annotations

import contextlib
import math
import os
from copy import copy
from functools import wraps
from typing import Any, Final

from hivemind.utils import MPFuture

LOOK_SECONDS: Final = 1.0
"""A wait is made in pieces of this length: a sleep of the computer, or a pause of this process, counts as one piece."""
WAIT_SECONDS: Final = 60.0
"""Limit of waits for an answer for which hivemind has none; an answer takes milliseconds, a look-up a few seconds."""


def install(longest: float = WAIT_SECONDS) -> None:
    """For all futures of this process and its forks. Call it once, before the first fork.

    No wait for an answer of a DHT or averager lasts more than `longest` seconds, unless it says how long: then it raises
    TimeoutError. A round has its own limits and is no answer. What `result` raises, and what a future keeps whose error
    was sent to another process, is a copy of the error without its traceback and its causes.
    """
    result, set_exception = MPFuture.result, MPFuture.set_exception

    def within(future: MPFuture, timeout: float | None) -> Any:
        if timeout is not None or type(future) is not MPFuture:
            return result(future, timeout)
        for _ in range(math.ceil(longest / LOOK_SECONDS)):
            with contextlib.suppress(TimeoutError):
                return result(future, min(longest, LOOK_SECONDS))
            if future.done():  # the answer is itself a TimeoutError
                break
        return result(future, 0.0)

    @wraps(result)
    def ours(future: MPFuture, timeout: float | None = None) -> Any:
        try:
            return within(future, timeout)
        except BaseException as error:
            if error is not future._exception:  # noqa: SLF001 - hivemind's `exception` would wait
                raise
            kept = error.with_traceback(None)
        raise _copied(kept)

    @wraps(set_exception)
    def send(future: MPFuture, exception: BaseException | None) -> None:
        set_exception(future, exception)
        if exception is not None and os.getpid() != future._origin_pid:  # noqa: SLF001 - hivemind has no other way
            future._exception = _copied(exception)  # noqa: SLF001 - as above

    MPFuture.result, MPFuture.set_exception = ours, send


def _copied(error: BaseException) -> BaseException:
    """The same without a traceback; itself if it cannot be copied."""
    try:
        return copy(error)
    except Exception:  # noqa: BLE001 - only an error that came from another process can be copied for certain
        return error
