"""The LAMB optimizer alone: Adam whose step is scaled, tensor by tensor, to the size of the tensor. Nothing of swarms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch


class Lamb(torch.optim.Optimizer):
    """Algorithm 2 of You et al., "Large Batch Optimization for Deep Learning", arXiv:1904.00962, with bias correction.

    For each tensor x with gradient g, in step t:
    m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
    u = (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) + decay x;
    x = x - lr |x| / |u| u, where the ratio of the norms is 1 if either of them is 0.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]  # never a closure
        """One step on the gradients in `.grad`; parameters without one are left alone."""
        assert closure is None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)

    def _update(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        state, (beta1, beta2) = self.state[parameter], group["betas"]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        taken = float(state["step"])
        state["exp_avg"].lerp_(parameter.grad, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(parameter.grad, parameter.grad, value=1 - beta2)
        scale = state["exp_avg_sq"].div(1 - beta2**taken).sqrt_().add_(group["eps"])
        update = state["exp_avg"].div(1 - beta1**taken).div_(scale).add_(parameter, alpha=group["weight_decay"])
        parameter.add_(update, alpha=-group["lr"] * trust(parameter, update))


def trust(parameter: torch.Tensor, update: torch.Tensor) -> float:
    """The ratio of their norms, 1 where that says nothing."""
    weight, change = float(parameter.norm()), float(update.norm())
    return weight / change if weight > 0 and change > 0 else 1.0
