"""The manifest's compressions as codecs: received values, bytes, and why all peers must use the same one."""

import pytest
import torch
from hivemind.averaging.partition import TensorPartContainer
from hivemind.compression import deserialize_torch_tensor
from hivemind.compression.base import CompressionInfo, TensorRole

from skep.worker.swarm.averaging.codecs import loading_codec, round_codec

pytestmark = pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")  # caused by hivemind

EIGHT_BITS, SIXTEEN_BITS = (1.0, 1.2), (2.0, 2.1)


def sent(codec, tensor, role=TensorRole.GRADIENT):
    """Bytes per value, and the received tensor."""
    message = codec.compress(tensor, CompressionInfo.from_tensor(tensor, role=role))
    return len(message.buffer) / tensor.numel(), deserialize_torch_tensor(message)


@pytest.mark.parametrize(("size", "bounds"), [(9_999, SIXTEEN_BITS), (10_000, EIGHT_BITS)])
def test_size_adaptive_compression_takes_eight_bits_from_its_threshold_on(size, bounds):
    taken, arrived = sent(round_codec("size-adaptive", 10_000), torch.randn(size))
    assert bounds[0] <= taken <= bounds[1]
    assert arrived.shape == (size,)


@pytest.mark.parametrize("name", ["none", "float16", "scaled-float16", "uniform-8bit", "size-adaptive"])
def test_single_numbers_and_statistics_are_handed_to_a_newcomer_as_they_are(name):
    codec = loading_codec(name, 2)
    number, moments = torch.tensor(1 / 3), torch.full((50, 50), 1e-12)
    assert torch.equal(sent(codec, number, TensorRole.PARAMETER)[1], number)
    assert torch.equal(sent(codec, moments, TensorRole.OPTIMIZER)[1], moments)
    taken, _ = sent(codec, torch.randn(200, 200), TensorRole.PARAMETER)
    assert (taken >= 4) is (name == "none")


def test_tensors_are_cut_into_other_parts_by_another_compression():
    """Peers with different compressions cannot be in one round, so the compression is part of the run id."""
    tensor = torch.zeros(1_000_000)
    parts = {
        name: TensorPartContainer((tensor,), (1, 1), compression=round_codec(name, 9)).num_parts_by_peer
        for name in ("none", "float16", "uniform-8bit")
    }
    assert len(set(parts.values())) == 3
