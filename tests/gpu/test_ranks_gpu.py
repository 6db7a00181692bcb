"""Ranks on a CUDA GPU: a group of NCCL with one rank, and two ranks on one card, whose gradients travel by gloo."""

import pytest
import torch

from manifests import raw
from skep.recipes.registry import open_recipe, parse_manifest
from skep.worker.process import processes
from skep.worker.ranks import collectives, orders, rendezvous
from skep.worker.ranks.group import GroupTrainer
from skep.worker.ranks.others import fork
from skep.worker.training import device
from skep.worker.training.trainer import Trainer

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(torch.cuda.device_count() == 0, reason="needs a CUDA device")]

GPT2 = {"type": "gpt2", "layers": 2, "heads": 2, "width": 64, "vocabulary": 256}
MANIFEST = parse_manifest(raw(recipe__model=GPT2, recipe__sequence_length=32))


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


def test_two_ranks_on_one_card_give_the_gradients_of_one(others, tmp_path):
    chosen = device.pick("cuda:0", "fp32")
    one, two = Trainer(MANIFEST, chosen), GroupTrainer(MANIFEST, chosen, others, tmp_path)
    two.begin()
    assert len(two.devices) == 2
    assert torch.distributed.get_backend() == rendezvous.GLOO
    batch = open_recipe(MANIFEST.recipe).example(8)
    for made in (one, two):
        made.add_gradients(batch, 1.0)
        made.collect()
    grads = [torch.cat([p.grad.flatten() for p in made.parameters]) for made in (one, two)]
    assert float((grads[0] - grads[1]).norm() / grads[0].norm()) < 1e-4
    assert two.lost() == 0
    rendezvous.leave()


def test_nccl_connects_the_ranks_when_they_meet(tmp_path):
    chosen = device.pick("cuda:0", "fp32")
    rendezvous.use_for_collectives(chosen)
    rendezvous.meet(orders.Meet(str(tmp_path / "meeting"), 0, 1, rendezvous.NCCL, 20.0, "cuda:0"))
    assert torch.distributed.get_backend() == rendezvous.NCCL
    tensors = [torch.randn(1000, device="cuda:0"), torch.ones(3, device="cuda:0", dtype=torch.int64)]
    kept = [each.clone() for each in tensors]
    collectives.broadcast(tensors)
    collectives.take(collectives.sums(tensors), tensors)
    assert all(torch.equal(each, other) for each, other in zip(tensors, kept, strict=True))
    rendezvous.leave()
    assert not torch.distributed.is_initialized()
