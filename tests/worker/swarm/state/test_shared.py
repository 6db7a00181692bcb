"""Copies of tensors in shared memory: what they are, and what they take in the process that they are sent to."""

import sys
from multiprocessing import get_context

import psutil
import pytest
import torch
from torch import multiprocessing  # noqa: F401 - pickles tensors by what they share

from skep.worker.swarm.state import shared


def state():
    """Tensors of many shapes and dtypes, as parameters, statistics and counts of steps are."""
    return [
        torch.arange(3, dtype=torch.uint8),
        torch.nn.Parameter(torch.randn(5, 7)),
        torch.tensor(3.0),
        torch.empty(0, 4),
        torch.randn(4, 6).bfloat16().t(),
        torch.arange(9, dtype=torch.int64),
        torch.randn(2, 3, dtype=torch.float64),
    ]


def test_a_copy_has_the_same_shapes_dtypes_and_values_and_does_not_change():
    tensors = state()
    wanted = [each.detach().clone() for each in tensors]
    copied = shared.copied(tensors)
    with torch.no_grad():
        for each in tensors:
            each.zero_()
    for each, other in zip(copied, wanted, strict=True):
        torch.testing.assert_close(each, other, rtol=0, atol=0)
        assert each.is_contiguous()
        assert each.is_shared()
        assert each.data_ptr() % each.element_size() == 0


def descriptors():
    return psutil.Process().num_fds()


def answer(pipe):
    before = descriptors()
    tensors = pipe.recv()
    pipe.send((descriptors() - before, [each.float().sum().item() for each in tensors]))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shares each tensor by a descriptor")
@pytest.mark.parametrize("ours", [False, True], ids=["each by itself", "ours"])
def test_a_copy_takes_one_descriptor_in_the_process_that_it_is_sent_to(ours):
    tensors = [torch.full((100,), float(value)) for value in range(50)]
    copied = shared.copied(tensors) if ours else [each.share_memory_() for each in tensors]
    context = get_context("fork")
    own, other = context.Pipe()
    process = context.Process(target=answer, args=[other], daemon=True)
    process.start()
    own.send(copied)
    taken, sums = own.recv()
    process.join()
    assert taken == (1 if ours else len(tensors))
    assert sums == [100.0 * value for value in range(50)]
