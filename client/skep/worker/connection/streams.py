"""How many streams of each call other peers may have open to this process, and how much of them is read ahead.

Stock behaviour that this corrects, each covered by a test:
- a peer may open any number of streams, and of each, seven messages are kept in memory before the first one is judged:
  together more than the computer has;
- a stream stays open for ever if its call ends while more messages are there than are read ahead, or if it says nothing;
- a stream is closed as soon as its call has ended. p2pd then sometimes resets it instead, and what the caller's p2pd has
  not passed on by then is lost: on a busy computer the last answer of one call in a hundred. To the caller that is an end
  without the answer. Here the caller closes first, if it knows that it has all.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from hivemind.p2p import P2P, P2PContext, PeerID
from hivemind.utils.asyncio import achain, as_aiter

OF_ONE_PEER: Final = 16
"""Streams of a call that a peer may have open at once. An honest one has one in a round, one for a state."""


@dataclass(frozen=True)
class Bounds:
    """Of the streams of one call: `longest` frame that another peer sends, in bytes, and the most `strangers` have open.

    Strangers are all peers in no group with this one. Peer ids cost nothing.
    """

    longest: int
    strangers: int


PARTS: Final = Bounds(640 * 1024, 48)
"""A part of a tensor has 0.5 MiB."""
BY_CALL: Final = {
    # what a peer says of itself has at most 4 kB; a leader has one stream of each peer that joins its group
    ".rpc_join_group": Bounds(16 * 1024, 1024),
    ".rpc_download_state": Bounds(16 * 1024, 256),
    # what a peer has of a state already: 18 bytes a tensor
    ".rpc_fetch_state": Bounds(640 * 1024, 16),
}
"""The bounds of calls, by the end of their names; PARTS of all others."""
PREFETCHED: Final = 1
"""Messages of a stream that are read before the ones before them are done; five in hivemind."""
FIRST_SECONDS: Final = 15.0
"""Until a stream's first message has come. At 0.3 Mbit/s that is a part of a tensor."""
PLACE_SECONDS: Final = 3.0
"""How long a stream waits for a place, unread. A groupmate may send before the group is known to us."""
LOOK_SECONDS: Final = 0.05
END_SECONDS: Final = 1.0
"""How long a stream stays open after its call has ended, unless the caller closes it: while an answer is sent and taken."""

longest_frame: ContextVar[int | None] = ContextVar("longest_frame", default=None)
"""The limit of bytes of a frame in the tasks that serve another peer's call; elsewhere that of `guards`."""
caller: ContextVar[PeerID | None] = ContextVar("caller", default=None)
"""The authenticated id of the peer whose call a task serves."""
_call_over: ContextVar[asyncio.Event | None] = ContextVar("call_over", default=None)

Handler = Callable[[Any, Any, Any], Awaitable[None]]
Messages = Callable[[Any, P2PContext], AsyncGenerator[Any, None]]

_stock_add, _stock_add_messages = P2P.add_binary_stream_handler, P2P._add_protobuf_stream_handler  # noqa: SLF001 - hivemind has no other way
_limits: WeakKeyDictionary[P2P, Limits] = WeakKeyDictionary()


class Limits:
    """The streams that other peers have open to one process. For use in one event loop."""

    def __init__(self) -> None:
        self.is_groupmate: Callable[[PeerID], bool] = lambda _peer: False
        """Whether a peer is in a group with us, which needs no place of the strangers'."""

    def limited(self, handler: Handler, bounds: Bounds) -> Handler:
        """The handler of one call's streams, which closes those that are over the limits for PLACE_SECONDS."""
        return _Call(self, handler, bounds).serve


class _Call:
    def __init__(self, limits: Limits, handler: Handler, bounds: Bounds) -> None:
        self._limits, self._handler, self._bounds = limits, handler, bounds
        self._open = Counter[PeerID]()
        self._strangers: dict[object, PeerID] = {}

    async def serve(self, stream: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """In place of the handler."""
        peer, place = stream.peer_id, object()
        if self._open[peer] >= OF_ONE_PEER:
            writer.close()
            return
        self._open[peer] += 1
        try:
            if not await self._comes_in(peer):
                writer.close()
                return
            if not self._limits.is_groupmate(peer):
                self._strangers[place] = peer
            longest_frame.set(self._bounds.longest)
            caller.set(peer)
            await _served(self._handler(stream, reader, writer))
        finally:
            self._strangers.pop(place, None)
            self._open[peer] -= 1
            if not self._open[peer]:
                del self._open[peer]

    async def _comes_in(self, peer: PeerID) -> bool:
        until = time.monotonic() + PLACE_SECONDS
        while not self._has_place(peer):
            if time.monotonic() > until:
                return False
            await asyncio.sleep(LOOK_SECONDS)
        return True

    def _has_place(self, peer: PeerID) -> bool:
        if self._limits.is_groupmate(peer) or len(self._strangers) < self._bounds.strangers:
            return True
        # of some, the group was not known when their streams were opened
        self._strangers = {
            place: other for place, other in self._strangers.items() if not self._limits.is_groupmate(other)
        }
        return len(self._strangers) < self._bounds.strangers


async def _served(serving: Awaitable[None]) -> None:
    """Wait for it, and no longer than END_SECONDS once the call that it serves has ended."""
    over = asyncio.Event()
    _call_over.set(over)
    task, ended = asyncio.ensure_future(serving), asyncio.create_task(over.wait())
    try:
        await asyncio.wait({task, ended}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await asyncio.wait({task}, timeout=END_SECONDS)
    finally:
        ended.cancel()
        task.cancel()
    if task.done() and not task.cancelled():
        task.result()


def _telling_its_end(messages: Messages) -> Messages:
    """The handler of a call, which tells its stream when it has ended. A stream that says nothing ends it."""

    async def handle(requests: Any, context: P2PContext) -> AsyncGenerator[Any, None]:
        try:
            first = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FIRST_SECONDS):
                    first = await anext(requests, None)
            if first is not None:
                async with contextlib.aclosing(messages(achain(as_aiter(first), requests), context)) as answers:
                    async for answer in answers:
                        yield answer
        finally:
            if over := _call_over.get():
                over.set()
        await asyncio.sleep(END_SECONDS)  # ended when the caller closes the stream

    return handle


def limits_of(p2p: P2P) -> Limits:
    return _limits.setdefault(p2p, Limits())


async def _add(self: Any, name: str, handler: Handler, balanced: bool = False) -> None:  # noqa: FBT001, FBT002 - hivemind's
    """In place of P2P.add_binary_stream_handler."""
    bounds = next((bounds for end, bounds in BY_CALL.items() if name.endswith(end)), PARTS)
    await _stock_add(self, name, limits_of(self).limited(handler, bounds), balanced)


async def _add_messages(self: Any, name: str, handler: Messages, *args: Any, **options: Any) -> None:
    """In place of P2P._add_protobuf_stream_handler."""
    options = {"max_prefetch": PREFETCHED} | options
    await _stock_add_messages(self, name, _telling_its_end(handler), *args, **options)


def install() -> None:
    """Limit the streams to this process and its later forks. Called again, it changes nothing."""
    P2P.add_binary_stream_handler = _add
    P2P._add_protobuf_stream_handler = _add_messages  # noqa: SLF001 - hivemind has no other way
