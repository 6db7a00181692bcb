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

from skep.worker.swarm.state import donor
from skep.worker.swarm.state.donor import AT_ONCE, PART_BYTES, Copy, Offer, Place, StateDonor

TENSORS = (torch.arange(300_000, dtype=torch.float32), torch.ones(3, 5), torch.zeros(1_000_001))


class Stock:
    allow_state_sharing = True
    state_compression = NoCompression()

    async def _get_current_state_from_host_process(self):
        return b"metadata", TENSORS, None


class Training:
    """A peer whose state changes: `epoch` is its label, and each copy taken is counted."""

    def __init__(self):
        self.epoch, self.copies = 7, 0
        self.donor = StateDonor(self.take, lambda: self.epoch, NoCompression())

    async def take(self):
        self.copies += 1
        await asyncio.sleep(0)
        infos = [CompressionInfo.from_tensor(tensor) for tensor in TENSORS]
        return Copy(self.epoch, b"metadata of %d" % self.epoch, list(TENSORS), infos)


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
    assert offer(rest[0]) == offer(middle[0]) == offer(whole[0])
    assert parts_of(middle) == frames[1:]
    assert parts_of(rest) == frames[last:]
    assert training.copies == 1


def test_a_transfer_of_a_copy_that_is_gone_begins_again(training):
    again = asyncio.run(all_of(training.donor.fetch(Place("another", 1, PART_BYTES))))
    assert len(put_together(parts_of(again))) == len(TENSORS)


def test_newcomers_that_take_nothing_lose_their_place_and_a_copy_that_nobody_needs_goes(training, monkeypatch):
    monkeypatch.setattr(donor, "IDLE_SECONDS", -1.0)
    monkeypatch.setattr(donor, "KEPT_SECONDS", -1.0)

    async def serve():
        taken = [await first_of(training.donor.stock()) for _ in range(AT_ONCE + 1)]
        training.donor.tidy()
        return [await all_of(frames) for _, frames in taken]

    assert asyncio.run(serve()) == [[]] * (AT_ONCE + 1)
    assert training.copies == AT_ONCE + 1
    assert all(earlier == later for earlier, later in pairwise([training.donor._copy, None]))
