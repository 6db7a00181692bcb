"""The parts of a model that are gathered and freed together when its parameters are sharded.

Each transformer block is one part, and so is each module outside of the blocks that has parameters of its own. Nothing
is left to the root, which FSDP keeps gathered for a whole pass: only the part that computes is whole on a device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule, register_fsdp_forward_method


class TiedEmbedding(nn.Embedding):
    """An embedding whose weight also predicts: both uses gather it and free it again."""

    def predict(self, hidden: torch.Tensor) -> torch.Tensor:
        """`hidden` [..., width] to logits [..., vocabulary]."""
        return nn.functional.linear(hidden, self.weight)


class TiedHead(nn.Module):
    """Stands for a linear layer whose weight is an embedding's; holds the bias only."""

    bias: nn.Parameter | None

    def __init__(self, embedding: TiedEmbedding, bias: nn.Parameter | None) -> None:
        super().__init__()
        self._embedding = (embedding,)  # in a tuple, so that it is no submodule here
        self.register_parameter("bias", bias)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self._embedding[0].predict(hidden)
        return logits if self.bias is None else logits + self.bias


def separate_heads(model: nn.Module) -> None:
    """Let each output layer use the weight that it shares with an embedding through that embedding.

    FSDP has shared parameters in one part only, which would keep the vocabulary's matrix gathered from the first layer
    to the last one.
    """
    for owners in _owners(model).values():
        embeddings = [owner for name in owners if type(owner := model.get_submodule(name)) is nn.Embedding]
        heads = [name for name in owners if type(model.get_submodule(name)) is nn.Linear]
        if len(embeddings) == 1 and len(embeddings) + len(heads) == len(owners) > 1:
            (embedding,) = embeddings
            embedding.__class__ = TiedEmbedding
            assert isinstance(embedding, TiedEmbedding)
            for name in heads:
                head = model.get_submodule(name)
                assert isinstance(head, nn.Linear)
                model.set_submodule(name, TiedHead(embedding, head.bias))


def gather_for_heads(model: nn.Module) -> None:
    """After sharding: predicting with a tied embedding is a use of its own, as its forward is."""
    for module in model.modules():
        if isinstance(module, TiedEmbedding) and isinstance(module, FSDPModule):
            register_fsdp_forward_method(module, TiedEmbedding.predict.__name__)


def units(model: nn.Module) -> list[nn.Module]:
    """The parts of `model`, inner ones before those around them."""
    blocks = set(_blocks(model))
    places = blocks | {_common(owners) for owners in _owners(model).values() if not _inside(owners, blocks)}
    shared = {_common(owners) for owners in _owners(model).values() if len(owners) > 1}
    # what shares a parameter is one part, but for the blocks in it
    places -= {place for place in places - blocks if any(_is_within(place, other) for other in shared)}
    deepest_first = sorted(places, key=lambda name: -len(name.split(".")) if name else 1)
    return [model.get_submodule(name) for name in deepest_first]


def _blocks(model: nn.Module) -> Iterator[str]:
    """Names of the elements of the outermost lists of modules."""
    lists = [name for name, module in model.named_modules() if isinstance(module, nn.ModuleList)]
    for name in lists:
        if not any(_is_within(name, other) for other in lists):
            for child, module in model.get_submodule(name).named_children():
                if any(True for _ in module.parameters()):
                    yield f"{name}.{child}" if name else child


def _owners(model: nn.Module) -> dict[nn.Parameter, list[str]]:
    """Names of the modules that have each parameter as their own."""
    found: dict[nn.Parameter, list[str]] = defaultdict(list)
    for name, module in model.named_modules():
        for parameter in module.parameters(recurse=False):
            found[parameter].append(name)
    return found


def _inside(owners: list[str], blocks: set[str]) -> bool:
    """Whether all owners are in one block."""
    return any(all(owner == block or _is_within(owner, block) for owner in owners) for block in blocks)


def _is_within(name: str, other: str) -> bool:
    """Whether the module `name` is inside of `other`; the root's name is empty."""
    return name != other and (not other or name.startswith(f"{other}."))


def _common(names: list[str]) -> str:
    """The innermost module that has all of these in it, or is one of them."""
    first, *others = [name.split(".") for name in names]
    depth = 0
    while depth < len(first) and all(other[depth : depth + 1] == first[depth : depth + 1] for other in others):
        depth += 1
    return ".".join(first[:depth])
