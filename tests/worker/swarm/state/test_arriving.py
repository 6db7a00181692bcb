"""A tensor of a state while its frames arrive."""

import pytest
import torch
from hivemind.compression import serialize_torch_tensor
from hivemind.proto import runtime_pb2
from hivemind.utils.streaming import split_for_streaming

from skep.worker.swarm.state.arriving import ArrivingTensor
from skep.worker.swarm.state.pieces import Piece

FLOAT16 = runtime_pb2.CompressionType.FLOAT16
FRAME = 1000
SENT = [
    torch.randn(1001, 3, generator=torch.Generator().manual_seed(1)),
    torch.arange(700, dtype=torch.int64),
    torch.randn(700).to(torch.float16),
    torch.randn(700).to(torch.bfloat16),
    torch.tensor(7.0),
    torch.empty(0, 3),
]


def piece_of(tensor):
    return Piece(tuple(tensor.shape), tensor.dtype, tensor.nbytes)


def arrived(tensor, piece=None, **codec):
    first, *rest = split_for_streaming(serialize_torch_tensor(tensor, **codec), FRAME)
    made = ArrivingTensor(piece or piece_of(tensor), first)
    for part in (first, *rest):
        made.add(part)
    assert made.frames == max(made.chunks, 1)  # that of an empty one says that it has none
    return made


@pytest.mark.parametrize("tensor", SENT, ids=lambda each: str(each.dtype))
def test_it_is_what_was_sent(tensor):
    made = arrived(tensor)
    assert made.tensor().dtype == tensor.dtype
    assert made.tensor().shape == tensor.shape
    assert torch.equal(made.tensor(), tensor)


def test_it_lies_where_the_training_process_reads_it():
    assert arrived(SENT[0]).tensor().is_shared()


def test_what_a_codec_has_made_is_decoded():
    made = arrived(SENT[0], compression_type=FLOAT16)
    assert made.bytes == SENT[0].nbytes / 2
    assert torch.allclose(made.tensor(), SENT[0], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("tensor", SENT[:3])
def test_one_that_has_more_bytes_than_its_shape_is_none(tensor):
    with pytest.raises(ValueError, match=r"."):
        arrived(tensor, Piece((tensor.numel() - 1,), tensor.dtype, tensor.nbytes))


@pytest.mark.parametrize("tensor", SENT[:3])
def test_one_that_has_fewer_bytes_than_its_shape_is_none(tensor):
    made = arrived(tensor, Piece((tensor.numel() + 1,), tensor.dtype, tensor.nbytes))
    with pytest.raises(ValueError, match="not all"):
        made.tensor()


def test_bytes_that_are_too_many_leave_what_came_before():
    made = arrived(SENT[0])
    with pytest.raises(ValueError, match=r"."):
        made.add(runtime_pb2.Tensor(buffer=b"\x00"))
    assert made.bytes == SENT[0].nbytes
    assert torch.equal(made.tensor(), SENT[0])
