"""The manifest's optimizers, including LAMB, and those of scripts, which step only on gradients of a usable round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

import torch

from skep.core.project.manifest import OptimizerSpec, factor
from skep.core.text import Text
from skep.worker.swarm.plausible import copies, finite, plausible_norm, restore
from skep.worker.swarm.rounds import Rounds


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
        """One step on the gradients in `.grad`; parameters without a gradient do not change."""
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
    """The ratio of their norms, or 1 if either is 0."""
    weight, change = float(parameter.norm()), float(update.norm())
    return weight / change if weight > 0 and change > 0 else 1.0


Factory = Callable[[Iterable[Any]], torch.optim.Optimizer]
CHANGING: Final[tuple[str, ...]] = ("lr", "weight_decay")
"""The options of an optimizer by which a step on zeros changes parameters."""


class GuardedStep(torch.optim.Optimizer):
    """Mixed in before an optimizer: its step checks the oldest open round first, and closes it."""

    _rounds: Rounds
    _clip_norm: float | None
    _ready = False
    """Whether hivemind's virtual first step, which only creates the state's tensors, is done."""

    def __init__(self, groups: Iterable[Any], spec: OptimizerSpec, rounds: Rounds, **options: Any) -> None:
        """`options` are the optimizer's options that differ between optimizers."""
        options |= {"lr": spec.learning_rate, "weight_decay": spec.weight_decay}
        super().__init__(groups, **options)
        self._rounds, self._clip_norm = rounds, spec.clip_norm

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]  # never a closure
        """Step if the oldest open round allows it, and close that round."""
        assert closure is None
        opened = self._rounds.oldest
        if opened is None:
            if not self._ready:
                self._make_state()
            return
        if not opened.decided:
            return  # this step is late: its own round was abandoned, and the next one is running
        if not opened.usable:
            self._rounds.close(Text("round.round_failed"))
        elif not self._clip():
            self._rounds.close(Text("round.averaged_gradients_unusable"))
        elif not self._step_each():
            self._rounds.close(Text("round.step_was_not_finite"))
        else:
            self._rounds.close()

    def _step_each(self) -> bool:
        """Step tensor by tensor, and undo the steps that led to a value that is not finite; return whether none did.

        Needs memory for a copy of one tensor and its statistics at a time, where a copy of all could be too much.
        """
        sound = True
        # has the same state, and groups of its own: other threads read ours; torch's copying would drop what an optimizer
        # of a script keeps beside its state
        single = object.__new__(type(self))
        vars(single).update(vars(self))
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                changed = [parameter, *filter(torch.is_tensor, self.state.get(parameter, {}).values())]
                before = copies(changed)
                single.param_groups = [group | {"params": [parameter]}]
                super(GuardedStep, single).step()
                if not finite(changed):
                    restore(changed, before)
                    sound = False
        return sound

    def _make_state(self) -> None:
        """Hivemind's virtual first step, on zeros: creates the state's tensors and changes no parameter.

        Stock applies weight decay in it, which LAMB would scale to the size of a whole step.
        """
        self._ready = True
        kept = [{name: group[name] for name in CHANGING if name in group} for group in self.param_groups]
        for group, options in zip(self.param_groups, kept, strict=True):
            group.update(dict.fromkeys(options, 0.0))
        super().step()
        for group, options in zip(self.param_groups, kept, strict=True):
            group.update(options)

    def _clip(self) -> bool:
        """Scale the gradients down to the manifest's norm; return whether they were finite and plausible."""
        parameters = [p for group in self.param_groups for p in group["params"]]
        limit = self._clip_norm if self._clip_norm is not None else float("inf")
        return plausible_norm(torch.nn.utils.clip_grad_norm_(parameters, limit))


class GuardedAdamW(GuardedStep, torch.optim.AdamW):
    """Adam with decoupled weight decay."""


class GuardedSGD(GuardedStep, torch.optim.SGD):
    """Stochastic gradient descent; its weight decay is added to the gradient."""


class GuardedLamb(GuardedStep, Lamb):
    """LAMB, for very large batches."""


def guarded(made: torch.optim.Optimizer, rounds: Rounds, clip_norm: float | None) -> torch.optim.Optimizer:
    """`made`, of any class of optimizers that step each parameter by itself; from now on its step is a GuardedStep."""
    kind = type(made)
    attributes = {"_rounds": rounds, "_clip_norm": clip_norm}
    made.__class__ = type(kind.__name__, (GuardedStep, kind), {"__module__": kind.__module__} | attributes)
    return made


def optimizer_factory(spec: OptimizerSpec, rounds: Rounds) -> Factory:
    """The factory that makes the manifest's optimizer from parameter groups."""
    match spec.name:
        case "adamw":
            return partial(GuardedAdamW, spec=spec, rounds=rounds, betas=spec.betas)
        case "sgd":
            return partial(GuardedSGD, spec=spec, rounds=rounds, momentum=spec.betas[0])
        case "lamb":
            return partial(GuardedLamb, spec=spec, rounds=rounds, betas=spec.betas)


def scheduler(optimizer: torch.optim.Optimizer, schedule: Any) -> torch.optim.lr_scheduler.LambdaLR:
    """Learning rate as a function of the epoch alone; hivemind steps it once per epoch."""
    return torch.optim.lr_scheduler.LambdaLR(optimizer, partial(factor, schedule))


def tensors_of(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    """The optimizer's statistics."""
    for kept in optimizer.state.values():
        yield from (value for value in kept.values() if torch.is_tensor(value))
