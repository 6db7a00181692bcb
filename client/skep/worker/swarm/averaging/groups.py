"""Which groups an averager is in, who of its groupmates is lost or avoided, and what a peer may say of itself for a round.

Stock behaviour that this corrects, each covered by a test:
- a part for a group that is over waits until this peer's next round, and a part for a group that will begin is refused
  if another one ends meanwhile;
- a peer that claims a large bandwidth reduces the whole model for its group, and so decides what the average is;
- a peer whose claim cannot be decoded makes the round fail for its whole group;
- a peer one epoch behind is taken into the group of the next epoch. Its round is due and the others' is not: it gives up
  before they begin, is missing in their round, and behind again in the next one.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hivemind.averaging.allreduce import AveragingMode
from hivemind.averaging.control import StepControl
from hivemind.dht import DHTID
from hivemind.p2p import PeerID
from hivemind.utils import MSGPackSerializer

GROUP_ID_BYTES: Final = DHTID.HASH_NBYTES
"""Length of a group's id; that of one of several all-reduces of a round begins with it."""
UNKNOWN_SECONDS: Final = 3.0
"""How long a groupmate may send before the leader's answer has named the group to us: a request's longest time."""
KEPT: Final = 64
"""Number of groups that are remembered after their end, of groupmates, and of peers that are avoided."""
LOST_LOOK_SECONDS: Final = 0.5
"""Between two questions to a groupmate that is waited for."""
TRUSTED_ROUNDS: Final = 3
"""A peer may lead us, rather than one that is unknown, for so many rounds after it has last delivered its data in one."""

AVOIDED_SECONDS: Final = 300.0
"""How long a peer that has returned what no honest one does is neither taken into a group nor looked for. It may be mended
by then. A group of others with it is no reason to stay away: it would lose the part that we average."""
AVOIDED_BRIEFLY_SECONDS: Final = 60.0
"""The same for one that was alone with us, as a swarm of two averages nothing meanwhile. Not at all would be worse for a
newcomer: while the others avoid a peer that harms their rounds, it would find that peer alone, round after round."""

LONGEST_CLAIM: Final = 4096
"""Bytes that a peer may say of itself for a round; a peer of skep or stock hivemind says about ten."""
MOST_BANDWIDTH: Final = 1.0
"""What peers of skep claim that can be reached directly. Stock peers claim nothing, unless their program does."""

EPOCH: Final = "epoch"
"""In what a peer of skep says of itself for a round. Stock peers say a number, which may be one off, or nothing."""
DUE: Final = "due"
"""Beside EPOCH: whether the epoch was over already when the peer began to search, so that its round begins immediately."""
LONGEST_EPOCH: Final = 9
"""Digits of an epoch in a message of a round."""


def is_credible(claim: bytes) -> bool:
    """Whether what a peer says of itself for a round can be read, and its bandwidth is none, or 0 to MOST_BANDWIDTH."""
    if len(claim) > LONGEST_CLAIM:
        return False
    try:
        bandwidth, mode, data = MSGPackSerializer.loads(claim)
        AveragingMode(mode)
        MSGPackSerializer.loads(data)
    except Exception:  # noqa: BLE001 - another peer's bytes may raise anything
        return False
    return bandwidth is None or (isinstance(bandwidth, int | float) and 0 <= bandwidth <= MOST_BANDWIDTH)


def _said(claim: bytes) -> Mapping[Any, Any]:
    """What a peer of skep says beside hivemind's own part of a claim; nothing if it is none."""
    said = MSGPackSerializer.loads(MSGPackSerializer.loads(claim)[2]) if is_credible(claim) else None
    return said if isinstance(said, dict) else {}


def epoch_told(claim: bytes) -> int | None:
    """The epoch that a peer of skep says that it brings to a round; None if it does not say."""
    epoch = _said(claim).get(EPOCH)
    return epoch if type(epoch) is int else None


def of_one_epoch(search: StepControl, claim: bytes) -> bool:
    """Whether a peer with this claim may be in the group that we search for: not if it says another epoch than ours."""
    own, other = epoch_told(search.data_for_gather), epoch_told(claim)
    return own is None or other is None or own == other


def due_together(search: StepControl, claim: bytes) -> bool:
    """As `of_one_epoch`, and of different epochs if the round of the one in the later epoch is due too.

    Else the one behind, whose round is due, gives up before the other begins.
    """
    if of_one_epoch(search, claim):
        return True
    ours_is_later = (epoch_told(search.data_for_gather) or 0) > (epoch_told(claim) or 0)
    return search.triggered if ours_is_later else _said(claim).get(DUE) is True


def as_message(epoch: int | None) -> bytes:
    """What a peer of skep says to each groupmate itself, in a field that hivemind declares and nowhere reads."""
    return b"" if epoch is None else str(epoch).encode()


def from_message(told: bytes) -> int | None:
    """The epoch that a groupmate says itself; None if it does not say."""
    return int(told) if told.isdigit() and len(told) <= LONGEST_EPOCH else None


@dataclass(frozen=True)
class Expected:
    """Who should be in a peer's next group: those of its last round, or all that look for one, if the others are more.

    So of two parts of a swarm that have averaged apart from each other the smaller one joins the larger one, and a newcomer
    that was alone with one peer does not stay with it.
    """

    peers: Collection[PeerID]
    known: bool
    """Whether these are those of the last round, and as many as all others that look for a group."""

    def has_enough(self, members: Iterable[PeerID], *, all_of_them: bool) -> bool:
        """Whether a group of `members` has at least half of them, or all."""
        found = len(set(members).intersection(self.peers))
        return found * (1 if all_of_them else 2) >= len(self.peers)


class Company:
    """Groupmates of earlier rounds, who of them delivered its data, who is lost, and who is avoided.

    A connection is closed at once when a peer's process dies, and stays otherwise. One that hangs stays connected, and
    answers nothing. `connected` returns the peers that p2pd has a connection to, None if it does not say; `answers` asks
    one, which connects to it if needed, and returns whether it has said anything, a refusal too, within so many seconds.
    """

    def __init__(
        self,
        connected: Callable[[], Awaitable[set[PeerID] | None]],
        answers: Callable[[PeerID, float], Awaitable[bool]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connected, self._answers, self._clock = connected, answers, clock
        self._met: dict[PeerID, None] = {}
        self._heard: deque[frozenset[PeerID]] = deque(maxlen=TRUSTED_ROUNDS)
        """Whose whole data was averaged with ours in each of the last rounds in which there was any."""
        self._caught: dict[PeerID, float] = {}
        """Until when a peer that has harmed a round is avoided."""

    @property
    def met(self) -> frozenset[PeerID]:
        return frozenset(self._met)

    async def meet(self, groupmates: Iterable[PeerID]) -> None:
        """A round with them is over."""
        connected = await self._connected() or set()
        for peer in groupmates:
            if peer in connected:
                self._met.pop(peer, None)  # so that the last entries are those seen last
                self._met[peer] = None
        for peer in list(self._met)[:-KEPT]:
            del self._met[peer]

    def hear(self, peers: Iterable[PeerID]) -> None:
        """A round has averaged our data with that of these peers."""
        if heard := frozenset(peers):
            self._heard.append(heard)

    def trusts(self, peer: PeerID) -> bool:
        return any(peer in heard for heard in self._heard)

    async def expected(self, looking: Iterable[PeerID]) -> Expected:
        """Who should be in our next group, of those that are connected and not avoided; nobody if p2pd does not say.

        Of those `looking` for a group, each that has a progress record was tried to connect to (see `attendance`).
        """
        connected = await self._connected() or set()
        last = {
            peer for peer in (self._heard[-1] if self._heard else ()) if peer in connected and not self.avoids(peer)
        }
        others = {peer for peer in looking if peer in connected and not self.avoids(peer)} - last
        return Expected(last, known=True) if len(last) >= len(others) else Expected(last | others, known=False)

    def avoid(self, peer: PeerID, *, briefly: bool = False) -> None:
        """The peer has returned or sent what no honest one does: a round with it would be lost again."""
        seconds = AVOIDED_BRIEFLY_SECONDS if briefly else AVOIDED_SECONDS
        until = max(self._clock() + seconds, self._caught.pop(peer, -math.inf))
        self._caught[peer] = until
        for earlier in list(self._caught)[:-KEPT]:
            del self._caught[earlier]

    def avoids(self, peer: PeerID) -> bool:
        return self._clock() < self._caught.get(peer, -math.inf)

    async def is_gone(self, hanging: Collection[PeerID] = ()) -> bool:
        """Whether there were groupmates, and none is connected any more, apart from those that are `hanging`."""
        connected = await self._connected() if self._met else None
        return connected is not None and not (self._met.keys() - set(hanging)) & connected

    async def hangs(self, peer: PeerID, patience: float) -> bool:
        """Whether a peer answers nothing for `patience` s."""
        return not await self._answers(peer, patience)

    async def until_lost(self, peer: PeerID, patience: float) -> None:
        """Return once a groupmate of earlier rounds cannot be connected to, or any has not answered for `patience` s."""
        while await self._answers(peer, patience):
            connected = await self._connected()
            if peer in self._met and connected is not None and peer not in connected:
                return
            await asyncio.sleep(LOST_LOOK_SECONDS)


class Groups:
    """The groups of an averager, in its own process: those it found, those that average, those that are over.

    `running` returns the ids of those that average, each the id of the group with a suffix for one all-reduce of several.
    """

    def __init__(self, running: Callable[[], Container[bytes]], unknown_seconds: float = UNKNOWN_SECONDS) -> None:
        self._running, self._unknown_seconds = running, unknown_seconds
        self._found: dict[StepControl, set[bytes]] = defaultdict(set)
        self._members: dict[bytes, frozenset[PeerID]] = {}
        self._over: deque[bytes] = deque(maxlen=KEPT)
        self._changed = asyncio.Event()

    def found(self, group: bytes, step: StepControl, members: Iterable[PeerID] = ()) -> None:
        """The search of `step` has ended with a group; averaging in it begins when the step is due."""
        self._found[step].add(group)
        self._members[group] = frozenset(members)
        self.tell()

    def has(self, peer: PeerID) -> bool:
        """Whether this peer is in a group that is not over."""
        return any(peer in members for members in self._members.values())

    def epoch_of(self, group: bytes) -> int | None:
        """The epoch that this peer brings to the group's round; None if it does not say."""
        return next((epoch_told(step.data_for_gather) for step, found in self._found.items() if group in found), None)

    def end(self, group: bytes) -> None:
        """Nothing will be averaged in this group any more."""
        for groups in self._found.values():
            groups.discard(group)
        self._members.pop(group, None)
        self._over.append(group)
        self.tell()

    def end_all(self, step: StepControl) -> None:
        """`step` is over, and with it each group that it found."""
        for group in self._found.pop(step, ()):
            self.end(group)

    def tell(self) -> None:
        """What waits in `comes` looks again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def comes(self, all_reduce: bytes) -> bool:
        """Wait until an all-reduce runs; return False if its group is over, or if this peer is not in it."""
        unknown_until = asyncio.get_running_loop().time() + self._unknown_seconds
        group = all_reduce[:GROUP_ID_BYTES]
        while all_reduce not in self._running():
            if group in self._over:
                return False
            known = any(group in groups for groups in self._found.values())
            try:
                async with asyncio.timeout_at(None if known else unknown_until):
                    await self._changed.wait()
            except TimeoutError:
                return False
        return True
