"""The tasks of hivemind's event loops: each is kept until it is done, and no longer.

Stock behaviour that this corrects, each covered by a test:
- asyncio refers to tasks weakly, and hivemind keeps no reference to those that it begins for a call to a DHT or an
  averager. While such a task waits for a stream of uvloop, nothing else refers to the two of them: the garbage collector
  destroys both, and the caller waits for ever;
- the task of a request that the other peer has cancelled is kept for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, TypeAlias
from uuid import UUID

from hivemind.averaging import averager
from hivemind.dht import dht
from hivemind.p2p.p2p_daemon_bindings.control import ControlClient
from hivemind.utils import switch_to_uvloop

Work: TypeAlias = Coroutine[Any, Any, Any] | Generator[Any, None, Any]

_stock_handle = ControlClient._handle_persistent_request  # noqa: SLF001 - hivemind has no other way


def install() -> None:
    """For every DHT and averager that is started from now on. Called again, it changes nothing."""
    dht.switch_to_uvloop = averager.switch_to_uvloop = _new_loop
    ControlClient._handle_persistent_request = _handle_persistent_request  # noqa: SLF001 - as above


def _new_loop() -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = switch_to_uvloop()
    kept: set[asyncio.Task[Any]] = set()

    def begin(of: asyncio.AbstractEventLoop, work: Work, **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=of, **options)
        kept.add(task)
        task.add_done_callback(kept.discard)
        return task

    loop.set_task_factory(begin)
    return loop


async def _handle_persistent_request(self: ControlClient, call_id: UUID, request: Any) -> None:
    try:
        await _stock_handle(self, call_id, request)
    finally:
        self._handler_tasks.pop(call_id, None)
