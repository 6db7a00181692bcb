"""Which peers there are behind the ids in records: those with which libp2p has an authenticated connection, or makes one.

Anybody can sign a progress record in the name of any peer id, also of one that nobody has. The coroutine runs in the DHT's
process, which has to be forked after this module was imported.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

import hivemind
from hivemind.p2p import PeerID

from skep.worker.connection import clocks
from skep.worker.connection.stored import LONGEST_ID

MOST_ASKED: Final = 16
"""Peers without a connection, in one look. Of more peers than that, those that were not asked yet count by the part of the asked ones that answer."""
DOUBT: Final = 16
"""Peers that are taken for absent beside those that were asked, so that a few answers do not speak for many."""
PRESENT_SECONDS: Final = 120.0
"""For how long an answer counts; a peer that has gone publishes no record any more."""
ABSENT_SECONDS: Final = 15.0
"""After which a peer that did not answer is asked again."""
ANSWER_SECONDS: Final = 3.0
REMEMBERED: Final = 4096
LONGEST_TEXT: Final = math.ceil(LONGEST_ID * math.log(256, 58))
"""Characters of an id, which is base58; nobody has a longer one, and to read it takes the square of its length."""

Ask = Callable[[Sequence[str]], Mapping[str, bool]]
"""Whether there is each of the peers, by their base58 ids, of all with a connection and of the first MOST_ASKED others.

Takes up to 2 x ANSWER_SECONDS.
"""


class Attendance:
    """Answers of peers, asked in a thread of its own. `answered` is called, from that thread, when there are new ones."""

    def __init__(
        self, ask: Ask, answered: Callable[[], object] = lambda: None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask, self._answered, self._clock = ask, answered, clock
        self._seen: dict[str, tuple[bool, float]] = {}
        """Whether each peer was there, and when that was asked."""
        self._asking = threading.Lock()

    def of(self, peers: Collection[str]) -> Mapping[str, float]:
        """How far each of `peers` counts, 0..1, by what is known now; has those asked of which too little is."""
        self._ask_some([peer for peer in peers if len(peer) <= LONGEST_TEXT])
        seen = dict(self._seen)
        answered, now = sum(seen[peer][0] for peer in peers if peer in seen), self._clock()
        # also those whose records are gone: who invents peers need not invent the same ones for long
        silent = sum(not there and now - at < PRESENT_SECONDS for there, at in seen.values())
        part = answered / (answered + silent + DOUBT) if len(peers) > MOST_ASKED else 0.0
        unknown = {peer: part if len(peer) <= LONGEST_TEXT else 0.0 for peer in peers if peer not in seen}
        return {peer: float(seen[peer][0]) for peer in peers if peer in seen} | unknown

    def _ask_some(self, peers: Collection[str]) -> None:
        due = [peer for peer in peers if self._is_due(peer)]
        if due and self._asking.acquire(blocking=False):
            random.shuffle(due)
            due.sort(key=self._seen.__contains__)  # those that were never asked first
            threading.Thread(target=self._look, args=(due[:REMEMBERED],), name="attendance", daemon=True).start()

    def _is_due(self, peer: str) -> bool:
        there, at = self._seen.get(peer, (False, float("-inf")))
        return self._clock() - at >= (PRESENT_SECONDS if there else ABSENT_SECONDS)

    def wait(self, within: float) -> bool:
        """Wait until nobody is being asked; whether that is so."""
        if not self._asking.acquire(timeout=within):
            return False
        self._asking.release()
        return True

    def ask_again(self) -> bool:
        """Have all asked anew at the next question, if none that was asked has answered; whether that is so."""
        seen = dict(self._seen)
        if not seen or any(there for there, _ in seen.values()):
            return False
        self._seen = {}
        return True

    def _look(self, due: Sequence[str]) -> None:
        found: Mapping[str, bool] = {}
        try:
            # a DHT that has ended or hangs is another watch's business, and says nothing about the peers
            with contextlib.suppress(Exception):
                found = self._ask(due)
            before = {peer: self._seen.get(peer, (False, 0.0))[0] for peer in found}
            now = self._clock()
            self._seen |= {peer: (there, now) for peer, there in found.items()}
            while len(self._seen) > REMEMBERED:
                del self._seen[min(self._seen, key=lambda peer: self._seen[peer][1])]
        finally:
            self._asking.release()
        if any(before[peer] != there for peer, there in found.items()):
            self._answered()


def asking(dht: hivemind.DHT) -> Ask:
    """What Attendance asks with: the peers that are connected with ours, or answer a ping of the DHT."""

    def ask(peers: Sequence[str]) -> Mapping[str, bool]:
        look = dht.run_coroutine(partial(_present, peers=peers), return_future=True)
        found: Mapping[str, bool] = look.result(2 * ANSWER_SECONDS)
        return found

    return ask


async def _present(_dht: hivemind.DHT, node: Any, *, peers: Sequence[str]) -> Mapping[str, bool]:
    connected = {str(each.peer_id) for each in await node.p2p.list_peers()}
    own = str(node.p2p.peer_id)  # under which a process before this one has left a record
    others = [peer for peer in peers if peer not in connected and peer != own][:MOST_ASKED]
    answers = await asyncio.gather(*(_is_there(node, peer) for peer in others))
    found = dict.fromkeys(connected.intersection(peers), True) | dict(zip(others, answers, strict=True))
    return found | dict.fromkeys({own}.intersection(peers), False)


async def _is_there(node: Any, peer: str) -> bool:
    ahead, _ = await clocks.compare(node, PeerID.from_base58(peer), ANSWER_SECONDS)
    return ahead is not None
