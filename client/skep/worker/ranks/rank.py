"""A rank's process: it has one device with a copy of the model, does what rank 0 orders, and idles otherwise."""

from __future__ import annotations

import gc
import os
import pickle
import time
import traceback
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import NoReturn

import torch

from skep.core.errors import SkepError
from skep.core.project.manifest import Manifest
from skep.recipes.contract import OpenRecipe
from skep.recipes.registry import open_recipe
from skep.worker.process.memory import give_back
from skep.worker.process.processes import SessionPriority, lower_training
from skep.worker.ranks import collectives, orders, rendezvous
from skep.worker.ranks.rendezvous import use_for_collectives
from skep.worker.ranks.sharded_rank import ShardedRank
from skep.worker.training.compute_group import ComputeGroup, Gradients
from skep.worker.training.device import TrainingDevice, pick
from skep.worker.training.device_errors import NoRoom, as_does_not_fit, is_lack_of_memory
from skep.worker.training.resource_limits import ModelOffload


def serve(link: Connection, manifest: Manifest) -> NoReturn:
    """Obey until rank 0 is gone, then end this process; also after an error, which rank 0 notices by that."""
    try:
        rank = Rank(manifest)
        while True:
            answer = rank.obey(pickle.loads(link.recv_bytes()))  # noqa: S301 - from the process that forked this one
            if answer is not None:
                link.send_bytes(pickle.dumps(answer))
    except (EOFError, ConnectionError):
        os._exit(0)
    except BaseException:  # noqa: BLE001 - whatever it is, the process ends
        traceback.print_exc()
    finally:
        os._exit(1)


class Rank:
    """What a rank holds: the model, and gradients that rank 0 has not settled or collected yet."""

    _group: ComputeGroup
    _offload: ModelOffload
    _shard: ShardedRank | None = None
    """In place of both where the model is sharded."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._held: Gradients | None = None
        self._priority = SessionPriority(present=False)

    def obey(self, order: orders.Order) -> orders.Answer | None:
        match order:
            case orders.Build():
                return self._build(order)
            case orders.Shard() | orders.LoadTrained() | orders.Pass() | orders.Gather():
                return self._obey_sharded(order)
            case orders.Meet():
                if self._shard is not None:
                    self._shard.drop()
                return _collective(partial(rendezvous.meet, order))
            case orders.TakeParameters(whole=whole):
                return _collective(partial(self._take_parameters, whole=whole))
            case orders.GiveGradients():
                return _collective(self._give_gradients)
            case orders.Compute():
                return _in_memory(partial(self._compute, order))
            case orders.Move(away=away):
                return _in_memory(partial(self._move, away=away))
            case orders.Settle() | orders.Forget() | orders.Tidy() | orders.Recompute() | orders.DropShards():
                self._do(order)
        return None

    def _obey_sharded(self, order: orders.Sharded) -> orders.Answer:
        assert self._shard is not None
        if isinstance(order, orders.Pass):
            self._use(order.threads, present=order.present)
        return self._shard.obey(order)

    def _do(self, order: orders.Unanswered) -> None:
        match order:
            case orders.Settle(weight=weight):
                self._settle(weight)
            case orders.Forget() if self._shard is not None:
                self._shard.discard()
            case orders.DropShards():
                assert self._shard is not None
                self._shard.drop()
            case orders.Forget():
                self._make_zero()
            case orders.Tidy():
                self._tidy()
            case orders.Recompute() if hasattr(self, "_group"):  # else this rank has refused the model
                self._group.recompute_activations()

    def _build(self, order: orders.Build) -> orders.Answer:
        try:
            chosen = pick(order.device, order.precision)
            use_for_collectives(chosen)
            chosen.cap_memory(order.leave_gpu)
            with as_does_not_fit(self._manifest.title, chosen.name):
                recipe = open_recipe(self._manifest.recipe, order.files)
                if order.sharded:
                    self._forget_copy(chosen)
                    self._shard = ShardedRank(chosen, recipe)
                else:
                    self._copy(chosen, recipe)
        except SkepError as error:
            return orders.Refused(error.problem, for_memory=isinstance(error, NoRoom))
        if order.nice:
            lower_training(order.nice)
            self._priority.use(present=order.present)
            self._priority.begin()
        return orders.Built(chosen.name)

    def _copy(self, chosen: TrainingDevice, recipe: OpenRecipe) -> None:
        self._group = ComputeGroup(chosen, recipe)
        self._make_zero()
        self._offload = ModelOffload(chosen.device, self._group.tensors)

    def _forget_copy(self, chosen: TrainingDevice) -> None:
        """Free a copy that was built although another device has no room for one."""
        for name in ("_group", "_offload"):
            vars(self).pop(name, None)
        gc.collect()
        chosen.empty_caches()

    def _take_parameters(self, *, whole: bool) -> None:
        model = self._group.model
        collectives.broadcast([*model.parameters(), *model.buffers()] if whole else self._group.parameters)

    def _compute(self, order: orders.Compute) -> orders.Answer:
        self._use(order.threads, present=order.present)
        begun, wall = self._group.stopwatch(), time.monotonic()
        loss, self._held = self._group.compute(order.batch, order.factor)
        finite = self._held is not None and self._held.finite
        return orders.Computed(loss, finite, self._group.stopwatch() - begun, time.monotonic() - wall)

    def _use(self, threads: int, *, present: bool) -> None:
        self._priority.use(present=present)
        if threads != torch.get_num_threads():
            torch.set_num_threads(threads)

    def _settle(self, weight: float | None) -> None:
        held, self._held = self._held, None
        if held is not None and weight is not None:
            held.add(weight)

    def _give_gradients(self) -> None:
        collectives.sums([p.grad for p in self._group.parameters if p.grad is not None])

    @torch.no_grad()
    def _make_zero(self) -> None:
        for parameter in self._group.parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad.zero_()

    def _move(self, *, away: bool) -> orders.Answer:
        if away:
            self._offload.leave()
            self._tidy()
        else:
            self._offload.come_back()
        return orders.Done()

    def _tidy(self) -> None:
        gc.collect()
        (self._shard or self._group).empty_caches()
        give_back()


def _collective(do: Callable[[], None]) -> orders.Answer:
    """After a failure this rank leaves the group, so that the others do not wait for it.

    Raises RuntimeError when the device is lost: no group lasts with it, so that this process has to end.
    """
    try:
        do()
    except (MemoryError, RuntimeError) as error:
        if collectives.is_loss_of_own_device(error):
            raise
        traceback.print_exc()
        rendezvous.leave()
        return orders.NoMemory() if is_lack_of_memory(error) else orders.Broken()
    return orders.Done()


def _in_memory(do: Callable[[], orders.Answer]) -> orders.Answer:
    """The error is dropped here: its frames hold activations."""
    try:
        return do()
    except (MemoryError, RuntimeError) as error:
        if not is_lack_of_memory(error):
            raise
        return orders.NoMemory()
