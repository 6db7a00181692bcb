"""Copies of the state, as the averager's process asks the training process for them.

Stock behaviour that this corrects, covered by a test: the variables of the thread that answers keep the last copy, as much
memory as the whole state, until the next request.
"""

from __future__ import annotations

import logging
from multiprocessing.connection import Connection
from typing import Any
from weakref import WeakMethod

from hivemind.averaging import averager
from hivemind.utils import MPFuture
from hivemind.utils.serializer import SerializerBase

ASKED = "_TRIGGER_GET_CURRENT_STATE"
_log = logging.getLogger(__name__)


def install() -> None:
    """For every averager that is made from now on. Called again, it changes nothing."""
    averager._background_thread_fetch_current_state = answer_all  # noqa: SLF001 - hivemind has no other way


def answer_all(serializer: SerializerBase, pipe: Connection, get_state: WeakMethod[Any]) -> None:
    """Answer until the averager is gone. With hivemind's signature: `serializer` is for the metadata."""
    while (future := _asked(pipe)) is not None:
        if not _answer(future, serializer, get_state):
            return
        del future


def _asked(pipe: Connection) -> MPFuture | None:
    """The future that waits for a copy; None at the end."""
    try:
        asked, future = pipe.recv()
    except Exception:  # noqa: BLE001 - as hivemind's: whatever ends the pipe ends the thread
        return None
    return future if asked == ASKED else None


def _answer(future: MPFuture, serializer: SerializerBase, get_state: WeakMethod[Any]) -> bool:
    """Whether there still is an averager."""
    if (get := get_state()) is None:
        return False
    try:
        metadata, tensors, *infos = get()
        on_host = tuple(each.cpu().detach().requires_grad_(each.requires_grad) for each in tensors)
        future.set_result((serializer.dumps(metadata), on_host, infos[0] if infos else None))
        future._result = None  # noqa: SLF001 - it is sent; the averager's process has its own
    except Exception as error:  # noqa: BLE001 - told to who waits for it
        future.set_exception(error)
        _log.warning("no copy of the state: %s", error)
    return True
