"""Handing a state over: one copy for all who come together, a few at a time, in frames that stock peers can read."""

import asyncio
import time
from types import SimpleNamespace

import msgspec
import pytest
import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.compression import CompressionInfo, NoCompression, deserialize_torch_tensor
from hivemind.utils.streaming import combine_from_streaming

from skep.worker.connection.streams import caller
from skep.worker.swarm.state import donor as state_donor
from skep.worker.swarm.state.digests import begun
from skep.worker.swarm.state.donor import (
    AT_ONCE,
    IDLE_SECONDS,
    KEPT_SECONDS,
    LONGEST_KEPT_SECONDS,
    PART_BYTES,
    Copy,
    Offer,
    Place,
    StateDonor,
)
from skep.worker.swarm.state.speed import LEAST_BYTES_PER_SECOND, SPAN_SECONDS, Speed
from skep.worker.swarm.state.uplink import LEAST_PAUSE_SECONDS, SHARE, Pace, Uplink

TENSORS = (torch.arange(300_000, dtype=torch.float32), torch.ones(3, 5), torch.zeros(1_000_001))


class Stock:
    allow_state_sharing = True
    state_compression = NoCompression()

    async def _get_current_state_from_host_process(self):
        return b"metadata", TENSORS, None


class Training:
    """A peer whose state changes: `epoch` is its label, each copy taken is counted, and `now` is its time."""

    def __init__(self, tensors=TENSORS):
        self.epoch, self.copies, self.uplink, self._tensors, self.now = 7, 0, Uplink(), tensors, 1000.0
        self.donor = StateDonor(self.take, lambda: self.epoch, NoCompression(), self.uplink, clock=lambda: self.now)

    async def take(self):
        self.copies += 1
        await asyncio.sleep(0)
        infos = [CompressionInfo.from_tensor(tensor) for tensor in self._tensors]
        return Copy(self.epoch, b"metadata of %d" % self.epoch, list(self._tensors), infos)


@pytest.fixture
def training():
    return Training()


async def all_of(frames):
    return [frame async for frame in frames]


async def first_of(frames):
    return await anext(frames), frames


def offer(frame):
    return msgspec.msgpack.decode(frame.metadata, type=Offer)


def put_together(parts):
    """Combine frames as a stock newcomer does: a frame that names a dtype begins the next tensor."""
    tensors = []
    for part in parts:
        if part.dtype:
            tensors.append([])
        tensors[-1].append(part)
    return [deserialize_torch_tensor(combine_from_streaming(each)) for each in tensors]


def parts_of(frames):
    return [frame.tensor_part for frame in frames if frame.HasField("tensor_part")]


async def stock_frames_of(training):
    return await all_of(training.donor.stock())


async def stock_frames():
    rpc = DecentralizedAverager.rpc_download_state
    return await all_of(rpc(Stock(), None, SimpleNamespace(remote_id="newcomer")))


@pytest.mark.parametrize(
    ("frames", "largest"),
    [(lambda _: stock_frames(), 2**16), (lambda training: all_of(training.donor.stock()), PART_BYTES)],
)
def test_frames_are_large_and_hold_the_same_state(training, frames, largest):
    made = asyncio.run(frames(training))
    assert max(len(part.buffer) for part in parts_of(made)) == largest
    assert [bool(frame.metadata) for frame in made] == [True, *[False] * (len(made) - 1)]
    assert all(torch.equal(*pair) for pair in zip(put_together(parts_of(made)), TENSORS, strict=True))


def test_newcomers_that_come_together_are_served_from_one_copy(training):
    async def serve():
        return await asyncio.gather(*(all_of(training.donor.fetch(Place())) for _ in range(AT_ONCE)))

    served = asyncio.run(serve())
    assert training.copies == 1
    assert len({offer(frames[0]).copy for frames in served}) == 1
    for frames in served:
        assert all(torch.equal(*pair) for pair in zip(put_together(parts_of(frames)), TENSORS, strict=True))


def test_one_too_many_is_sent_away_until_a_place_is_free(training):
    async def serve():
        taken = [await first_of(training.donor.fetch(Place())) for _ in range(AT_ONCE)]
        for _, frames in taken:
            await anext(frames)
        ours, stock = await all_of(training.donor.fetch(Place())), await all_of(training.donor.stock())
        await taken[0][1].aclose()
        return ours, stock, await all_of(training.donor.stock())

    ours, stock, later = asyncio.run(serve())
    assert [offer(frame) for frame in ours] == [Offer()]
    assert stock == []
    assert later


def test_while_no_copy_can_be_made_newcomers_are_sent_away_and_find_it_made_when_they_ask_again(training):
    readable, take = asyncio.Event(), training.take

    async def take_later():
        await readable.wait()
        return await take()

    async def serve():
        training.donor = StateDonor(take_later, lambda: training.epoch, NoCompression(), training.uplink, copying=1.0)
        begun_at = time.monotonic()
        async with asyncio.timeout(5.0):
            ours = await asyncio.gather(*(all_of(training.donor.fetch(Place())) for _ in range(AT_ONCE)))
            stock = await all_of(training.donor.stock())
            assert 0.9 < time.monotonic() - begun_at < 2.5  # all of them together
            readable.set()
            await training.donor._taking
        training.epoch += 1  # the round, during which no state can be read, has ended
        return [*map(parts_of, ours), stock, await all_of(training.donor.fetch(Place()))]

    *sent, later = asyncio.run(serve())
    assert sent == [[]] * (AT_ONCE + 1)
    assert offer(later[0]).metadata == b"metadata of 7"
    assert training.copies == 1


def test_a_copy_that_cannot_be_made_is_tried_again(training):
    take = training.take

    async def fail():
        training.donor._take = take
        raise OSError("no memory")

    training.donor._take = fail
    with pytest.raises(OSError, match="no memory"):
        asyncio.run(all_of(training.donor.fetch(Place())))
    assert parts_of(asyncio.run(all_of(training.donor.fetch(Place()))))


def test_while_one_loads_an_old_state_others_get_the_newest_one(training):
    async def serve():
        first, loading = await first_of(training.donor.fetch(Place()))
        await anext(loading)
        training.epoch += 1
        second, frames = await first_of(training.donor.fetch(Place()))  # an epoch old: still the same copy
        await frames.aclose()
        training.epoch += 1
        for _ in range(3):  # one after the other has a place, and none of them waits for the first
            third, frames = await first_of(training.donor.fetch(Place()))
            await frames.aclose()
            training.epoch += 5
            assert len(training.donor._copies) == AT_ONCE  # and no more memory is taken
        return first, second, third, await all_of(loading)

    first, second, third, rest = asyncio.run(serve())
    assert offer(first).copy == offer(second).copy
    assert offer(third).metadata == b"metadata of 19"
    assert len(parts_of(rest)) == len(parts_of(asyncio.run(stock_frames_of(training)))) - 1


def test_the_copy_is_of_the_epoch_of_now_once_the_last_newcomer_has_gone(training):
    asyncio.run(all_of(training.donor.stock()))
    training.epoch += 1
    assert asyncio.run(all_of(training.donor.stock()))[0].metadata == b"metadata of 8"


def test_a_transfer_goes_on_in_the_middle_of_a_tensor_after_the_epoch_has_ended(training):
    whole = asyncio.run(all_of(training.donor.fetch(Place())))
    training.epoch += 1
    frames, copy = parts_of(whole), offer(whole[0]).copy
    last = next(number for number, part in enumerate(frames) if number and part.dtype)
    middle = asyncio.run(all_of(training.donor.fetch(Place(copy, 0, PART_BYTES))))
    rest = asyncio.run(all_of(training.donor.fetch(Place(copy, 1))))
    assert offer(rest[0]).copy == offer(middle[0]).copy == copy
    assert parts_of(middle) == frames[1:]
    assert parts_of(rest) == frames[last:]
    assert training.copies == 1


def place_in(frames):
    """What a newcomer says that has got these frames of another donor's copy."""
    tensors, digests = 0, []
    parts = parts_of(frames)
    for part in parts:
        if part.dtype:
            digests.append(begun(part))
        digests[-1].update(part.buffer)
    last = next(number for number, part in enumerate(reversed(parts), 1) if part.dtype)
    whole = last == parts[-last].chunks
    tensors = len(digests) - (not whole)
    part = 0 if whole else sum(len(each.buffer) for each in parts[-last:])
    return Place("another", tensors, part, tuple(each.digest() for each in digests))


@pytest.mark.parametrize("taken", [2, 4, 5, 7])
def test_a_transfer_of_another_donors_copy_goes_on_where_the_bytes_are_the_same(training, taken):
    whole = asyncio.run(all_of(Training().donor.fetch(Place())))
    place = place_in(whole[:taken])
    rest = asyncio.run(all_of(training.donor.fetch(place)))
    assert (offer(rest[0]).tensors, offer(rest[0]).part) == (place.tensors, place.part)
    assert parts_of(rest) == parts_of(whole[taken:])


DIFFERENT = (TENSORS[0], TENSORS[1] + 1e-7, TENSORS[2])


@pytest.mark.parametrize(
    ("place", "same"),
    [
        (place_in, 1),  # to the first tensor that differs
        (lambda _: Place("another", 1), 0),  # as before there were digests
        (lambda _: Place("another", 1, PART_BYTES), 0),
        (lambda theirs: Place("another", 1, 1, (*place_in(theirs[:4]).digests, b"")), 1),
        (lambda theirs: Place("another", 9, 0, place_in(theirs).digests * 3), 1),
    ],
)
def test_a_transfer_of_another_copy_begins_where_the_bytes_differ(training, place, same):
    theirs = asyncio.run(all_of(Training(DIFFERENT).donor.fetch(Place())))
    again = asyncio.run(all_of(training.donor.fetch(place(theirs))))
    assert (offer(again[0]).tensors, offer(again[0]).part) == (same, 0)
    assert all(map(torch.equal, put_together(parts_of(again)), TENSORS[same:]))
    assert len(put_together(parts_of(again))) == len(TENSORS) - same


def test_a_part_of_a_tensor_is_kept_in_whole_frames_only(training):
    whole = asyncio.run(all_of(Training().donor.fetch(Place())))
    cut = begun(parts_of(whole)[0])
    cut.update(parts_of(whole)[0].buffer[:100])
    again = asyncio.run(all_of(training.donor.fetch(Place("another", 0, 100, (cut.digest(),)))))
    assert offer(again[0]).part == 0


# --- rounds


def test_while_a_round_is_sent_frames_come_slowly_and_then_as_the_link_allows(training):
    async def serve():
        frames = training.donor.fetch(Place())
        await anext(frames)
        with training.uplink.round(1):
            await anext(frames)
            asked = asyncio.get_running_loop().time()
            await asyncio.wait_for(anext(frames), 10)  # it comes while the round goes on
            assert asyncio.get_running_loop().time() - asked >= LEAST_PAUSE_SECONDS / 2
            third = asyncio.ensure_future(anext(frames))
            assert not third.done()
        await third
        begun = asyncio.get_running_loop().time()
        rest = await all_of(frames)
        return len(rest), asyncio.get_running_loop().time() - begun

    count, seconds = asyncio.run(serve())
    assert count > 4
    assert seconds < count * LEAST_PAUSE_SECONDS


def test_in_a_round_a_state_takes_its_share_of_a_link_and_newcomers_do_not_take_the_donor_for_dead():
    uplink = Uplink()
    pace = Pace(uplink, longest=10.0)
    assert pace.pause == 10.0  # nothing is known of the link
    asyncio.run(pace.taken(0.5))
    assert pace.pause == (SHARE - 1) * 0.5
    asyncio.run(pace.taken(4.5))
    assert pace.pause == 10.0
    quick = Pace(uplink, longest=10.0)
    asyncio.run(quick.taken(0.001))
    assert quick.pause == LEAST_PAUSE_SECONDS


def test_the_uplink_is_busy_until_the_rounds_of_both_averagers_are_over():
    uplink = Uplink()
    with uplink.round(0):
        with uplink.round(1):
            assert uplink.busy
        assert uplink.busy
    assert not uplink.busy


# --- who makes way


def test_newcomers_that_take_nothing_lose_their_place_and_a_copy_that_nobody_needs_goes(training):
    async def serve():
        taken = [await first_of(training.donor.stock()) for _ in range(AT_ONCE)]
        training.now += IDLE_SECONDS + 1
        taken.append(await first_of(training.donor.stock()))
        assert await all_of(taken[0][1]) == await all_of(taken[1][1]) == []
        await taken[2][1].aclose()
        assert training.donor._copies
        training.now += max(IDLE_SECONDS, KEPT_SECONDS) + 1
        training.donor.tidy()

    asyncio.run(serve())
    assert not training.donor._copies


def test_copies_that_nobody_needs_go_though_nobody_comes(training, monkeypatch):
    monkeypatch.setattr(state_donor, "LOOK_SECONDS", 0.01)

    async def serve():
        _, frames = await first_of(training.donor.stock())  # it takes nothing more, without an end
        training.now += IDLE_SECONDS + KEPT_SECONDS + 1
        async with asyncio.timeout(30):
            while training.donor._used():  # noqa: ASYNC110 - there is nothing to wait for
                await asyncio.sleep(0.01)
            training.now += LONGEST_KEPT_SECONDS + 1
            while training.donor._copies:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
        await frames.aclose()

    asyncio.run(serve())


async def ask_as(peer, frames):
    """The first frame of a call of `peer`; in a task of its own, as each call is served."""
    caller.set(peer)
    return await anext(frames)


def test_a_peer_has_one_transfer_and_the_newer_one_is_served(training):
    async def serve():
        calls = [training.donor.fetch(Place()) for _ in range(4)]
        first = [await asyncio.create_task(ask_as(peer, frames)) for peer, frames in zip("aaba", calls, strict=True)]
        assert all(offer(frame).copy for frame in first)
        return [await all_of(frames) for frames in calls]

    *gone, theirs, ours = asyncio.run(serve())
    assert gone == [[], []]
    assert len(theirs) == len(ours) > 4


def large():
    return Training([torch.zeros(50 * PART_BYTES // 4)])


FRAME_SECONDS = PART_BYTES / LEAST_BYTES_PER_SECOND


@pytest.mark.parametrize(("slower", "served"), [(1.1, True), (0.9, False)])
def test_a_slow_newcomer_makes_way_for_the_next_one_when_all_places_are_taken(slower, served):
    training = large()

    async def serve():
        calls = [training.donor.fetch(Place()) for _ in range(AT_ONCE)]
        for frames in calls:
            await anext(frames)
            await anext(frames)
        frames_a_minute = int(SPAN_SECONDS // FRAME_SECONDS) + 2
        for _ in range(frames_a_minute):
            training.now += slower * FRAME_SECONDS
            for frames in calls:
                await anext(frames)
        (third, _), rest = await first_of(training.donor.fetch(Place())), [await all_of(frames) for frames in calls]
        return bool(offer(third).copy), [len(each) for each in rest]

    got, rest = asyncio.run(serve())
    assert got == served
    assert [bool(each) for each in rest] == [not served, True]  # one of them only


def test_in_a_round_a_newcomer_is_not_taken_for_slow(monkeypatch):
    training = large()
    monkeypatch.setattr(state_donor, "PAUSE_SECONDS", 0.0)

    async def serve():
        calls = [training.donor.fetch(Place()) for _ in range(AT_ONCE)]
        with training.uplink.round(1):
            for _ in range(6):
                for frames in calls:
                    await anext(frames)
                training.now += SPAN_SECONDS / 3
        return offer(await anext(training.donor.fetch(Place())))

    assert asyncio.run(serve()) == Offer()


def test_one_that_broke_off_finds_its_copy_again_after_as_long_as_it_was_served():
    training = large()

    async def serve(away):
        first, frames = await first_of(training.donor.fetch(Place()))
        for _ in range(10):
            await anext(frames)
            training.now += FRAME_SECONDS / 2
        await frames.aclose()
        training.epoch += 5
        training.now += away
        _, others = await first_of(training.donor.fetch(Place()))
        await others.aclose()
        again, _ = await first_of(training.donor.fetch(Place(offer(first).copy, 0, 2 * PART_BYTES)))
        return offer(first).copy == offer(again).copy

    served = 9 * FRAME_SECONDS / 2  # the last frame was not taken
    assert served > KEPT_SECONDS
    assert asyncio.run(serve(served - 1))
    assert not asyncio.run(serve(served + 1))


def test_a_transfer_is_judged_over_a_minute_and_later_over_half_of_its_time():
    speed = Speed()
    speed.took(0, SPAN_SECONDS - 1)
    assert not speed.is_slow
    speed.took(0, 1)
    assert speed.is_slow
    speed.took(10**9, SPAN_SECONDS)
    assert not speed.is_slow
    for _ in range(60):
        speed.took(10**9, SPAN_SECONDS)
    speed.took(0, 10 * SPAN_SECONDS)
    assert not speed.is_slow
    speed.took(0, 30 * SPAN_SECONDS)
    assert speed.is_slow
