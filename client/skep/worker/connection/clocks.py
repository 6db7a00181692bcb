"""Whether this computer's clock agrees with those of other peers, during a run. hivemind looks at the join only.

The coroutine runs in the DHT's process, which has to be forked after this module was imported.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, Final

import hivemind
from hivemind.dht.protocol import MAX_DHT_TIME_DISCREPANCY_SECONDS
from hivemind.p2p import PeerID
from hivemind.proto import dht_pb2

from skep.core.session.messages import WorkerNoticed
from skep.core.text import Problem, Text
from skep.worker.connection.lookout import Lookout

LOOK_SECONDS: Final = 60.0
"""Between two looks; each sends a request of a hundred bytes to MOST_ASKED peers at most."""
MOST_ASKED: Final = 5
ANSWER_SECONDS: Final = 5.0
AGAIN: Final = 0.5
"""Clocks agree again below this part of the largest difference, so that a clock at the limit is not told of each minute."""

AGREES: Final = Problem(Text("clock.agrees_again"))


class ClockWatch(Lookout):
    """Tells when this computer's clock differs too much from the median of other peers', and when it agrees again.

    `ask` returns by how many seconds our clock is ahead of that of each peer that answers.
    """

    def __init__(self, ask: Callable[[], Sequence[float]], tell: Callable[[WorkerNoticed], object]) -> None:
        super().__init__(tell, LOOK_SECONDS)
        self._ask = ask

    def look(self) -> None:
        told = self._ask()
        if not told:
            return
        ahead = median(told)
        if self.standing is None and abs(ahead) > MAX_DHT_TIME_DISCREPANCY_SECONDS:
            title = Text("clock.ahead" if ahead > 0 else "clock.behind", seconds=abs(ahead))
            self.notice(Problem(title, Text("swarm.set_clock")), AGREES)
        elif abs(ahead) < AGAIN * MAX_DHT_TIME_DISCREPANCY_SECONDS:
            self.notice(None, AGREES)


def asking(dht: hivemind.DHT) -> Callable[[], Sequence[float]]:
    """What ClockWatch asks: peers that `dht` knows, chosen at random.

    What is uncertain of a difference is left out of it: a computer may sleep between a question and its answer.
    """

    def ask() -> Sequence[float]:
        answer: Sequence[float] = dht.run_coroutine(_compare_all, return_future=True).result(2 * ANSWER_SECONDS)
        return answer

    return ask


async def _compare_all(_dht: hivemind.DHT, node: Any) -> list[float]:
    known = list(node.protocol.routing_table.uid_to_peer_id.values())
    asked = random.sample(known, min(MOST_ASKED, len(known)))
    answers = await asyncio.gather(*(compare(node, peer, ANSWER_SECONDS) for peer in asked))
    return [math.copysign(max(0.0, abs(ahead) - by), ahead) for ahead, by in answers if ahead is not None]


async def compare(node: Any, peer: PeerID, patience: float) -> tuple[float | None, float]:
    """By how many seconds our clock is ahead of the peer's, and to how many that is known.

    None where the peer's DHT does not answer us within `patience` seconds, as in a swarm by invitation that we are not in.
    """
    request = dht_pb2.PingRequest(peer=node.protocol.node_info, validate=False)
    asked = time.time()
    try:
        response = await node.protocol.get_stub(peer).rpc_ping(request, timeout=patience)
        answered = time.time()
        told = float(response.dht_time)
    except Exception:  # noqa: BLE001 - whatever p2pd or the authorizer say
        return None, 0.0
    return (asked + answered) / 2 - told, (answered - asked) / 2
