"""Asking the project's seeds for the version of skep's protocol that they have, which decides the run id.

Peers of two versions are in two swarms, so that each would find nobody, and train alone. Only the seeds that the manifest
names are asked, directly: what other peers say, those through which a join went while no seed answered too, could keep
volunteers away. Stock seeds do not answer. The coroutines run in the DHT's process, which has to be forked after this
module was imported.

On the wire, in a stream of the libp2p protocol NAME, which all versions have to answer: two bytes (big endian), the
version.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import hivemind
from hivemind.p2p import PeerID

from skep.core.errors import SkepError, SwarmError
from skep.core.project.manifest import PROTOCOL
from skep.core.session.messages import WorkerNoticed
from skep.core.text import Problem, Text
from skep.worker.connection.lookout import Lookout
from skep.worker.connection.seeds import by_identity, expect_records, greet, peers_of

NAME: Final = "skep-protocol-version"
ANSWER_SECONDS: Final = 5.0
DIAL_SECONDS: Final = 4 * ANSWER_SECONDS
"""How long all seeds may take to be dialled, pinged, and asked."""
LOOK_SECONDS: Final = 600.0
"""Between two looks during a run."""

TOO_OLD: Final = Problem(Text("swarm.update_skep_to_join"), Text("swarm.project_moved_on_to_newer_protocol"))
TOO_NEW: Final = Problem(Text("swarm.others_run_older_skep"), Text("swarm.trains_with_them_when_updated"))
AGREES: Final = Problem(Text("swarm.others_run_this_skep"))


class Versions:
    """Compares the version of this skep, `own`, with those of the seeds in `peers` (multiaddresses) that answer.

    `run_of` gives the run id of a version; without it runs of older versions are not looked for.
    """

    def __init__(
        self,
        dht: hivemind.DHT,
        peers: Sequence[str],
        run_of: Callable[[int], str] | None = None,
        own: int = PROTOCOL,
    ) -> None:
        self._dht, self._peers, self._run_of, self._own = dht, peers, run_of, own
        self._expected = set[str]()

    def check(self) -> None:
        """Raise SkepError, which no retry can mend, if this skep is too old, and SwarmError while it is too new.

        Of the seeds those through which `dht` was started are asked: to wait for others would delay every join.
        """
        try:
            told = self._answer(partial(_ask_met, peers=self._peers))
            problem = self._problem(told, ours=0)
        except TimeoutError:
            return
        if problem is TOO_OLD:
            raise SkepError(problem.title, problem.hint)
        if problem is not None:
            raise SwarmError(problem.title, problem.hint)

    def problem(self, ours: int = 0) -> Problem | None:
        """TOO_OLD, if all seeds have a newer version. TOO_NEW, if all have an older one, in which there are peers.

        There must be no more than `ours` peers of this version then. All seeds are dialled. Raises TimeoutError.
        """
        return self._problem(self._answer(partial(_ask_all, peers=self._peers), DIAL_SECONDS), ours)

    def _problem(self, told: Sequence[int], ours: int) -> Problem | None:
        if is_too_old(self._own, told):
            return TOO_OLD
        if self._run_of is None or max(told, default=self._own) >= self._own:
            return None
        older = any(self._count(self._run_of(version)) for version in set(told))
        return TOO_NEW if older and self._count(self._run_of(self._own)) <= ours else None

    def _count(self, run_id: str) -> int:
        if run_id not in self._expected:
            self._expected.add(run_id)
            expect_records(self._dht, run_id)
        # a seed's keeper publishes a record while nobody trains
        seeds = {PeerID.from_base58(_id(address)).to_bytes() for address in self._peers}
        return int(self._answer(partial(peers_of, run_id=run_id, patience=ANSWER_SECONDS, without=seeds)))

    def _answer(self, question: Callable[..., Any], within: float = 2 * ANSWER_SECONDS) -> Any:
        answer = self._dht.run_coroutine(question, return_future=True)
        try:
            return answer.result(within)
        except TimeoutError:
            answer.cancel()
            raise


class VersionWatch(Lookout):
    """Tells, during a run, when seeds and other peers have come to another version of skep than ours, or to ours."""

    def __init__(self, ask: Callable[[], Problem | None], tell: Callable[[WorkerNoticed], object]) -> None:
        super().__init__(tell, LOOK_SECONDS)
        self._ask = ask

    def look(self) -> None:
        self.notice(self._ask(), AGREES)


def is_too_old(own: int, told: Iterable[int]) -> bool:
    """Whether seeds told their versions, and all have a newer one."""
    return min(told, default=own) > own


def answer_others(dht: hivemind.DHT, own: int = PROTOCOL) -> None:
    """Start answering peers that ask for the version."""
    dht.run_coroutine(partial(_serve, own=own))


async def _ask_met(dht: hivemind.DHT, node: Any, *, peers: Sequence[str]) -> list[int]:
    # the DHT was given those that accept connections
    given = {_id(str(address)) for address in dht.initial_peers or ()}
    return await _answers_of(node, given.intersection(map(_id, peers)))


async def _ask_all(dht: hivemind.DHT, node: Any, *, peers: Sequence[str]) -> list[int]:
    # one that was away when the DHT started is in no routing table, and neither are the peers that only it knows
    seeds = by_identity(peers)
    met = await asyncio.gather(*(greet(dht, node, seed, where, ANSWER_SECONDS) for seed, where in seeds.items()))
    return await _answers_of(node, [seed for seed, each in zip(seeds, met, strict=True) if not each.failure])


async def _answers_of(node: Any, seeds: Iterable[str]) -> list[int]:
    answers = await asyncio.gather(*(_ask(node.p2p, PeerID.from_base58(seed)) for seed in seeds))
    return [answer for answer in answers if answer is not None]


def _id(address: str) -> str:
    return address.rpartition("/p2p/")[2]


async def _ask(p2p: Any, seed: PeerID) -> int | None:
    """The seed's version; None when it does not answer."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            _, reader, writer = await p2p.call_binary_stream_handler(seed, NAME)
            with contextlib.closing(writer):
                return int.from_bytes(await reader.readexactly(2), "big")
    except Exception:  # noqa: BLE001 - whatever p2pd says of a peer that does not know the protocol, or is gone
        return None


async def _serve(_dht: hivemind.DHT, node: Any, *, own: int) -> None:
    async def answer(_stream: Any, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError):
            writer.write(own.to_bytes(2, "big"))
            await writer.drain()

    await node.p2p.add_binary_stream_handler(NAME, answer)
