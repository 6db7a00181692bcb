"""A rank that is gone, or hangs, ends the others' collectives; the masters go on among those that are left."""

import os
import signal
import time

import pytest
import torch
from torch import distributed as dist

import gloo_ranks
from manifests import raw
from skep.recipes.registry import open_recipe, parse_manifest
from skep.worker.ranks.sharding import ShardedModel

SHAPE = {"type": "gpt2", "layers": 2, "heads": 2, "width": 32, "vocabulary": 256}
RECIPE = open_recipe(parse_manifest(raw(recipe__model=SHAPE, recipe__sequence_length=16)).recipe)
RANKS, LOST, DEADLINE = 4, 2, 5.0


def batches():
    torch.manual_seed(3)
    return [RECIPE.example(12) for _ in range(3)]


def step(masters, stepping):
    if masters is not None:
        stepping.step()
        stepping.zero_grad()


def part(batch, rank, count):
    return batch.part(rank * len(batch) // count, len(batch) // count)


def lose_a_rank(rank, count, folder, how):
    """Losses before and after, the seconds until the loss of a rank was noticed, and rank 0's parameters."""
    first, lost, last = batches()
    masters = RECIPE.build() if rank == 0 else None
    stepping = None if masters is None else torch.optim.AdamW(masters.parameters(), **gloo_ranks.ADAM)
    model = ShardedModel(RECIPE, gloo_ranks.join(rank, count, folder / "first", DEADLINE), "fp32")
    model.load(masters)
    losses = [model.add_gradients(part(first, rank, count), 1.0, len(first))]
    model.gather_gradients(masters)
    step(masters, stepping)
    model.load_trained(masters)
    if rank == LOST:
        os.kill(os.getpid(), how)
    begun = time.monotonic()
    with pytest.raises(RuntimeError):
        model.add_gradients(part(lost, rank, count), 1.0, len(lost))
    seconds = time.monotonic() - begun
    del model
    dist.destroy_process_group()

    rank, count = rank - (rank > LOST), count - 1
    again = ShardedModel(RECIPE, gloo_ranks.join(rank, count, folder / "second"), "fp32")
    again.load(masters)
    losses.append(again.add_gradients(part(last, rank, count), 1.0, len(last)))
    again.gather_gradients(masters)
    step(masters, stepping)
    return losses, seconds, None if masters is None else [p.detach().tolist() for p in masters.parameters()]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_three_of_four_ranks_go_on_with_the_same_masters(how):
    model = RECIPE.build()
    stepping, losses = torch.optim.AdamW(model.parameters(), **gloo_ranks.ADAM), []
    first, _, last = batches()
    for batch in (first, last):
        loss = RECIPE.loss(model, batch)
        loss.backward()
        losses.append(loss.item())
        step(model, stepping)

    found = gloo_ranks.run(RANKS, lose_a_rank, how, silent={LOST})
    assert found.pop(LOST) is gloo_ranks.GONE
    for each, seconds, _ in found:
        assert each == pytest.approx(losses, abs=1e-5)
        assert seconds < 2 * DEADLINE
    assert gloo_ranks.difference(model.parameters(), found[0][2]) < 1e-5


def lose_a_rank_while_gathering(rank, count, folder):
    masters = RECIPE.build() if rank == 0 else None
    model = ShardedModel(RECIPE, gloo_ranks.join(rank, count, folder / "store", DEADLINE), "fp32")
    model.load(masters)
    model.add_gradients(RECIPE.example(1), 1.0, count)
    if rank == count - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        model.gather_gradients(masters)
        model.load_trained(masters)  # a rank that has sent all of its own learns it here
    except RuntimeError as error:
        untouched = masters is None or all(each.grad is None for each in masters.parameters())
        return type(error).__name__, untouched


def test_gradients_of_which_a_part_is_missing_are_not_taken_for_a_sum():
    found = gloo_ranks.run(3, lose_a_rank_while_gathering, silent={2})
    assert found[:2] == [("RuntimeError", True)] * 2
