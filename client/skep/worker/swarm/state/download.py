"""Loading a state from the swarm: from one donor after the other, checked while it arrives. In the averager's process.

Stock behaviour that this corrects, each covered by a test: a download goes on when its caller has given up, and another
begins beside it; a stream that ends early counts as a state; what arrives is checked, if at all, when all of it is in
memory; a donor that never sends anything is waited for as long as one that does. There is no limit on the time of a
whole download: a donor is left when it sends nothing, or something wrong, or while another can be asked hardly anything.
What came from it is kept, in case that the next one has the same bytes (see `donor`); a stock donor sends everything again.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec
import torch
from google.protobuf.message import DecodeError
from hivemind.p2p import P2PDaemonError, P2PHandlerError, PeerID
from hivemind.proto import averaging_pb2, runtime_pb2
from hivemind.utils import get_logger
from hivemind.utils.streaming import STREAMING_CHUNK_SIZE_BYTES

from skep.core.text import Text
from skep.worker.swarm.state.arriving import ArrivingTensor
from skep.worker.swarm.state.asked import Asked, BrokenOffError, BusyError, SlowError, UnbelievedError
from skep.worker.swarm.state.donor import Offer, Place
from skep.worker.swarm.state.pieces import Piece, Refusal, check, unfit

logger = get_logger(__name__)
Arrived = tuple[int, list[torch.Tensor]]
"""The epoch (0 for what has none), and the tensors."""
Frames = AsyncGenerator[averaging_pb2.DownloadData, None]

COPY_BYTES_PER_SECOND: Final = 50_000_000
"""Least rate at which a donor copies its state before it sends the first frame."""
STALL_SECONDS: Final = 15.0
SLOWER: Final = 10
"""A donor may take this many times its own mean time per frame before it counts as stalled, LONGEST_STALL_SECONDS at most."""
LONGEST_STALL_SECONDS: Final = 120.0
PAUSE_SECONDS: Final = 2.0
"""Before a donor is asked to go on, and before the donors are asked again."""
PATIENCE_SECONDS: Final = 60.0
"""How long what has arrived is kept while no donor can be reached, as when this computer has no connection: for as long
as it took to arrive, but this long at least."""
LONGEST_PATIENCE_SECONDS: Final = 1800.0
"""The same at most: by then there are other states."""
COPIES: Final = 2
"""A donor that begins more copies while it is asked to go on is left for the next one."""
AHEAD: Final = 1
"""How far a state's epoch may be beyond the one that is believed when its donor begins to send: others may just have
made a step of which nothing is known here."""
EPOCHS_AHEAD: Final = 10
"""How far the epoch that a donor publishes may be beyond what was known when the download began, or it is asked last."""


@dataclass(frozen=True)
class Wanted:
    """What is asked for. `epochs` are the least acceptable one and the newest known one; None for what has no epoch."""

    pieces: tuple[Piece, ...]
    epochs: tuple[int, int] | None = None

    @property
    def total(self) -> int:
        return sum(piece.wire_bytes for piece in self.pieces)


class Label(msgspec.Struct, frozen=True):
    """Of hivemind's metadata of a state, what is used."""

    epoch: int


class NotAllowedError(BrokenOffError):
    """The donor may not hand over a state, or not any more."""


class Open(Protocol):
    """Calls a donor: hivemind's call without a `place`, else skep's. Raises any error of hivemind."""

    def __call__(self, donor: PeerID, place: Place | None) -> Awaitable[Frames]: ...


class Progress:
    """Seen in both processes, if made before the fork: bytes that have arrived, when something happened last, and the
    swarm's epoch as it is believed now, which only the training process knows.
    """

    def __init__(self) -> None:
        self._received = multiprocessing.Value("q", 0, lock=False)
        self._known = multiprocessing.Value("q", 0, lock=False)
        self._stirred_at = multiprocessing.Value("d", 0.0, lock=False)

    @property
    def received(self) -> int:
        return int(self._received.value)

    @property
    def stirred_at(self) -> float:
        """Monotonic seconds."""
        return float(self._stirred_at.value)

    @property
    def known(self) -> int:
        """The epoch that is believed; 0 until it was said during this download."""
        return int(self._known.value)

    @known.setter
    def known(self, epoch: int) -> None:
        self._known.value = epoch

    def note(self, received: int) -> None:
        self._received.value = received
        self._stirred_at.value = time.monotonic()


@dataclass(eq=False)
class Partial:
    """What has arrived of one donor's copy, if also from other donors that have the same bytes.

    `taken` counts what came from all of them, in `seconds`, and `received` what is of use.
    """

    wanted: Wanted
    progress: Progress
    copy: str = ""
    epoch: int | None = None
    tensors: list[torch.Tensor] = field(default_factory=list)
    taken: int = 0
    seconds: float = 0.0
    kept: int = 0
    """The bytes of use when the present attempt began."""
    _ends: list[int] = field(default_factory=list)
    """The bytes up to the end of each whole tensor."""
    _digests: list[bytes] = field(default_factory=list)
    _next: ArrivingTensor | None = None
    """The tensor that is not whole yet."""

    @property
    def received(self) -> int:
        return (self._ends[-1] if self._ends else 0) + self._part_bytes

    @property
    def _part_bytes(self) -> int:
        return self._next.bytes if self._next else 0

    @property
    def place(self) -> Place:
        part = [self._next.digest] if self._next else []
        return Place(self.copy, len(self.tensors), self._part_bytes, (*self._digests, *part))

    @property
    def complete(self) -> bool:
        return self.epoch is not None and len(self.tensors) == len(self.wanted.pieces)

    def begin(self, offer: Offer) -> None:
        """The donor names its copy; what came of another one is kept as far as it is the same in this one.

        Raises Refusal, BrokenOffError.
        """
        epoch = self._checked(offer.metadata)
        if not offer.copy or offer.copy != self.copy:
            self._keep(offer.tensors, offer.part)
        self.copy, self.epoch, self.kept = offer.copy, epoch, self.received
        self.progress.note(self.received)

    def _keep(self, tensors: int, part: int) -> None:
        if (tensors, part) == (len(self.tensors), self._part_bytes):
            return
        if part or not 0 <= tensors <= len(self.tensors):
            raise self._unlike(tensors)
        self._next = None
        del self.tensors[tensors:], self._ends[tensors:], self._digests[tensors:]

    def _checked(self, metadata: bytes) -> int:
        if self.wanted.epochs is None:
            return 0
        try:
            # nothing else of it is used, and so nothing else is decoded
            epoch, (least, asked) = msgspec.msgpack.decode(metadata, type=Label).epoch, self.wanted.epochs
        except (ValueError, RecursionError):  # also what msgspec raises
            raise Refusal(Text("peer.peer_sent_training_state_without"), Text("peer.skep_tries_another_peer")) from None
        if epoch < least:
            raise BrokenOffError("an older state than ours")
        known = max(asked, self.progress.known)
        if epoch > known + AHEAD:
            raise UnbelievedError(
                Text("peer.peer_claims_epoch", theirs=epoch, known=known), Text("peer.skep_tries_another_peer")
            )
        return epoch

    def add(self, part: runtime_pb2.Tensor) -> None:
        """One frame of a tensor. Raises Refusal."""
        number = len(self.tensors)
        if number == len(self.wanted.pieces):
            raise self._unlike(number + 1)
        piece = self.wanted.pieces[number]
        if bool(part.dtype) == bool(self._next):
            raise self._unlike(number)  # it ended before it was whole, or it begins in the middle
        if not self._next:
            self._check_first(number, piece, part)
            self._next = ArrivingTensor(piece, part)
        try:
            self._next.add(part)
        except ValueError:
            raise self._unlike(number) from None
        self.taken += len(part.buffer)
        if self._part_bytes > piece.most_bytes:
            raise self._unlike(number)
        if self._next.frames >= self._next.chunks:
            self._finish(number, piece, self._next)
        self.progress.note(self.received)

    def _check_first(self, number: int, piece: Piece, part: runtime_pb2.Tensor) -> None:
        # before anything is decoded: a dtype or a shape may ask for any amount of memory
        if tuple(part.size) != piece.shape or part.dtype != piece.dtype_name:
            raise unfit(number, tuple(part.size), part.dtype, piece)
        if part.chunks > 1 + piece.most_bytes // STREAMING_CHUNK_SIZE_BYTES:
            raise self._unlike(number)

    def _finish(self, number: int, piece: Piece, arrived: ArrivingTensor) -> None:
        try:
            tensor = arrived.tensor()
        except Exception:  # noqa: BLE001 - untrusted bytes: on any error they are not a tensor
            raise self._unlike(number) from None
        check(number, tensor, piece)
        self._ends.append(self.received)
        self.tensors.append(tensor)
        self._digests.append(arrived.digest)
        self._next = None

    def _unlike(self, count: int) -> Refusal:
        return Refusal(
            Text("peer.peer_sent_state_tensors_where", theirs=count, ours=len(self.wanted.pieces)),
            Text("peer.trains_another_model_under_same"),
        )


class StateDownload:
    """One download, by skep's call where a donor has it. `donors` are those that offer a state, best first.

    A donor that broke off is asked to go on where it stopped, as long as each attempt brings something of use, and it
    begins at most COPIES copies. One that sent something wrong is not asked again: its id is in `liars`. One that is
    slow (see `speed`) is left while another can be asked, and then is the last to be asked.
    """

    def __init__(
        self,
        wanted: Wanted,
        progress: Progress,
        *,
        donors: Callable[[], Awaitable[Sequence[PeerID]]],
        call: Open,
        pause: float = PAUSE_SECONDS,
        stall: float = STALL_SECONDS,
        patience: float = PATIENCE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`pause`, `stall` and `patience` as PAUSE_SECONDS, STALL_SECONDS and PATIENCE_SECONDS. `clock` is monotonic."""
        self._wanted, self._progress = wanted, progress
        self._donors, self._call = donors, call
        self._pause, self._stall, self._patience, self._clock = pause, stall, patience, clock
        self._asked = Asked()

    @property
    def liars(self) -> set[PeerID]:
        return self._asked.liars

    async def run(self) -> Arrived | None:
        """The first whole and right state; None when no donor has one. Raises the first Refusal when they sent wrong ones only.

        While donors are busy, they are asked again, without limit; while those that have sent something do not answer, or
        none is found any more, as long as what has arrived is kept.
        """
        partial, taken, given_up_at = Partial(self._wanted, self._progress), 0, 0.0
        while True:
            self._progress.note(partial.received)  # though no donor may be found
            donors = self._asked.order(await self._donors())
            if arrived := await self._ask(donors, partial):
                return arrived
            if partial.taken != taken:
                patience = max(self._patience, min(LONGEST_PATIENCE_SECONDS, partial.seconds))
                taken, given_up_at = partial.taken, self._clock() + patience
            # a stock donor cannot go on, so that nothing is kept of what it has sent
            kept = self._asked.lost and partial.copy and self._clock() < given_up_at
            if not kept and not self._asked.waiting:
                break
            await asyncio.sleep(self._pause)
        if self._asked.refusal:
            raise self._asked.refusal
        return None

    async def _ask(self, donors: Sequence[PeerID], partial: Partial) -> Arrived | None:
        """One after the other; None when none of them sends the rest of a state."""
        for donor in donors:
            self._progress.note(partial.received)
            try:
                return await self._load(donor, partial)
            except (Refusal, BrokenOffError, BusyError) as error:
                self._asked.end(donor, error)
        return None

    async def _load(self, donor: PeerID, partial: Partial) -> Arrived:
        """Raises Refusal, BrokenOffError, BusyError."""
        copies = 0
        while True:
            copy, partial.kept = partial.copy, partial.received
            failure = BrokenOffError("it stopped")
            try:
                await self._stream(donor, partial)
            except SlowError:
                raise
            except BrokenOffError as error:
                failure = error
            if partial.epoch is not None and partial.complete:
                return partial.epoch, partial.tensors
            copies += partial.copy != copy
            if not partial.copy or partial.received <= partial.kept or copies > COPIES:
                raise failure
            await asyncio.sleep(self._pause)

    async def _stream(self, donor: PeerID, partial: Partial) -> None:
        """Take frames until the state is complete or the stream ends. Raises Refusal, BrokenOffError, BusyError."""
        slowest = self._stall + self._wanted.total / COPY_BYTES_PER_SECOND
        try:
            frames, ours = await asyncio.wait_for(self._opened(donor, partial), slowest)
            async with contextlib.aclosing(frames):
                begun, count = time.monotonic(), 0
                while not partial.complete:
                    asked_at = self._clock()
                    frame = await asyncio.wait_for(anext(frames), slowest)
                    seconds = self._clock() - asked_at
                    partial.seconds += seconds
                    with _readable():
                        _take(frame, partial, ours=ours)
                    if not partial.complete:
                        size = len(frame.tensor_part.buffer)
                        self._asked.took(donor, size, seconds, resumable=bool(partial.copy))
                    count += 1
                    mean = (time.monotonic() - begun) / count
                    slowest = max(self._stall, min(LONGEST_STALL_SECONDS, SLOWER * mean))
        except StopAsyncIteration:
            return
        except (Refusal, BrokenOffError, BusyError):
            raise
        except (TimeoutError, OSError, P2PDaemonError, P2PHandlerError, EOFError) as error:
            raise BrokenOffError(repr(error)) from None
        except (DecodeError, TypeError):  # hivemind's, of a frame that is none
            raise _unreadable() from None
        except Exception as error:
            logger.exception("the transfer from %s has failed", donor)
            raise BrokenOffError(repr(error)) from error

    async def _opened(self, donor: PeerID, partial: Partial) -> tuple[Frames, bool]:
        """The donor's frames, and whether they are the answer to skep's call."""
        try:
            return await self._call(donor, partial.place), True
        except P2PDaemonError:  # it is gone, or does not know skep's call
            return await self._call(donor, None), False


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Raises Refusal for what the decoders of a frame's parts raise."""
    try:
        yield
    except (ValueError, RecursionError):  # also what msgspec raises
        raise _unreadable() from None


def _unreadable() -> Refusal:
    return Refusal(Text("peer.sent_unreadable_state"), Text("peer.skep_tries_another_peer"))


def _take(frame: averaging_pb2.DownloadData, partial: Partial, *, ours: bool) -> None:
    if frame.metadata and ours:
        offer = msgspec.msgpack.decode(frame.metadata, type=Offer)
        if not offer.copy:
            raise BusyError
        partial.begin(offer)
    elif frame.metadata:
        partial.begin(Offer(metadata=frame.metadata))
    if frame.HasField("tensor_part"):
        partial.add(frame.tensor_part)
