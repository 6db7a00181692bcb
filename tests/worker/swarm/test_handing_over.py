"""Handing a state over: one copy for all who come together, a few at a time, in frames that stock peers can read."""

import asyncio
from itertools import pairwise
from types import SimpleNamespace

import msgspec
import pytest
import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.compression import CompressionInfo, NoCompression, deserialize_torch_tensor
from hivemind.utils.streaming import combine_from_streaming

from skep.worker.swarm.state.digests import begun
from skep.worker.swarm.state.donor import AT_ONCE, PART_BYTES, Copy, Offer, Place, StateDonor
from skep.worker.swarm.state.uplink import LEAST_PAUSE_SECONDS, SHARE, Pace, Uplink

TENSORS = (torch.arange(300_000, dtype=torch.float32), torch.ones(3, 5), torch.zeros(1_000_001))


class Stock:
    allow_state_sharing = True
    state_compression = NoCompression()

    async def _get_current_state_from_host_process(self):
        return b"metadata", TENSORS, None


class Training:
    """A peer whose state changes: `epoch` is its label, and each copy taken is counted."""

    def __init__(self, tensors=TENSORS, **options):
        self.epoch, self.copies, self.uplink, self._tensors = 7, 0, Uplink(), tensors
        self.donor = StateDonor(self.take, lambda: self.epoch, NoCompression(), self.uplink, **options)

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


def test_a_new_epoch_is_copied_when_nobody_loads_an_older_one(training):
    async def serve():
        first, loading = await first_of(training.donor.fetch(Place()))
        await anext(loading)
        training.epoch += 1
        second, _ = await first_of(training.donor.fetch(Place()))  # an epoch old: still the same copy
        training.epoch += 1
        away = await all_of(training.donor.stock())  # two copies would be in memory
        return first, second, away

    first, second, away = asyncio.run(serve())
    assert offer(first).copy == offer(second).copy
    assert away == []
    assert offer(asyncio.run(first_of(training.donor.fetch(Place())))[0]).metadata == b"metadata of 9"


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


def test_newcomers_that_take_nothing_lose_their_place_and_a_copy_that_nobody_needs_goes():
    training = Training(idle=-1.0, kept=-1.0)

    async def serve():
        taken = [await first_of(training.donor.stock()) for _ in range(AT_ONCE + 1)]
        training.donor.tidy()
        return [await all_of(frames) for _, frames in taken]

    assert asyncio.run(serve()) == [[]] * (AT_ONCE + 1)
    assert training.copies == AT_ONCE + 1
    assert all(earlier == later for earlier, later in pairwise([training.donor._copy, None]))
