"""Messages between ranks are of bounded size, whatever the tensors; here in a group of one."""

import pytest
import torch
import torch.distributed as dist

from skep.worker.ranks import collectives


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(collectives, "BUCKET_BYTES", 64)


@pytest.fixture
def group(tmp_path):
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def tensors():
    torch.manual_seed(0)
    return [
        torch.randn(3),
        torch.randn(50, 7),
        torch.randn(7, 50).t(),
        torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last),
        torch.randn(()),
        torch.zeros(0, 5),
        torch.arange(100),
        torch.randn(4),
    ]


def test_no_message_is_larger_than_the_bound(small):
    messages = list(collectives.buckets(tensors()))
    assert max(sum(each.nbytes for each in message) for message in messages) <= 64
    assert sum(each.nbytes for message in messages for each in message) == sum(each.nbytes for each in tensors())
    assert all(len({each.dtype for each in message}) == 1 for message in messages)


def test_small_tensors_share_a_message(small):
    messages = list(collectives.buckets([torch.zeros(4) for _ in range(8)]))
    assert [len(message) for message in messages] == [4, 4]


def test_what_is_sent_in_parts_arrives_whole(small, group):
    sent = tensors()
    received = [torch.zeros_like(each) for each in sent]
    parameters = [torch.nn.Parameter(each, requires_grad=each.is_floating_point()) for each in received]
    collectives.broadcast(parameters)
    collectives.take(collectives.sums(sent), parameters)
    assert all(torch.equal(each, other) for each, other in zip(sent, received, strict=True))


@pytest.mark.parametrize(
    ("error", "own"),
    [
        (RuntimeError("CUDA error: unspecified launch failure"), True),
        (dist.DistBackendError("NCCL error: unhandled CUDA error"), False),
        (RuntimeError("Connection closed by peer"), False),
        (RuntimeError("CUDA error: out of memory"), False),
    ],
)
def test_what_the_group_reports_may_be_another_ranks_device(error, own):
    assert collectives.is_loss_of_own_device(error) is own
