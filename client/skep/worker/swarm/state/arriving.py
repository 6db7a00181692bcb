"""One tensor of a state while its frames arrive."""

from __future__ import annotations

import torch
from hivemind.compression import deserialize_torch_tensor
from hivemind.proto import runtime_pb2
from hivemind.utils.streaming import combine_from_streaming

from skep.worker.swarm.state.digests import begun
from skep.worker.swarm.state.pieces import Piece
from skep.worker.swarm.state.shared import shared_bytes


class ArrivingTensor:
    """The caller limits the number of its frames, and their bytes.

    Frames of a tensor that is sent as it is are written at once to shared memory, where the training process reads it.
    Hivemind's decoder would copy all of it three times, and sending it to that process once more. What a codec has made is
    decoded by hivemind when all of it is there.
    """

    def __init__(self, piece: Piece, first: runtime_pb2.Tensor) -> None:
        """`first` is the first frame, to be added too; it says the shape and dtype of `piece`."""
        self.chunks, self.frames, self.bytes = first.chunks, 0, 0
        self._digest = begun(first)
        self._kept: list[runtime_pb2.Tensor] = []
        self._piece, self._shared, self._memory = piece, None, memoryview(b"")
        # hivemind sends this dtype in two ways, which differ in length
        if first.compression == runtime_pb2.NONE and piece.dtype != torch.bfloat16:
            self._shared = shared_bytes(piece.bytes)
            self._memory = memoryview(self._shared.numpy().data)

    @property
    def digest(self) -> bytes:
        """Of all bytes so far."""
        return self._digest.digest()

    def add(self, part: runtime_pb2.Tensor) -> None:
        """The next frame. Raises ValueError if it ends after the tensor."""
        end = self.bytes + len(part.buffer)
        if self._shared is None:
            self._kept.append(part)
        else:
            self._memory[self.bytes : end] = part.buffer  # a ValueError if that is less than the part
        self._digest.update(part.buffer)
        self.frames, self.bytes = self.frames + 1, end

    def tensor(self) -> torch.Tensor:
        """The whole one. Raises any error if the bytes are none."""
        if self._shared is None:
            decoded: torch.Tensor = deserialize_torch_tensor(combine_from_streaming(self._kept)).detach()
            return decoded
        if self.bytes != len(self._memory):
            raise ValueError("not all of the tensor")
        return self._shared.view(self._piece.dtype).reshape(self._piece.shape)
