"""Loading a state from donors that die, stall, lie or are busy; checked before all of it is in memory."""

import asyncio
import math
import time
from concurrent.futures import Future
from contextlib import aclosing
from types import SimpleNamespace

import msgspec
import pytest
import torch
from google.protobuf.message import DecodeError
from hivemind.compression import CompressionInfo, Float16Compression, NoCompression
from hivemind.p2p import P2PDaemonError, PeerID
from hivemind.proto import averaging_pb2

from english import in_english, raises
from skep.core.errors import SwarmError
from skep.worker.swarm.averaging.honest_averager import HonestAverager
from skep.worker.swarm.state.coming import Loading
from skep.worker.swarm.state.donor import PART_BYTES, Copy, Offer, Place, StateDonor
from skep.worker.swarm.state.download import (
    AHEAD,
    LONGEST_PATIENCE_SECONDS,
    PATIENCE_SECONDS,
    STALL_SECONDS,
    NotAllowedError,
    Progress,
    StateDownload,
    Wanted,
)
from skep.worker.swarm.state.pieces import Piece
from skep.worker.swarm.state.speed import LEAST_BYTES_PER_SECOND
from skep.worker.swarm.state.uplink import Uplink

KNOWN = 7
SHORT = 1.0
"""Seconds after which a donor has stalled, where one does; elsewhere STALL_SECONDS, as a frame may take a while."""
TENSORS = [torch.arange(300_000, dtype=torch.float32), torch.ones(3, 5), torch.full((200_001,), 2.0), torch.tensor(3.0)]
WANTED = Wanted(
    tuple(Piece(tuple(each.shape), each.dtype, each.nbytes, non_negative=True) for each in TENSORS), (5, KNOWN)
)


class Donor:
    """A peer that sends `tensors` and does `ends` after `after` frames in each call; `stock` ones know one call only.

    One that is killed refuses further calls, and one that is frozen never answers them.
    """

    def __init__(self, tensors=TENSORS, epoch=KNOWN, *, stock=False, ends=None, after=-1, metadata=None, codec=None):
        self.stock, self.ends, self.after = stock, ends, after
        self.calls, self.sent, self.closed = 0, 0, 0
        raw = msgspec.msgpack.encode({"epoch": epoch, "group_bits": ""}) if metadata is None else metadata

        async def take():
            return Copy(epoch, raw, list(tensors), [CompressionInfo.from_tensor(each) for each in tensors])

        self._donor = StateDonor(take, lambda: epoch, codec or NoCompression(), Uplink())

    async def open(self, place):
        if place and self.stock:
            raise P2PDaemonError("protocols not supported")
        if self.ends == "killed" and self.calls:
            raise P2PDaemonError("failed to dial")
        if self.ends == "frozen" and self.calls:
            await asyncio.sleep(1000)
        self.calls += 1
        return self._frames(self._donor.fetch(place) if place else self._donor.stock())

    async def _frames(self, frames):
        number = 0
        try:
            async for frame in frames:
                if number == self.after:
                    if self.ends in {"stall", "frozen"}:
                        await asyncio.sleep(1000)
                    if self.ends == "once":
                        self.after = -1
                    return
                number += 1
                self.sent += len(frame.tensor_part.buffer)
                yield frame
        finally:
            await frames.aclose()
            self.closed += 1


class Busy:
    """A donor without a place, for the first `times` calls."""

    def __init__(self, times=2):
        self.then, self.calls, self._times = Donor(), 0, times

    async def open(self, place):
        self.calls += 1
        return self._busy() if self.calls <= self._times else await self.then.open(place)

    async def _busy(self):
        yield averaging_pb2.DownloadData(metadata=msgspec.msgpack.encode(Offer()))


class Trickle:
    """A donor that sends `rate` bytes a second, by its own clock; `stock` as a Donor's."""

    def __init__(self, rate, *, stock=False):
        self.donor, self.now, self._rate = Donor(stock=stock), 0.0, rate

    async def open(self, place):
        return self._slow(await self.donor.open(place))

    async def _slow(self, frames):
        async with aclosing(frames):
            async for frame in frames:
                self.now += len(frame.tensor_part.buffer) / self._rate
                yield frame


class Gone:
    async def open(self, _place):
        raise P2PDaemonError("failed to dial")


class OutOfReach:
    """A donor that is out of reach for some calls after it has broken off once, as without a connection."""

    def __init__(self, calls, error=P2PDaemonError):
        self.donor, self._left, self._error = Donor(ends="once", after=3), calls, error

    async def open(self, place):
        if self.donor.calls and self._left:
            self._left -= 1
            raise self._error("failed to dial")
        return await self.donor.open(place)


class Rebooting(OutOfReach):
    """A donor that sends for a long time, then is out of reach for `away` seconds, as while a router starts again.

    `now` is the time of the newcomer, who asks it once a minute.
    """

    def __init__(self, minutes, away):
        super().__init__(math.inf)
        self.now, self._minutes, self._away = 0.0, minutes, away

    async def open(self, place):
        if not self.donor.calls:
            return self._slow(await self.donor.open(place))
        if place is None:
            raise P2PDaemonError("protocols not supported")
        self.now += 60.0
        if self.now < 60.0 * self._minutes + self._away:
            raise P2PDaemonError("failed to dial")
        return await self.donor.open(place)

    async def _slow(self, frames):
        async for frame in frames:
            self.now += 60.0 * self._minutes / self.donor.after
            yield frame


def download(
    *donors,
    wanted=WANTED,
    progress=None,
    patience=5.0,
    unlisted=lambda: False,
    stall=STALL_SECONDS,
    clock=time.monotonic,
):
    async def listed():
        return [] if unlisted() else list(range(len(donors)))

    def call(donor, place):
        return donors[donor].open(place)

    made = StateDownload(
        wanted,
        progress or Progress(),
        donors=listed,
        call=call,
        pause=0.01,
        stall=stall,
        patience=patience,
        clock=clock,
    )
    return made.run()


def load(*donors, wanted=WANTED, patience=5.0, stall=STALL_SECONDS):
    return asyncio.run(download(*donors, wanted=wanted, patience=patience, stall=stall))


def is_whole(arrived):
    epoch, tensors = arrived
    return epoch == KNOWN and all(torch.equal(*pair) for pair in zip(tensors, TENSORS, strict=True))


@pytest.mark.parametrize("stock", [False, True])
def test_a_state_is_loaded_from_our_peers_and_from_stock_ones(stock):
    donor = Donor(stock=stock)
    assert is_whole(load(donor))
    assert donor.calls == donor.closed == 1


@pytest.mark.parametrize("ends", ["death", "stall"])
@pytest.mark.parametrize("stock", [False, True])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_when_a_donor_dies_or_stalls_the_next_one_is_asked(stock, ends, after):
    first, second = Donor(stock=stock, ends=ends, after=after), Donor(stock=stock)
    if not stock and after > 1:
        # each call of it brings something, and the rest comes: a donor that dies does not answer again
        first.after = 1
    assert is_whole(load(Gone(), first, second, stall=SHORT, patience=30.0))
    assert second.calls == 1
    assert first.closed == first.calls


def test_what_has_arrived_is_kept_while_its_only_donor_is_out_of_reach():
    away = OutOfReach(calls=8)  # skep's call and stock's, in four attempts
    assert is_whole(load(away))
    assert away.donor.sent == sum(tensor.nbytes for tensor in TENSORS)


def test_what_has_arrived_is_kept_while_no_donor_is_found():
    # without a connection the records of the donors cannot be read either
    looks = iter([False, True, True, True])
    assert is_whole(asyncio.run(download(away := OutOfReach(calls=2), unlisted=lambda: next(looks, False))))
    assert away.donor.sent == sum(tensor.nbytes for tensor in TENSORS)


def test_donors_that_are_not_found_again_are_given_up():
    begun = time.monotonic()
    looks = iter([False])
    assert asyncio.run(download(OutOfReach(calls=math.inf), patience=0.1, unlisted=lambda: next(looks, True))) is None
    assert time.monotonic() - begun < 5.0


def test_a_donor_that_stays_out_of_reach_is_given_up():
    assert load(OutOfReach(calls=math.inf), patience=0.1) is None


@pytest.mark.parametrize(
    ("minutes", "away", "kept"),
    [
        (80, 180, True),
        (80, LONGEST_PATIENCE_SECONDS - 120, True),
        (80, LONGEST_PATIENCE_SECONDS + 180, False),
        (10, 400, True),
        (10, 800, False),
        (0.5, PATIENCE_SECONDS, True),
        (0.5, PATIENCE_SECONDS + 180, False),
    ],
)
def test_what_took_long_to_arrive_is_kept_as_long(minutes, away, kept):
    donor = Rebooting(minutes, away)
    arrived = asyncio.run(download(donor, patience=PATIENCE_SECONDS, clock=lambda: donor.now))
    assert is_whole(arrived) if kept else arrived is None
    assert donor.donor.sent == TOTAL if kept else donor.donor.sent < TOTAL


def test_while_no_donor_is_found_the_averagers_process_says_that_it_lives():
    # or the training process would give it up after some minutes
    progress, looks = Progress(), iter([False])
    stirred = []

    def unlisted():
        stirred.append(progress.stirred_at)
        return next(looks, True)

    away = OutOfReach(calls=math.inf)
    assert asyncio.run(download(away, progress=progress, patience=0.1, unlisted=unlisted)) is None
    assert len(stirred) > 2
    assert stirred == sorted(set(stirred))
    assert progress.received > 0  # what is kept, not nothing


def test_a_donor_whose_invitation_has_ended_is_not_asked_again():
    begun = time.monotonic()
    assert load(OutOfReach(calls=math.inf, error=NotAllowedError), patience=30.0) is None
    assert time.monotonic() - begun < 5.0


def test_a_donor_of_ours_goes_on_where_the_stream_broke_off():
    donor = Donor(ends="once", after=3)
    assert is_whole(load(donor))
    assert donor.calls == 2
    assert donor.sent == sum(each.nbytes for each in TENSORS)  # each byte once


TOTAL = sum(each.nbytes for each in TENSORS)
OTHER = [*TENSORS[:2], TENSORS[2] + 1e-6, TENSORS[3]]


@pytest.mark.parametrize("ends", ["killed", "frozen"])
@pytest.mark.parametrize("after", [2, 3, 4, 5, 6])
def test_another_donor_with_the_same_bytes_goes_on_where_the_first_one_stopped(ends, after):
    first, second, progress = Donor(ends=ends, after=after), Donor(), Progress()
    assert is_whole(asyncio.run(download(first, second, progress=progress, stall=SHORT, patience=30.0)))
    assert first.sent + second.sent == progress.received == TOTAL
    assert 0 < second.sent < TOTAL


def test_a_state_is_that_of_one_donor_where_their_bytes_differ():
    first, second = Donor(OTHER, ends="killed", after=6), Donor()
    assert is_whole(load(first, second))
    assert second.sent == sum(each.nbytes for each in TENSORS[2:])


def test_a_stock_donor_sends_everything_again():
    first, second = Donor(ends="killed", after=4), Donor(stock=True)
    assert is_whole(load(first, second))
    assert second.sent == TOTAL


def test_what_a_liar_has_sent_before_is_not_sent_again_by_an_honest_donor():
    liar, honest = Donor([*TENSORS[:2], torch.full((200_001,), -2.0), TENSORS[3]]), Donor()
    assert is_whole(load(liar, honest))
    assert honest.sent == sum(each.nbytes for each in TENSORS[2:])


class Newcomer:
    """Loads states as an averager does; of its `offers`, by peer, the first is the one of highest priority."""

    _donors, _download = HonestAverager._donors, HonestAverager._download
    peer_id, prefix = PeerID(b"newcomer"), "states"

    def __init__(self, offers):
        self._offers, self._loading, self.loading, self._liars = offers, None, Progress(), set()
        self.dht = SimpleNamespace(get=self._get)

    async def _get(self, key, **_options):
        assert key == "states.all_averagers"
        # so far apart that they are not asked by chance
        ranked = zip(self._offers, range(3 * len(self._offers), 0, -3), strict=True)
        offers = {self.peer_id.to_bytes(): 0.0} | dict(ranked)
        return SimpleNamespace(value={peer: SimpleNamespace(value=priority) for peer, priority in offers.items()})

    async def _call_donor(self, peer, place):
        return await self._offers[peer.to_bytes()].open(place)

    def load(self):
        loaded = Future()
        # hivemind's futures keep their result there too; here it would be gone before it is read
        kept = SimpleNamespace(set_result=loaded.set_result)
        asyncio.run(self._download(kept, WANTED))
        return loaded.result()


def test_a_download_ends_the_one_that_runs_beside_it():
    stalled, whole = Donor(ends="stall", after=2), Donor()
    offers = {PeerID(b"donor").to_bytes(): stalled}
    newcomer = Newcomer(offers)
    results = [Future(), Future()]

    async def twice():
        first = asyncio.create_task(newcomer._download(SimpleNamespace(set_result=results[0].set_result), WANTED))
        while stalled.sent < PART_BYTES:  # noqa: ASYNC110 - the donor has no event to wait for
            await asyncio.sleep(0.01)
        offers[PeerID(b"donor").to_bytes()] = whole
        await newcomer._download(SimpleNamespace(set_result=results[1].set_result), WANTED)
        # the first one ended before the second began, not by its donor's deadline
        assert first.done()
        await first

    asyncio.run(asyncio.wait_for(twice(), STALL_SECONDS / 2))
    assert results[0].result() is None
    assert is_whole(results[1].result())
    assert stalled.closed == stalled.calls == 1


def test_a_donor_that_has_lied_is_not_asked_again():
    liar, honest = Donor([*TENSORS[:3], torch.tensor(-1.0)]), Donor()
    offers = {PeerID(b"liar").to_bytes(): liar, PeerID(b"honest").to_bytes(): honest}
    newcomer = Newcomer(offers)
    for _ in range(2):
        assert is_whole(newcomer.load())
    assert (liar.calls, honest.calls) == (1, 2)
    del offers[PeerID(b"honest").to_bytes()]
    assert newcomer.load() is None
    assert liar.calls == 1


def test_a_donor_that_is_further_than_we_know_is_no_liar():
    ahead = Donor(epoch=KNOWN + AHEAD + 1)
    newcomer = Newcomer({PeerID(b"ahead").to_bytes(): ahead})
    assert "claims" in in_english(newcomer.load().title)
    newcomer.loading.known = KNOWN + 1  # as the training process says once it knows
    assert newcomer.load()[0] == KNOWN + 2


def test_what_is_believed_of_the_swarm_rises_during_a_download():
    donor, progress = Donor(ends="killed", after=4), Progress()
    later = Donor(epoch=KNOWN + 5)
    looks = []

    def unlisted():
        looks.append(progress.received)
        if len(looks) == 3:
            progress.known = KNOWN + 4
        return False

    epoch, _ = asyncio.run(download(donor, later, progress=progress, unlisted=unlisted))
    assert epoch == KNOWN + 5
    assert len(looks) == 3
    assert 0 < looks[1] == looks[2]  # what had come from the first was kept meanwhile


def test_a_donor_cannot_have_more_in_common_than_there_is():
    class Boaster:
        async def open(self, _place):
            return self._frames()

        async def _frames(self):
            metadata = msgspec.msgpack.encode({"epoch": KNOWN})
            yield averaging_pb2.DownloadData(metadata=msgspec.msgpack.encode(Offer("copy", metadata, 4)))

    with raises(SwarmError, match="a state of 4 tensors"):
        load(Boaster())
    assert is_whole(load(Boaster(), Donor()))


class Undecodable:
    """A donor whose frame cannot be read: hivemind and the decoders raise what they like."""

    def __init__(self, error=None, metadata=b""):
        self._error, self._metadata = error, metadata

    async def open(self, _place):
        return self._frames()

    async def _frames(self):
        if self._error:
            raise self._error
        yield averaging_pb2.DownloadData(metadata=self._metadata)


@pytest.mark.parametrize(
    "donor",
    [
        Undecodable(TypeError("Invalid Protobuf message type")),
        Undecodable(DecodeError("Error parsing message")),
        Undecodable(metadata=msgspec.msgpack.encode({"copy": "text"}).replace(b"text", b"\xff\xff\xff\xff")),
        Undecodable(metadata=b"\x91" * 5000),
    ],
)
def test_a_donor_whose_bytes_cannot_be_read_ends_its_own_transfer_only(donor):
    assert is_whole(load(donor, Donor()))
    with raises(SwarmError, match="cannot be read|without an epoch"):
        load(donor)


class EverAnew:
    """A donor that has another copy in each call, and breaks off after its first part."""

    async def open(self, _place):
        return await Donor(after=2).open(Place())


def test_a_donor_with_another_copy_goes_on_where_it_broke_off():
    other = Donor([each + 1 for each in TENSORS], ends="killed", after=5)
    donor, unused = Donor(ends="once", after=2), Donor()
    assert is_whole(load(other, donor, unused))
    assert other.sent > donor.sent / 2
    assert (donor.calls, unused.calls) == (2, 0)


class Failing:
    """A donor in whose transfer an error of our own occurs, once."""

    def __init__(self):
        self.donor = Donor(ends="once", after=3)
        self._failed = False

    async def open(self, place):
        if self.donor.calls and not self._failed:
            self._failed = True
            raise RuntimeError("the DHT's process is gone")
        return await self.donor.open(place)


def test_an_error_of_our_own_is_not_held_against_the_donor():
    failing = Failing()
    assert is_whole(load(failing))


def test_a_donor_that_begins_again_and_again_is_not_waited_for():
    assert is_whole(asyncio.run(asyncio.wait_for(download(EverAnew(), Donor()), 10)))


@pytest.mark.parametrize(("rate", "left"), [(1.1, False), (0.9, True)])
def test_a_slow_donor_is_left_for_one_that_may_be_faster(rate, left):
    slow, other = Trickle(rate * LEAST_BYTES_PER_SECOND), Donor()
    assert is_whole(asyncio.run(download(slow, other, clock=lambda: slow.now)))
    assert other.calls == left
    assert slow.donor.sent + other.sent == TOTAL
    assert (slow.donor.sent < TOTAL) == left


@pytest.mark.parametrize("stock", [False, True])
@pytest.mark.parametrize("others", [[], [Gone()]])
def test_a_slow_donor_is_not_left_for_nothing(stock, others):
    slow = Trickle(1.0, stock=stock)
    assert is_whole(asyncio.run(asyncio.wait_for(download(slow, *others, clock=lambda: slow.now), 60)))
    # it was left once, while the other one could still be hoped for; only a stock donor sends something twice
    assert slow.donor.calls == 1 + len(others)
    assert slow.donor.sent == TOTAL or (stock and others)


def test_of_two_that_are_slow_one_sends_all():
    slow, other = Trickle(1000.0), Trickle(1000.0)
    other.donor = Donor(OTHER)
    assert asyncio.run(asyncio.wait_for(download(slow, other, clock=lambda: slow.now + other.now), 60))
    assert (slow.donor.calls, other.donor.calls) == (1, 1)  # as when our own connection is slow
    assert other.donor.sent > slow.donor.sent


def test_a_slow_donor_is_left_for_a_busy_one_again_and_again_if_nothing_is_lost():
    slow, busy = Trickle(1000.0), Busy(times=2)
    assert is_whole(asyncio.run(asyncio.wait_for(download(slow, busy, clock=lambda: slow.now), 60)))
    assert busy.calls == 3
    assert slow.donor.sent + busy.then.sent == TOTAL
    assert busy.then.sent > 0


def test_a_slow_stock_donor_is_not_left_for_a_busy_one_a_second_time():
    slow, busy = Trickle(1000.0, stock=True), Busy(times=10**6)
    assert is_whole(asyncio.run(asyncio.wait_for(download(slow, busy, clock=lambda: slow.now), 60)))
    assert slow.donor.calls == 2


def test_busy_donors_are_asked_again_without_limit():
    busy = Busy()
    assert is_whole(load(busy))
    assert busy.calls == 3


def test_without_a_donor_there_is_no_state():
    assert load() is None
    assert load(Gone(), Gone()) is None


WRONG = [
    (Donor([*TENSORS[:1], torch.ones(5, 3), *TENSORS[2:]]), r"tensor 1 of its state as \(5, 3\)"),
    (Donor([torch.arange(300_000, dtype=torch.float64), *TENSORS[1:]]), "float64"),
    (Donor([*TENSORS[:3], torch.tensor(float("inf"))]), "not finite"),
    (Donor([*TENSORS[:3], torch.tensor(-1.0)]), "negative second moments"),
    (Donor([*TENSORS[:3], torch.tensor(1e10)]), "larger than any"),
    (Donor(epoch=KNOWN + AHEAD + 1), "claims that its state is of epoch"),
    (Donor(epoch=True), "without an epoch"),
    (Donor(metadata=b"\xc1"), "without an epoch"),
    (Donor(metadata=msgspec.msgpack.encode([1])), "without an epoch"),
]


@pytest.mark.parametrize(("liar", "words"), WRONG)
def test_what_cannot_be_this_models_state_is_refused_in_words_and_another_donor_is_asked(liar, words):
    with raises(SwarmError, match=words):
        load(liar)
    assert is_whole(load(liar, Donor()))


def test_a_wrong_tensor_ends_the_transfer_before_the_rest_of_it_is_sent():
    liar = Donor([torch.arange(300_001, dtype=torch.float32), *TENSORS[1:]])
    with raises(SwarmError, match="tensor 0"):
        load(liar)
    assert liar.sent <= PART_BYTES


def test_a_state_older_than_ours_is_not_loaded():
    old = Donor(epoch=4)
    assert load(old) is None
    assert old.sent == 0


def test_a_compressed_state_is_read():
    tensors = [each / 1000 for each in TENSORS]
    epoch, arrived = load(Donor(tensors, codec=Float16Compression()))
    assert epoch == KNOWN
    assert torch.allclose(arrived[2], tensors[2], rtol=1e-3)


def test_a_download_that_is_given_up_ends_with_its_stream():
    async def give_up():
        donor, progress = Donor(ends="stall", after=2), Progress()
        task = asyncio.create_task(download(donor, progress=progress))
        while not progress.received:  # noqa: ASYNC110 - it is meant for another process
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait({task})
        return donor, progress

    donor, progress = asyncio.run(give_up())
    assert donor.closed == donor.calls
    assert progress.received == PART_BYTES


def test_how_far_a_state_is_is_said_with_bytes_rate_and_time():
    assert Loading(0, 100).text.id == "state.looking_for_donor"
    assert Loading(50, 100).text.id == "state.loading"
    text = Loading(50, 200, rate=10.0, left=15.0).text
    assert (text.id, dict(text.args)) == ("state.loading_at", {"received": 50, "total": 200, "rate": 10, "left": 15.0})
    assert Loading(50, 200).fraction == 0.25
    assert Loading(300, 200).fraction == 1.0
    assert Place() == Place("", 0, 0)
