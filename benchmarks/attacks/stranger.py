"""A hostile peer: its connection to a run, and how it says to other peers what no honest one would."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from hivemind.dht import DHTID
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.validation import DHTRecord
from hivemind.optim.grad_averager import GradientAverager
from hivemind.optim.state_averager import TrainingStateAverager
from hivemind.p2p import P2P, P2PDaemonError, P2PHandlerError, PeerID
from hivemind.proto import dht_pb2
from hivemind.utils import MSGPackSerializer, get_dht_time
from hivemind.utils.crypto import RSAPrivateKey

LATER = 60.0
"""Seconds that a record lasts."""
ANSWER_SECONDS = 3.0
Run = TypeVar("Run")
REGULAR, DICTIONARY = DHTProtocol.IS_REGULAR_VALUE, DHTProtocol.IS_DICTIONARY


def ready() -> None:
    """Say that the attack begins."""
    print("ready", flush=True)


@dataclass(frozen=True)
class Target:
    """The run that is attacked: an address to dial, the peers to harm, and the shapes of its parameters."""

    address: str
    run_id: str
    peers: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    target_batch_size: int
    epoch: int
    """The one that the run is in, when the attack begins."""
    seconds: float
    reduces: bool = True
    """Whether an attacker that takes part in rounds averages a part of the values for its groupmates."""


@dataclass(frozen=True)
class Attack(Generic[Run]):
    """What is done to a run; the counts of an attack by a whole peer are what it returns.

    `limited` says why it can be limited only and not refused, so that honest parameters may differ from those of a run
    without it; empty if it can be refused.
    """

    run: Run
    limited: str = ""


@dataclass
class Stranger:
    target: Target
    p2p: P2P
    counts: dict[str, int] = field(default_factory=dict)
    """How often something was tried, accepted, refused."""
    _ends: float = 0.0

    @classmethod
    async def arrive(cls, target: Target) -> Stranger:
        made = cls(target, await P2P.create(initial_peers=[target.address], startup_timeout=60))
        made._ends = time.monotonic() + target.seconds
        return made

    @property
    def peers(self) -> list[PeerID]:
        return [PeerID.from_base58(each) for each in self.target.peers]

    @property
    def lasts(self) -> bool:
        """Whether the attack goes on."""
        return time.monotonic() < self._ends

    async def over(self) -> None:
        """Wait until the attack is over."""
        await asyncio.sleep(max(0.0, self._ends - time.monotonic()))

    @property
    def progress_key(self) -> str:
        return f"{self.target.run_id}_progress"

    @property
    def gradients(self) -> str:
        return f"{self.target.run_id}_grad_averager"

    @property
    def state(self) -> str:
        return f"{self.target.run_id}_state_averager"

    def count(self, what: str, more: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + more

    async def repeat(self, attempt: Callable[[], Awaitable[Any]], pause: float = 0.05) -> None:
        """Make attempts, one after the other, as long as the attack goes on."""
        while self.lasts:
            await attempt()
            await asyncio.sleep(pause)

    async def tried(self, attempt: Awaitable[Any], within: float = ANSWER_SECONDS) -> Any:
        """The answer; None if there is none. Whatever is answered, the attacker goes on."""
        self.count("tried")
        try:
            answer = await asyncio.wait_for(attempt, within)
        except (P2PHandlerError, P2PDaemonError, TimeoutError, OSError, EOFError, StopAsyncIteration):
            self.count("refused")
            return None
        self.count("answered")
        return answer

    async def at_once(self, attempts: Iterable[Awaitable[Any]], within: float = ANSWER_SECONDS) -> list[Any]:
        return await asyncio.gather(*(self.tried(each, within) for each in attempts))

    # --- the DHT

    def dht(self, peer: PeerID) -> Any:
        return super(DHTProtocol, DHTProtocol).get_stub(self.p2p, peer)  # its own is for nodes, which sign requests

    async def store(
        self,
        key: str,
        value: bytes,
        *,
        tag: bytes = REGULAR,
        expires: float | None = None,
    ) -> None:
        """Ask every peer to store raw bytes under a key: as a value, as a whole dictionary, or with `tag` as a subkey."""
        request = dht_pb2.StoreRequest(
            keys=[DHTID.generate(source=key).to_bytes()],
            subkeys=[tag],
            values=[value],
            expiration_time=[get_dht_time() + LATER if expires is None else expires],
            in_cache=[False],
        )
        await self.send(request)

    async def send(self, request: dht_pb2.StoreRequest) -> None:
        answers = await self.at_once(self.dht(peer).rpc_store(request, timeout=ANSWER_SECONDS) for peer in self.peers)
        self.count("stored", sum(sum(answer.store_ok) for answer in answers if answer is not None))

    async def claim(self, samples: Any = 0, epoch: Any = 0, rate: Any = 1.0, **more: Any) -> None:
        """Publish a progress record with a new key of its own, signed as it must be, that says this."""
        peer_id = secrets.token_bytes(32)
        said = {
            "peer_id": peer_id,
            "epoch": epoch,
            "samples_accumulated": samples,
            "samples_per_second": rate,
            "time": get_dht_time(),
            "client_mode": False,
        } | more
        signer, expires = RSASignatureValidator(RSAPrivateKey()), get_dht_time() + LATER
        subkey = MSGPackSerializer.dumps(signer.local_public_key)
        key = DHTID.generate(source=self.progress_key).to_bytes()
        value = MSGPackSerializer.dumps(said)
        signed = signer.sign_value(DHTRecord(key, subkey, value, expires))
        await self.store(self.progress_key, signed, tag=subkey, expires=expires)

    # --- the averagers

    async def open(self, peer: PeerID, name: str) -> asyncio.StreamWriter:
        """A call of which every byte is ours."""
        _, _, writer = await self.p2p._client.stream_open(peer, (name,))  # noqa: SLF001 - hivemind's own calls send messages
        return writer

    def averager(self, peer: PeerID, *, of_state: bool = False) -> Any:
        kind = TrainingStateAverager if of_state else GradientAverager
        return kind.get_stub(self.p2p, peer, namespace=self.state if of_state else self.gradients)

    async def first_answer(self, calling: Awaitable[AsyncIterator[Any]]) -> Any:
        """The first message of a stream's answers; the stream is left open."""
        return await anext(aiter(await calling))

    async def drained(self, calling: Awaitable[AsyncIterator[Any]]) -> int:
        """Read all answers of a stream; their number."""
        return sum([1 async for _ in await calling])


Calling = Attack[Callable[[Stranger], Awaitable[None]]]
"""An attack by single calls."""
AsPeer = Attack[Callable[[Target], dict[str, int]]]
"""An attack by a whole peer of stock hivemind."""
