"""Digests of tensors as they are sent: by them a transfer goes on at another donor that has the same bytes."""

from __future__ import annotations

import hashlib
from typing import Final

from hivemind.proto import runtime_pb2

BYTES: Final = 16
"""Long enough that other bytes with the same digest cannot be computed."""


def begun(first: runtime_pb2.Tensor) -> hashlib.blake2b:
    """The digest of a tensor whose first frame this is, to which the bytes of all its frames have to be added.

    It contains what that frame says of the whole tensor: the same bytes with another shape or codec differ.
    """
    said = f"{first.compression} {first.dtype} {tuple(first.size)} {first.requires_grad} {first.chunks}"
    return hashlib.blake2b(said.encode(), digest_size=BYTES)
