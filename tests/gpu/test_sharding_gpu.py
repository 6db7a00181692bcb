"""A model that is spread over ranks, on a CUDA GPU: alone by NCCL and gloo, and two ranks on one card.

`max_memory_allocated` is held against the share of one rank: its parameters, and as much for the sums of gradients. Beside
these there are a few blocks: the one that is gathered, its gradients, and the messages that carry both.
"""

import gc

import pytest
import torch
from torch import distributed as dist

from manifests import raw
from skep.recipes.registry import open_recipe, parse_manifest
from skep.worker.process import processes
from skep.worker.ranks import orders, rendezvous
from skep.worker.ranks.group import Building
from skep.worker.ranks.others import Others, fork
from skep.worker.ranks.sharded_group import ShardedTrainer
from skep.worker.ranks.sharding_waits import WaitedAllGather, WaitedReduceScatter
from skep.worker.training import device
from skep.worker.training.trainer import Trainer

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(torch.cuda.device_count() == 0, reason="needs a CUDA device")]

LAYERS = 24
GPT2 = {"type": "gpt2", "layers": LAYERS, "heads": 4, "width": 512, "vocabulary": 256}
LENGTH, SAMPLES = 8, 2
"""Few tokens: gpt2's activations of one take 1.3 MB in these layers."""
MANIFEST = parse_manifest(raw(recipe__model=GPT2, recipe__sequence_length=LENGTH))
ONE_LAYER = parse_manifest(raw(recipe__model=GPT2 | {"layers": 1}, recipe__sequence_length=LENGTH))
BLOCKS = 8
"""Of which there is room beside the share of a rank; LAYERS of them are the model."""
REST = 64 * 2**20
"""Bytes for activations of a few tokens."""


@pytest.fixture(scope="module")
def others():
    """Forked before this process uses the card, so this file needs a process of its own."""
    assert not torch.cuda.is_initialized()
    processes.use_fork()
    made = fork(["cuda:0"], MANIFEST)
    yield made
    for rank in made.ranks:
        rank.process.kill()
        rank.process.join()


@pytest.fixture(autouse=True)
def nothing_is_left(others):  # before anything else, so that the fork comes first
    yield
    rendezvous.leave()


def sizes():
    """Bytes of the parameters of the whole model, and of one block."""
    model = open_recipe(MANIFEST.recipe).build()
    return [sum(p.nbytes for p in part.parameters()) for part in (model, model.transformer.h[0])]


def gradients(trainer):
    """Of a few samples, on the processor, as one vector; the trainer is used up."""
    torch.manual_seed(5)
    batch = open_recipe(MANIFEST.recipe).example(SAMPLES)
    for scale in (0.5, 0.25):  # the second is added to the first
        trainer.add_gradients(batch, scale)
    trainer.collect()
    return torch.cat([p.grad.flatten().cpu() for p in trainer.parameters])


def make_workspaces(device):
    """Have the library that multiplies matrices allocate its workspaces, so that they are not counted as the model's.

    There is one for each stream and thread, up to 32 MiB. A Trainer would make those of another stream than shards use.
    """
    recipe = open_recipe(ONE_LAYER.recipe)
    recipe.loss(recipe.build().to(device), recipe.example(1).to(device)).backward()


def compared(sharded, chosen):
    """The most bytes of the card that `sharded` used, whose gradients are those of one device."""
    make_workspaces(chosen.device)
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    sharded.begin()
    found = gradients(sharded)
    most = torch.cuda.max_memory_allocated() - before
    assert sharded.lost() == 0
    sharded.drop()
    wanted = gradients(Trainer(MANIFEST, chosen))
    assert float((found - wanted).norm() / wanted.norm()) < 1e-4
    gc.collect()
    torch.cuda.empty_cache()
    return most


def test_two_ranks_on_one_card_hold_half_of_the_model_each_and_have_the_gradients_of_one(others, tmp_path):
    chosen = device.pick("cuda:0", "fp32")
    two = ShardedTrainer(MANIFEST, chosen, others, tmp_path)
    assert len(two.devices) == 2
    most = compared(two, chosen)
    assert len(two.devices) == 2
    whole, block = sizes()
    assert most < 2 * whole / 2 + BLOCKS * block + REST


@pytest.mark.parametrize("offload", [False, True])
def test_one_rank_alone_holds_its_shards_and_a_few_blocks(tmp_path, offload):
    chosen = device.pick("cuda:0", "fp32")
    one = ShardedTrainer(MANIFEST, chosen, Others([]), tmp_path, building=Building(offload=offload))
    assert one._backend() == rendezvous.BOTH
    most = compared(one, chosen)
    whole, block = sizes()
    assert most < (0 if offload else 2 * whole) + BLOCKS * block + REST


def test_a_group_of_both_sends_the_cards_tensors_by_nccl_and_the_hosts_by_gloo(tmp_path):
    rendezvous.use_for_collectives(device.pick("cuda:0", "fp32"))
    rendezvous.meet(orders.Meet(str(tmp_path / "meeting"), 0, 1, rendezvous.BOTH, 20.0, "cuda:0"))
    group = dist.group.WORLD
    assert [group._get_backend(torch.device(kind)).name() for kind in ("cpu", "cuda")] == ["gloo", "nccl"]
    for where in ("cpu", "cuda:0"):
        sent = torch.randn(1000, device=where)
        gathered, summed = torch.empty_like(sent), torch.empty_like(sent)
        WaitedAllGather()(gathered, sent, group)
        WaitedReduceScatter()(summed, sent, group, dist.ReduceOp.SUM)
        assert torch.equal(gathered, sent)
        assert torch.equal(summed, sent)
    rendezvous.leave()
    assert not dist.is_initialized()
