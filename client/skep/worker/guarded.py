"""The optimizers of a manifest, made to step only on gradients that a round vouches for.

Finite, clipped once, never the zeros of a failed round. What is guarded is written once, and shared by all of them. It
must not know how a round works; `rounds` says what became of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch

from skep.core.manifest import OptimizerSpec
from skep.worker.lamb import Lamb
from skep.worker.rounds import Rounds

Factory = Callable[[Iterable[Any]], torch.optim.Optimizer]


class GuardedStep(torch.optim.Optimizer):
    """Mixed in before an optimizer: a step that asks the oldest open round first, and closes it."""

    _clip_norm: float | None
    _rounds: Rounds
    _ready = False
    """Whether hivemind's virtual first step, which only makes the state's tensors, is behind us."""

    def guard(self, clip_norm: float | None, rounds: Rounds) -> None:
        """Take part in `rounds`; gradients are scaled down to a total norm of `clip_norm`, if there is one."""
        self._clip_norm, self._rounds = clip_norm, rounds

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]  # never a closure
        """Step if the oldest open round allows it, and close that round."""
        opened = self._rounds.oldest
        if opened is None:
            if not self._ready:
                self._make_state()
            return
        if not opened.decided:
            return  # a step that comes so late that its own round was given up, and another one is on its way
        if not opened.usable:
            self._rounds.refused("the round failed")
        elif not self._clip():
            self._rounds.refused("the averaged gradients were not finite")
        else:
            super().step(closure)
            self._rounds.used()

    def _make_state(self) -> None:
        """Hivemind's virtual first step, on zeros: the state's tensors are made, and no parameter moves.

        Stock lets weight decay act in it, which LAMB would make as large as a whole step.
        """
        self._ready = True
        kept = [(group["lr"], group["weight_decay"]) for group in self.param_groups]
        for group in self.param_groups:
            group["lr"] = group["weight_decay"] = 0.0
        super().step()
        for group, (rate, decay) in zip(self.param_groups, kept, strict=True):
            group["lr"], group["weight_decay"] = rate, decay

    def _clip(self) -> bool:
        """Scale the gradients down to the norm of the manifest; whether they are finite."""
        parameters = [p for group in self.param_groups for p in group["params"]]
        limit = self._clip_norm if self._clip_norm is not None else float("inf")
        return bool(torch.isfinite(torch.nn.utils.clip_grad_norm_(parameters, limit)))


class GuardedAdamW(GuardedStep, torch.optim.AdamW):
    """Adam with decoupled weight decay."""

    def __init__(self, groups: Iterable[Any], spec: OptimizerSpec, rounds: Rounds) -> None:
        super().__init__(groups, lr=spec.learning_rate, betas=spec.betas, weight_decay=spec.weight_decay)
        self.guard(spec.clip_norm, rounds)


class GuardedSGD(GuardedStep, torch.optim.SGD):
    """Stochastic gradient descent; its momentum is the first of the betas, its weight decay added to the gradient."""

    def __init__(self, groups: Iterable[Any], spec: OptimizerSpec, rounds: Rounds) -> None:
        super().__init__(groups, lr=spec.learning_rate, momentum=spec.betas[0], weight_decay=spec.weight_decay)
        self.guard(spec.clip_norm, rounds)


class GuardedLamb(GuardedStep, Lamb):
    """LAMB, for very large batches."""

    def __init__(self, groups: Iterable[Any], spec: OptimizerSpec, rounds: Rounds) -> None:
        super().__init__(groups, lr=spec.learning_rate, betas=spec.betas, weight_decay=spec.weight_decay)
        self.guard(spec.clip_norm, rounds)


OPTIMIZERS = {"adamw": GuardedAdamW, "sgd": GuardedSGD, "lamb": GuardedLamb}


def optimizer_factory(spec: OptimizerSpec, rounds: Rounds) -> Factory:
    """What makes the manifest's optimizer from parameter groups."""
    return partial(OPTIMIZERS[spec.name], spec=spec, rounds=rounds)
