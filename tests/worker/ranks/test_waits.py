"""Each collective is waited for: by NCCL one that is not asynchronous has no deadline. Here torch's functions are seen."""

from unittest import mock

import pytest
import torch
import torch.distributed as dist

import gloo_ranks
from manifests import raw
from skep.recipes.registry import open_recipe, parse_manifest
from skep.worker.ranks import collectives, sharding_norms, sharding_waits
from skep.worker.ranks.orders import Meet
from skep.worker.ranks.rendezvous import BOTH, GLOO, NCCL, meet
from skep.worker.ranks.sharding import ShardedModel

SHAPE = {"type": "gpt2", "layers": 2, "heads": 2, "width": 16, "vocabulary": 256}
RECIPE = open_recipe(parse_manifest(raw(recipe__model=SHAPE, recipe__sequence_length=16)).recipe)


@pytest.fixture
def seen(monkeypatch):
    """A function of torch.distributed by its name; its calls."""

    def seen(name):
        function = mock.Mock()
        monkeypatch.setattr(dist, name, function)
        return function

    monkeypatch.setattr(dist, "get_rank", lambda: 0)
    monkeypatch.setattr(dist, "get_backend", lambda: NCCL)
    return seen


def is_waited_for(function):
    ((_, named),) = function.call_args_list
    return named["async_op"] and function.return_value.wait.call_count == 1


def test_sums_and_copies_are_waited_for(seen):
    reduce, broadcast, all_reduce = seen("reduce"), seen("broadcast"), seen("all_reduce")
    collectives.sums([torch.zeros(3)])
    collectives.broadcast([torch.zeros(3)])
    sharding_norms._Sum.apply(torch.zeros(3), None)
    assert is_waited_for(reduce)
    assert is_waited_for(broadcast)
    assert is_waited_for(all_reduce)


def test_what_the_parts_of_a_sharded_model_send_is_waited_for(seen):
    gather, scatter = seen("all_gather_single"), seen("reduce_scatter_single")
    sharding_waits.WaitedAllGather()(torch.zeros(2), torch.zeros(1), None)
    sharding_waits.WaitedReduceScatter()(torch.zeros(1), torch.zeros(2), None, dist.ReduceOp.SUM)
    assert is_waited_for(gather)
    assert is_waited_for(scatter)


def count_waits(rank, count, folder):
    model = ShardedModel(RECIPE, gloo_ranks.join(rank, count, folder / "store"), "fp32")
    model.load(RECIPE.build() if rank == 0 else None)
    with mock.patch.object(sharding_waits, "wait", side_effect=collectives.wait) as waits:
        model.add_gradients(RECIPE.example(1), 1.0, count)
    return waits.call_count


def test_fsdp_sends_all_parts_of_a_model_so():
    parts = SHAPE["layers"] + 2
    assert all(found >= 3 * parts for found in gloo_ranks.run(2, count_waits))  # forward, backward, gradients


@pytest.mark.parametrize(
    ("backend", "device"), [(NCCL, torch.device("cuda:1")), (BOTH, torch.device("cuda:1")), (GLOO, None)]
)
def test_nccl_connects_ranks_when_they_meet(monkeypatch, tmp_path, backend, device):
    begun = mock.Mock()
    monkeypatch.setattr(dist, "init_process_group", begun)
    meet(Meet(str(tmp_path / "store"), rank=0, size=1, backend=backend, seconds=5.0, device="cuda:1"))
    assert begun.call_args.kwargs["device_id"] == device
