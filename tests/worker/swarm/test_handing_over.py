"""A state is sent in fewer and larger frames than by stock hivemind; every peer can read them."""

import asyncio
from types import SimpleNamespace

import pytest
import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.compression import NoCompression, deserialize_torch_tensor
from hivemind.utils.streaming import combine_from_streaming

from skep.worker.swarm.honest_averager import STATE_PART_BYTES, HonestAverager

TENSORS = (torch.arange(300_000, dtype=torch.float32), torch.ones(3, 5), torch.zeros(1_000_001))


class Donor:
    allow_state_sharing = True
    state_compression = NoCompression()

    async def _admits(self, peer, *, averaging):
        return not averaging

    async def _get_current_state_from_host_process(self):
        return b"metadata", TENSORS, None


async def frames_of(kind, donor):
    return [message async for message in kind.rpc_download_state(donor, None, SimpleNamespace(remote_id="newcomer"))]


def put_together(messages):
    """Combine frames as a stock newcomer does: a frame that names a dtype begins the next tensor."""
    parts = []
    for message in messages:
        if message.tensor_part.dtype:
            parts.append([])
        parts[-1].append(message.tensor_part)
    return [deserialize_torch_tensor(combine_from_streaming(each)) for each in parts]


@pytest.mark.parametrize(("kind", "largest"), [(DecentralizedAverager, 2**16), (HonestAverager, STATE_PART_BYTES)])
def test_frames_are_large_and_hold_the_same_state(kind, largest):
    messages = asyncio.run(frames_of(kind, Donor()))
    assert max(len(message.tensor_part.buffer) for message in messages) == largest
    assert [message.metadata for message in messages if message.metadata] == [b"metadata"]
    assert messages[0].metadata
    assert all(torch.equal(*pair) for pair in zip(put_together(messages), TENSORS, strict=True))


def test_who_shares_no_state_sends_nothing():
    assert asyncio.run(frames_of(HonestAverager, SimpleNamespace(allow_state_sharing=False))) == []
