"""The strategy. Its arguments have the names that the documents of the published one use."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import GradientAccumulationScheduler
from lightning.pytorch.core.optimizer import _MockOptimizer
from lightning.pytorch.plugins.precision import MixedPrecision
from lightning.pytorch.trainer.states import TrainerFn
from lightning.pytorch.utilities.rank_zero import rank_zero_info

from skep import training
from skep.core.text import Text
from skep.lightning.comm_hooks import options_of
from skep.lightning.contributing import Contributing, remade
from skep.lightning.ranks import Ranks
from skep.lightning.sizes import BatchSizes
from skep.training.swarm import EVERYWHERE
from skep.training.synchronisation import DEFAULTS
from skep.training.words import in_words, refused, say

MakeSchedule = Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler]
NORM: Final = "norm"
TIMEOUT: Final = timedelta(minutes=5)


class HivemindStrategy(Ranks):
    """Trains the LightningModule in the swarm of `run_id`; the first batch joins it, or begins it.

    Every peer needs the same `run_id`, module, optimizer, `target_batch_size` (the samples of one optimizer step of the
    whole swarm), delays and compressions, and has to begin with equal parameters (`seed_everything`). With a `project`
    (the path or address of a signed manifest, or a join link), all of these come from it; the module holds what
    skep.training.build_model makes.

    `batch_size` are the samples of one batch, by default those of the first one; it has to be given where a batch has
    tensors of several lengths. `initial_peers` are addresses of any peers, as a list or separated by commas; without
    them, those in the environment's INITIAL_PEERS. `scheduler_fn` makes the schedule from the optimizer; it is stepped
    once per epoch of the swarm. A compression is an object of hivemind or a name, `grad_averager_factory` a partial of
    hivemind's PowerSGDGradientAverager, as skep.training.join takes them. `averager_opts` may hold `bandwidth`.
    `host_maddrs` is one address to listen at, such as /ip4/0.0.0.0/tcp/31337. Times are seconds. With `verbose`, a line
    is printed at each epoch of the swarm.

    With several devices, a process for each runs the script, and DistributedDataParallel averages their gradients; the first
    one alone takes part in the swarm. The last arguments are those of Lightning's DDPStrategy; the hook is one of torch's
    for fp16, bf16 or PowerSGD. If a device keeps the others waiting for `timeout`, the script ends with a sentence.

    An argument that cannot be used raises TrainingError.
    """

    strategy_name = "hivemind"
    optimizers: list[Any]

    def __init__(
        self,
        target_batch_size: int = 0,
        run_id: str = "",
        batch_size: int | None = None,
        *,
        project: str | Path = "",
        initial_peers: str | Iterable[str] = (),
        delay_state_averaging: bool = False,
        delay_optimizer_step: bool | None = None,
        delay_grad_averaging: bool = False,
        offload_optimizer: bool | None = None,
        reuse_grad_buffers: bool = False,
        scheduler_fn: MakeSchedule | None = None,
        grad_compression: Any = "none",
        state_averaging_compression: Any = "none",
        grad_averager_factory: Callable[..., Any] | None = None,
        averager_opts: Mapping[str, Any] | None = None,
        matchmaking_time: float = 5.0,
        averaging_timeout: float = 30.0,
        verbose: bool = False,
        host_maddrs: Sequence[str] | None = None,
        ddp_comm_hook: Callable[..., Any] | None = None,
        ddp_comm_state: object = None,
        ddp_comm_wrapper: Callable[..., Any] | None = None,
        static_graph: bool = False,
        gradient_as_bucket_view: bool = False,
        find_unused_parameters: bool = False,
        bucket_cap_mb: float | None = None,
        timeout: timedelta = TIMEOUT,
    ) -> None:
        with in_words():
            hook = options_of(ddp_comm_hook, ddp_comm_state, ddp_comm_wrapper)
            if hook is not None and reuse_grad_buffers:
                raise refused(Text("lightning.comm_hook_with_reuse"), Text("lightning.leave_one_out"))
        super().__init__(
            hook,
            {
                "static_graph": static_graph,
                "gradient_as_bucket_view": gradient_as_bucket_view,
                "find_unused_parameters": find_unused_parameters,
                "bucket_cap_mb": bucket_cap_mb,
            },
            timeout,
        )
        self._joined = False
        self._versions: list[int] = []
        self._swarm: training.Swarm | None = None
        self._sizes, self._scheduler_fn, self._verbose = BatchSizes(batch_size), scheduler_fn, verbose
        self._project, self._initial_peers = project, initial_peers
        self._target_batch_size, self._run_id = target_batch_size, run_id or ("" if project else "lightning_run")
        delays_step = delay_grad_averaging if delay_optimizer_step is None else delay_optimizer_step
        self._options: dict[str, Any] = {
            "delay_state_averaging": delay_state_averaging,
            "delay_optimizer_step": delays_step,
            "delay_grad_averaging": delay_grad_averaging,
            "offload_optimizer": delays_step if offload_optimizer is None else offload_optimizer,
            "reuse_grad_buffers": reuse_grad_buffers,
            "grad_compression": grad_compression,
            "state_averaging_compression": state_averaging_compression,
            "grad_averager_factory": grad_averager_factory,
            "matchmaking_time": matchmaking_time,
            "averaging_timeout": averaging_timeout,
        }
        if project:
            # what is given beside a project is refused, and a default is not given
            self._options = {name: value for name, value in self._options.items() if value != DEFAULTS[name]}
        self._reuses = reuse_grad_buffers
        with in_words():
            self._host, self._port = _listening(host_maddrs)
            self._bandwidth = _bandwidth(averager_opts)
        self._given: torch.optim.Optimizer | None = None
        self._clip_norm: float | None = None
        self._in_batch = self._waiting = 0
        self._most_accumulated = 1

    @property
    def swarm(self) -> training.Swarm | None:
        """The part in the swarm, from the first batch of `fit` until its end."""
        return self._swarm

    # --- what the Trainer sets up

    def setup_optimizers(self, trainer: Trainer) -> None:
        super().setup_optimizers(trainer)
        with in_words():
            self._check(trainer)
        given: torch.optim.Optimizer = self.optimizers[0]
        self._given = given
        keep = self._reuses
        self.optimizers = [Contributing(given, self._contribute, self._cleared, keep=keep)]
        if trainer.gradient_clip_val:  # 0 clips nothing
            self._clip_norm, trainer.gradient_clip_val = trainer.gradient_clip_val, None

    def _check(self, trainer: Trainer) -> None:
        """Raises BadInput for what a swarm cannot do."""
        module = self.lightning_module
        assert module is not None
        one = len(self.optimizers) == 1 and not isinstance(self.optimizers[0], _MockOptimizer)
        if not module.automatic_optimization or not one:
            raise refused(Text("lightning.not_one_optimizer"), Text("lightning.return_one_optimizer"))
        if self._layer_sync is not None:
            raise refused(Text("lightning.sync_batchnorm"), Text("lightning.leave_sync_batchnorm"))
        if self.options_of_several and not self.several:
            rank_zero_info(say(Text("lightning.one_device", names=self.options_of_several)))
        if self.lr_scheduler_configs:
            raise refused(Text("lightning.has_scheduler"), Text("lightning.give_scheduler_fn"))
        if trainer.gradient_clip_val and (trainer.gradient_clip_algorithm or NORM) != NORM:
            raise refused(Text("lightning.clips_by_value"), Text("lightning.clip_by_norm"))
        scales = isinstance(self.precision_plugin, MixedPrecision) and self.precision_plugin.scaler is not None
        if scales and self._reuses:
            raise refused(Text("lightning.fp16_with_reuse"), Text("lightning.use_bf16"))

    # --- what the Trainer calls while it trains

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        super().on_train_batch_start(batch, batch_idx)
        with in_words():
            self._in_batch = self._sizes.samples_of(batch)
        if not self._joined:
            self._join()

    def _join(self) -> None:
        self._joined = True
        assert self.lightning_module is not None
        self._most_accumulated = _most_accumulated(self.lightning_module.trainer)
        (self._sizes.whole,) = self.told(self._sizes.whole)
        if self.is_global_zero:
            if self.several:
                # Lightning's handler waits for the other ranks, which may wait for this one; the script's own stays
                connector = self.lightning_module.trainer._signal_connector  # noqa: SLF001 - it has no public name
                own = connector._original_handlers.get(signal.SIGTERM)  # noqa: SLF001 - as above
                signal.signal(signal.SIGTERM, own or signal.SIG_DFL)
            self._swarm = self._joined_swarm()
        self._share()

    def _joined_swarm(self) -> training.Swarm:
        module, given = self.lightning_module, self._given
        assert module is not None
        assert given is not None
        return training.join(
            module,
            batch_size=self._sizes.whole * self._most_accumulated * self.world_size,
            run_id=self._run_id,
            target_batch_size=self._target_batch_size,
            optimizer=None if self._project else remade(given),
            project=self._project,
            initial_peers=self._initial_peers,
            parameters=[dict(group) for group in given.param_groups],
            scheduler=self._scheduler_fn,
            clip_norm=self._clip_norm,
            host=self._host,
            port=self._port,
            bandwidth=self._bandwidth,
            report=rank_zero_info,
            verbose=self._verbose,
            **self._options,
        )

    def _share(self) -> None:
        """Give the other ranks what this one has got from the swarm since the last call, if it is the one that speaks."""
        if not self.several:
            return
        assert self._given is not None
        parameters = [each for group in self._given.param_groups for each in group["params"]]
        versions, swarm = [each._version for each in parameters], self._swarm  # noqa: SLF001 - torch counts all changes
        news = (versions != self._versions, swarm.accumulated == 0, swarm.finished) if swarm else (0, 0, 0)
        changed, cleared, finished = self.told(*map(int, news))
        if changed:
            self.take_from_first(parameters)
            self._versions = versions
        if cleared and self._reuses and swarm is None:
            for each in parameters:
                if each.grad is not None:
                    each.grad.zero_()
        if finished:
            assert self.lightning_module is not None
            self.lightning_module.trainer.should_stop = True

    def backward(self, closure_loss: torch.Tensor, optimizer: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Add the gradients of a batch, weighted by its samples: the last one of the data may have fewer."""
        assert self.lightning_module is not None
        self._waiting += self._in_batch
        # Lightning has divided the loss by the number of batches that it accumulates at present
        accumulated = self.lightning_module.trainer.accumulate_grad_batches
        weight = self._in_batch / self._sizes.whole * accumulated / self._most_accumulated
        if weight != 1.0:
            closure_loss = closure_loss * weight
        added: torch.Tensor = super().backward(closure_loss, optimizer, *args, **kwargs)
        return added

    def optimizer_step(self, optimizer: Any, closure: Callable[[], Any], model: Any = None, **kwargs: Any) -> Any:
        result = super().optimizer_step(optimizer, closure, model, **kwargs)
        if self._waiting:  # gradients that overflowed in fp16 are not contributed
            self.optimizers[0].zero_grad()
            self._tend()
        self._share()
        return result

    def _contribute(self) -> None:
        samples, self._waiting = self.total(self._waiting), 0
        if self._swarm is not None and samples:
            self._log(moved_on=self._swarm.contribute(samples, scaled=True))

    def _cleared(self) -> None:
        self._waiting = 0

    def _tend(self) -> None:
        if self._swarm is not None and not self._waiting:  # a round would drop what waits to be contributed
            self._log(moved_on=self._swarm.tend())

    def validation_step(self, *args: Any, **kwargs: Any) -> Any:
        """As Lightning's; between two batches rounds go on, so that other peers do not wait for this one."""
        result = super().validation_step(*args, **kwargs)
        if self.lightning_module is not None and self.lightning_module.trainer.state.fn == TrainerFn.FITTING:
            self._tend()
        return result

    def on_validation_end(self) -> None:
        if self._joined:
            self._share()
        super().on_validation_end()

    def _log(self, *, moved_on: bool) -> None:
        """Log what is new if the swarm's epoch changed, and stop the Trainer if the swarm has finished."""
        assert self._swarm is not None
        assert isinstance(self.lightning_module, LightningModule)
        trainer, swarm = self.lightning_module.trainer, self._swarm
        if swarm.finished:
            trainer.should_stop = True
        if not moved_on:
            return
        told = {"peers": swarm.peers, "epoch": swarm.epoch, "confirmed_samples": swarm.confirmed}
        for logger in trainer.loggers:
            logger.log_metrics({f"swarm/{name}": float(value) for name, value in told.items()}, trainer.global_step)

    # --- its end

    def on_train_end(self) -> None:
        self._leave()
        super().on_train_end()

    def on_exception(self, exception: BaseException) -> None:
        self._leave()
        super().on_exception(exception)

    def teardown(self) -> None:
        self._leave()
        super().teardown()

    def _leave(self) -> None:
        swarm, self._swarm, self._joined = self._swarm, None, False
        if swarm is not None:
            swarm.leave()
        if self._clip_norm is not None and self.lightning_module is not None:
            self.lightning_module.trainer.gradient_clip_val, self._clip_norm = self._clip_norm, None

    @property
    def lightning_restore_optimizer(self) -> bool:
        """False: a peer's optimizer has the state of its swarm, not that of a checkpoint."""
        return False


def _listening(addresses: Sequence[str] | None) -> tuple[str, int]:
    """The host and the port of the address to listen at. Raises BadInput for more than one, or another kind."""
    match [str(each).split("/") for each in addresses or [f"/ip4/{EVERYWHERE}/tcp/0"]]:
        case [["", "ip4", host, "tcp", port]] if port.isdecimal():
            return host, int(port)
        case _:
            pass
    raise refused(Text("lightning.host_maddrs"), Text("lightning.give_one_address"))


def _bandwidth(options: Mapping[str, Any] | None) -> float:
    """Raises BadInput for any other option of averagers."""
    given = dict(options or {})
    bandwidth: float = given.pop("bandwidth", 1.0)
    if given:
        raise refused(Text("lightning.averager_opts", name=next(iter(given))), Text("lightning.leave_it_to_skep"))
    return bandwidth


def _most_accumulated(trainer: Any) -> int:
    """The most batches that the Trainer accumulates at a time, in any of its epochs."""
    scheduled = [each.scheduling for each in trainer.callbacks if isinstance(each, GradientAccumulationScheduler)]
    most: int = max([trainer.accumulate_grad_batches, *(number for each in scheduled for number in each.values())])
    return most
