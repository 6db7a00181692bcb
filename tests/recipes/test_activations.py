"""What training keeps of one sample, counted from the tensors that autograd saves."""

import pytest
import torch

from manifests import example, images, masked, raw
from skep.recipes.contract import BLOCK_VALUES
from skep.recipes.registry import open_recipe, parse_manifest

WIDTH = 128
GPT2 = example()["recipe"] | {"model": {"type": "gpt2", "heads": 2, "width": WIDTH, "vocabulary": 256}}
LLAMA = GPT2 | {"model": GPT2["model"] | {"type": "llama"}}


def saved(recipe):
    """Values that a forward pass of one sample keeps for the backward pass, without parameters."""
    opened, found = open_recipe(recipe), {}
    model = opened.build().train()
    parameters = {each.untyped_storage().data_ptr() for each in model.parameters()}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            found[storage.data_ptr()] = storage.nbytes() // 4
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = opened.loss(model, opened.example(1))
        count = sum(found.values())
        del loss
    return count


@pytest.mark.parametrize(
    "body",
    [GPT2, LLAMA, masked(width=WIDTH), images(width=WIDTH, image_size=64)],
    ids=["gpt2", "llama", "bert", "vit"],
)
def test_a_block_keeps_what_the_estimate_of_activations_says_or_less(body):
    one, three = (
        parse_manifest(raw(recipe=body | {"model": body["model"] | {"layers": layers}})).recipe for layers in (1, 3)
    )
    of_block = (saved(three) - saved(one)) / 2
    assert BLOCK_VALUES / 2 < of_block / (one.positions * WIDTH) < BLOCK_VALUES + 0.1
