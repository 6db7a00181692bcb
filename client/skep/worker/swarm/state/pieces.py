"""What the tensors of this model's state must be like, and the check of others' against that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from hivemind.compression import CompressionBase, CompressionInfo
from hivemind.utils import nested_flatten

from skep.core.errors import SwarmError
from skep.core.text import Text
from skep.worker.swarm.plausible import LARGEST_GRADIENT

OVERHEAD_BYTES: Final = 8192
"""What a codec may add to a tensor: 8-bit codecs send tables."""
SQUARES: Final = frozenset({"exp_avg_sq", "max_exp_avg_sq"})
"""Statistics of optimizers that are means of squares."""
NEVER_NEGATIVE: Final = SQUARES | {"step"}


@dataclass(frozen=True)
class Piece:
    """One tensor of a state, as it must be. `wire_bytes` are those that it takes when it is sent.

    No value exceeds `largest`, nor its negative: no usable gradient does, so no mean of gradients, and parameters of
    that size are of no use.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    wire_bytes: int
    non_negative: bool = False
    largest: float = LARGEST_GRADIENT

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)

    @property
    def most_bytes(self) -> int:
        return max(4, self.dtype.itemsize) * math.prod(self.shape) + OVERHEAD_BYTES


class Refusal(SwarmError):
    """A donor sent what cannot be this model's state."""


def piece_of(codec: CompressionBase, tensor: torch.Tensor, name: str, info: CompressionInfo) -> Piece:
    """What a tensor like ours must be, sent with `codec`. `name` is that of an optimizer's statistic, else ""."""
    on_wire = round(tensor.nbytes * codec.estimate_compression_ratio(info))
    largest = LARGEST_GRADIENT**2 if name in SQUARES else LARGEST_GRADIENT
    return Piece(tuple(tensor.shape), tensor.dtype, on_wire, name in NEVER_NEGATIVE, largest)


def unfit(number: int, shape: tuple[int, ...], dtype: str, piece: Piece) -> Refusal:
    """Tensor `number` is not what `piece` says."""
    return Refusal(
        Text(
            "peer.peer_sent_tensor_state_model",
            number=number,
            theirs=str(shape),
            their_dtype=dtype,
            ours=str(piece.shape),
            our_dtype=piece.dtype_name,
        ),
        Text("peer.trains_another_model_under_same"),
    )


def check(number: int, tensor: torch.Tensor, piece: Piece) -> None:
    """Raises Refusal unless tensor `number` is what `piece` says, and its values can be such a tensor's."""
    if tuple(tensor.shape) != piece.shape or tensor.dtype != piece.dtype:
        raise unfit(number, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), piece)
    least, most = map(float, tensor.detach().aminmax()) if tensor.numel() else (0.0, 0.0)  # without a copy
    if not (math.isfinite(least) and math.isfinite(most)):
        raise Refusal(Text("peer.peer_sent_state_values_not"), Text("peer.skep_tries_another_peer"))
    if piece.non_negative and least < 0:
        raise Refusal(Text("peer.peer_sent_negative_moments"), Text("peer.skep_tries_another_peer"))
    if max(-least, most) > piece.largest:
        raise Refusal(Text("peer.peer_sent_state_values_too_large"), Text("peer.skep_tries_another_peer"))


def check_all(pieces: Sequence[Piece], tensors: Sequence[torch.Tensor]) -> None:
    """Raises Refusal unless `tensors` are what `pieces` say."""
    if len(pieces) != len(tensors):
        raise Refusal(
            Text("peer.peer_sent_state_tensors_where", theirs=len(tensors), ours=len(pieces)),
            Text("peer.trains_another_model_under_same"),
        )
    for number, (piece, tensor) in enumerate(zip(pieces, tensors, strict=True)):
        check(number, tensor, piece)


class _Named:
    """A leaf for hivemind's nested_flatten in place of a tensor."""

    def __init__(self, name: str) -> None:
        self.name = name


def names_of_statistics(optimizer: torch.optim.Optimizer) -> list[str]:
    """The name of each tensor of the optimizer's state, "exp_avg" for example, in hivemind's order."""
    state = optimizer.state_dict()
    named = {
        number: {name: _Named(name) if isinstance(value, torch.Tensor) else value for name, value in each.items()}
        for number, each in state["state"].items()
    }
    leaves = nested_flatten(state | {"state": named})
    return [getattr(leaf, "name", "") for leaf in leaves if isinstance(leaf, _Named | torch.Tensor)]
