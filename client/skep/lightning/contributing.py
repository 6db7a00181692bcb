"""What stands for the optimizer in the Trainer, and how the real one is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch


class Contributing(torch.optim.Optimizer):
    """Its step hands the gradients over to the swarm by `contribute`; the swarm's optimizer is the one that steps.

    With `keep`, gradients of earlier batches stay in `.grad`. `cleared` is called when they are zeroed.
    """

    def __init__(
        self,
        given: torch.optim.Optimizer,
        contribute: Callable[[], object],
        cleared: Callable[[], object],
        *,
        keep: bool,
    ) -> None:
        super().__init__([dict(group) for group in given.param_groups], given.defaults)
        self._contribute, self._cleared, self._keep = contribute, cleared, keep

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Compute the batch, if Lightning has not done so, and contribute it."""
        result = None
        if closure is not None:
            with torch.enable_grad():
                result = closure()
        self._contribute()
        return result

    @torch.no_grad()
    def zero_grad(self, set_to_none: bool = True) -> None:  # noqa: ARG002, FBT001, FBT002 - torch's
        self._cleared()
        if not self._keep:
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad.zero_()


def remade(given: torch.optim.Optimizer) -> Callable[[Any], torch.optim.Optimizer]:
    """A function that makes an optimizer like `given` from parameter groups, which have its options."""
    accepted = inspect.signature(type(given)).parameters
    options = {name: value for name, value in given.defaults.items() if name in accepted}
    return lambda groups: type(given)(groups, **options)
