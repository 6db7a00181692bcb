"""Where the model lives: on its device, or in RAM while the device's memory is given back.

Values are moved, never changed: training goes on bit for bit where it was. Tensors stay the same objects, because
hivemind holds them. It must not decide when to move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import torch

HOST: Final = torch.device("cpu")


def to_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return tensor.to(device)


class ModelOffload:
    """`tensors` gives everything that lives on `device`, or on others of its kind: parameters, gradients, buffers, the optimizer's statistics."""

    def __init__(
        self,
        device: torch.device,
        tensors: Callable[[], Iterable[torch.Tensor]],
        move: Callable[[torch.Tensor, torch.device], torch.Tensor] = to_device,
    ) -> None:
        self._device, self._tensors, self._move = device, tensors, move
        self._away: list[tuple[torch.Tensor, torch.device]] = []

    @property
    def away(self) -> bool:
        return bool(self._away)

    def leave(self) -> None:
        """Everything into RAM. On the processor it is there already, and nothing happens."""
        if self._device.type == HOST.type or self.away:
            return
        self._away = [(tensor, self._home(tensor)) for tensor in self._tensors() if self._is_here(tensor)]
        self._to_ram()

    def come_back(self) -> None:
        """Everything back to where it was. Where that runs out of memory, all of it is in RAM again, and the error raised."""
        if not self.away:
            return
        try:
            for tensor, home in self._away:
                self._send(tensor, home)
        except (MemoryError, RuntimeError):
            self._to_ram()
            raise
        self._away = []

    def _is_here(self, tensor: torch.Tensor) -> bool:
        return tensor.device.type == self._device.type

    def _home(self, tensor: torch.Tensor) -> torch.device:
        return tensor.device

    def _to_ram(self) -> None:
        for tensor, _ in self._away:
            self._send(tensor, HOST)

    @torch.no_grad()
    def _send(self, tensor: torch.Tensor, target: torch.device) -> None:
        tensor.data = self._move(tensor.data, target)
