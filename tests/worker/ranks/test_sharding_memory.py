"""How much of a model a rank holds: live storage of parameters, counted whenever a module has computed."""

import gc

import pytest
import torch
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

import gloo_ranks
from manifests import raw
from skep.core.project.data import values
from skep.recipes.registry import open_recipe, parse_manifest
from skep.worker.ranks.sharding import ShardedModel

RANKS = 4


def recipe_of(kind):
    shape = {"type": kind, "layers": 4, "heads": 2, "width": 64, "vocabulary": 256}
    return open_recipe(parse_manifest(raw(recipe__model=shape, recipe__sequence_length=16)).recipe)


def held():
    """Bytes of the storage of all parameters that were made in this process since gc.freeze."""
    found = {}
    for each in gc.get_objects():
        # isinstance alone would ask objects that answer with a warning
        if issubclass(type(each), torch.Tensor) and isinstance(each, torch.nn.Parameter) and not each.is_meta:
            storage = (each.to_local() if isinstance(each, DTensor) else each).untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
    return sum(found.values())


def received(model):
    """Bytes that were gathered and are kept beside the parameters they were copied into, or before that."""
    states = [each._get_fsdp_state() for each in model.modules() if isinstance(each, FSDPModule)]
    pending = [group._all_gather_result for state in states for group in state._fsdp_param_groups]
    kept = getattr(states[0]._comm_ctx, "all_gather_state", None)
    results = [each for each in (*pending, kept and kept.all_gather_result) if each is not None]
    return sum(each.all_gather_output.untyped_storage().nbytes() for each in results)


def watch(rank, count, folder, kind, recompute, precision):
    """The most bytes of parameters in forward and in backward passes, and the number of times they were counted."""
    recipe, seen = recipe_of(kind), {"forward": [], "backward": []}
    buffers = {"forward": [], "backward": []}
    masters = recipe.build() if rank == 0 else None
    gc.freeze()
    model = ShardedModel(recipe, gloo_ranks.join(rank, count, folder / "store"), precision, recompute=recompute)
    model.load(masters)

    def look_at(direction):
        seen[direction].append(held())
        buffers[direction].append(received(model._model))

    def look(_module, _inputs, output):
        look_at("forward")
        if isinstance(output, torch.Tensor) and output.requires_grad:
            # not a hook of the module, which would return another tensor
            output.register_hook(lambda _: look_at("backward"))

    for module in model._model.modules():
        module.register_forward_hook(look)
    torch.manual_seed(rank)
    for _ in range(2):
        model.add_gradients(recipe.example(1), 1.0, count)
    model.discard_gradients()
    kept = {"at rest": held(), "received": {name: max(sizes) for name, sizes in buffers.items()}}
    return kept | {name: (max(sizes), len(sizes)) for name, sizes in seen.items()}


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_rank_holds_its_share_and_one_block(kind, recompute):
    recipe = recipe_of(kind)
    model = recipe.build()
    whole = 4 * values(recipe.recipe.trained)
    layers = model.transformer.h if kind == "gpt2" else model.model.layers
    block = 4 * sum(p.numel() for p in layers[0].parameters())
    for found in gloo_ranks.run(RANKS, watch, kind, recompute, "fp32"):
        assert found["at rest"] == whole / RANKS
        for most, times in (found["forward"], found["backward"]):
            assert times > 40
            assert whole / RANKS < most <= whole / RANKS + block
        assert found["received"] == {"forward": 0, "backward": 0}  # it was copied into the parameters


def test_in_bf16_the_block_is_half_as_large():
    recipe = recipe_of("llama")
    model = recipe.build()
    whole, block = (sum(p.numel() for p in part.parameters()) for part in (model, model.model.layers[0]))
    for found in gloo_ranks.run(RANKS, watch, "llama", True, "bf16"):
        assert found["at rest"] == whole
        assert found["forward"][0] == found["backward"][0] == whole + 2 * block
