"""The fields and tensors that several kinds of models have in common. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Final, Protocol

from skep.core.project.fields import Field, FieldError, Whole
from skep.core.project.recipe import Shape, Shapes
from skep.core.text import Text

SIZES: Final[dict[str, Field]] = {"layers": Whole(1, 128), "heads": Whole(1, 256), "width": Whole(8, 16384)}
SEED: Final = Whole(0, 2**32 - 1)


class Attention(Protocol):
    """A model whose layers look at several parts of their width each on its own."""

    @property
    def heads(self) -> int: ...
    @property
    def width(self) -> int: ...


def check_heads(shape: Attention) -> None:
    """Raise FieldError unless each head gets an equal part of the width."""
    if shape.width % shape.heads:
        raise FieldError("recipe.model.width", Text("field.must_multiple_heads"))


def tensors(*shapes: Shape) -> Shapes:
    return Counter(shapes)


def linear(inputs: int, outputs: int) -> Shapes:
    """The weight and the bias of torch.nn.Linear."""
    return tensors((outputs, inputs), (outputs,))


def norm(width: int) -> Shapes:
    """The weight and the bias of torch.nn.LayerNorm."""
    return tensors((width,), (width,))


def encoder_layer(width: int) -> Shapes:
    """One layer of bert, albert or vit: attention, and a feed-forward part four times as wide."""
    attention = [linear(width, width)] * 4
    feed_forward = [linear(width, 4 * width), linear(4 * width, width)]
    return sum([*attention, *feed_forward, norm(width), norm(width)], Counter())
