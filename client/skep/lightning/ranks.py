"""The devices of this computer behind a Trainer: one process each, which train one model together, or a single one.

With several, DistributedDataParallel averages their gradients in the last batch before each step of the Trainer, and rank 0
tells the others what it has got from the swarm.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import torch
import torch.distributed as dist
from lightning.fabric.utilities.distributed import _sync_ddp_if_available
from lightning.pytorch.strategies import ParallelStrategy
from lightning.pytorch.trainer.states import TrainerFn
from lightning.pytorch.utilities.rank_zero import rank_zero_only
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from skep.lightning.launcher import FOLDER, RankLauncher, end_with_first
from skep.training.words import in_words
from skep.worker.ranks.hooks import Hook, register
from skep.worker.ranks.rendezvous import settle_at_exit

BACKENDS: Final = {"cpu": "gloo", "cuda": "cpu:gloo,cuda:nccl"}
"""By the type of the devices. What ranks tell each other is on the processor."""
PREPARING: Final = timedelta(minutes=30)
"""How long the others may take until they meet rank 0: each runs the script up to there, whose data it may prepare."""
IN_THE_SWARM: Final = timedelta(days=1)
"""How long the others wait for what rank 0 tells: it may load a state meanwhile, which has no limit. They end with it."""


class Ranks(ParallelStrategy):
    """Processes on this computer only: their number is that of the Trainer's devices."""

    def __init__(self, hook: Hook | None, options: Mapping[str, Any], timeout: timedelta) -> None:
        """`hook` communicates the gradients; `options` are DistributedDataParallel's; in `timeout` all ranks meet."""
        super().__init__()
        self._hook, self._ddp_options, self._timeout = hook, dict(options), timeout
        self._news: dist.ProcessGroup | None = None
        self._launcher: RankLauncher | None = None
        self._sampler_seed: int | None = None
        self._learns_graph = False
        end_with_first()

    @property
    def several(self) -> bool:
        """Whether there are other devices."""
        return len(self.parallel_devices or ()) > 1

    @property
    def options_of_several(self) -> tuple[str, ...]:
        """Names of the options that have been given, and that are for several devices."""
        hook = () if self._hook is None else ("ddp_comm_hook",)
        return (*hook, *(name for name, value in self._ddp_options.items() if value))

    # --- what Lightning asks

    @property
    def root_device(self) -> torch.device:
        return self.parallel_devices[self.local_rank] if self.parallel_devices else torch.device("cpu")

    @property
    def world_size(self) -> int:
        return len(self.parallel_devices) if self.parallel_devices else 1

    @property
    def local_rank(self) -> int:
        """0 also for a peer with one device that a cluster has started: it is a peer of its own."""
        return super().local_rank if self.several else 0

    @property
    def global_rank(self) -> int:
        return self.local_rank

    @property
    def is_distributed(self) -> bool:
        """Whether the samples have to be divided among ranks."""
        return self.several

    @property
    def distributed_sampler_kwargs(self) -> dict[str, Any]:
        """Of the sampler that divides the samples among ranks; its seed is this computer's, not that of all peers."""
        if self._sampler_seed is None:
            (self._sampler_seed,) = self.told(torch.initial_seed() % 2**31)
        return {"num_replicas": self.world_size, "rank": self.global_rank, "seed": self._sampler_seed}

    def set_world_ranks(self) -> None:
        if self.several and self.cluster_environment is not None:
            self.cluster_environment.set_global_rank(self.local_rank)
            self.cluster_environment.set_world_size(self.world_size)
        rank_zero_only.rank = self.global_rank

    def _configure_launcher(self) -> None:
        if self.several:
            assert self.cluster_environment is not None
            self._launcher = RankLauncher(self.cluster_environment, self.world_size, num_nodes=1)

    def setup_environment(self) -> None:
        super().setup_environment()
        if not self.several:
            return
        if not dist.is_initialized():
            self._meet()
        self._news = dist.new_group(backend="gloo", timeout=IN_THE_SWARM)

    def _meet(self) -> None:
        rank, ranks, folder = self.local_rank, self.world_size, os.environ.get(FOLDER)
        meeting = f"file://{folder}/meeting" if folder else "env://"
        store, _, _ = next(rendezvous(meeting, rank, ranks, timeout=PREPARING))
        store.set(f"rank-{rank}", "")
        store.wait([f"rank-{number}" for number in range(ranks)], PREPARING)
        backend = BACKENDS[self.root_device.type]
        dist.init_process_group(backend, store=store, rank=rank, world_size=ranks, timeout=self._timeout)
        settle_at_exit()

    def model_to_device(self) -> None:
        assert self.model is not None
        self.model.to(self.root_device)

    def _setup_model(self, model: torch.nn.Module) -> torch.nn.Module:
        """The model, wrapped where ranks train it; they have the parameters of rank 0 then."""
        assert self.lightning_module is not None
        if not self.several or self.lightning_module.trainer.state.fn != TrainerFn.FITTING:
            return model
        devices = None if self.root_device.type == "cpu" else [self.root_device]
        with in_words():
            wrapped = DistributedDataParallel(model, device_ids=devices, **self._ddp_options)
            self._learns_graph = bool(self._ddp_options.get("static_graph"))
            if self._hook is not None:
                register(wrapped, self._hook)
        return wrapped

    @contextmanager
    def block_backward_sync(self) -> Iterator[None]:
        """A context for a batch after which others are accumulated: the ranks do not communicate in it.

        They do in the first one of a static graph: torch ends with an internal error if it cannot learn the graph from the
        first backward pass. The sum is the same, since gradients that have been averaged stay equal on all ranks.
        """
        learns, self._learns_graph = self._learns_graph, False
        if learns:
            yield
            return
        with super().block_backward_sync():
            yield

    def barrier(self, name: str | None = None) -> None:  # noqa: ARG002 - Lightning's
        if dist.is_initialized():
            dist.barrier()

    def broadcast(self, obj: Any, src: int = 0) -> Any:
        if not dist.is_initialized():
            return obj
        sent = [obj]
        dist.broadcast_object_list(sent, src)
        return sent[0]

    def reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
        if not isinstance(tensor, torch.Tensor):
            return tensor
        return _sync_ddp_if_available(tensor, group, reduce_op)

    def on_exception(self, exception: BaseException) -> None:
        if self._launcher is not None and self.is_global_zero:
            self._launcher.explain(exception, self._timeout)
            self._launcher.kill(signal.SIGKILL)
        super().on_exception(exception)

    def teardown(self) -> None:
        self.model = self.lightning_module
        super().teardown()

    # --- what ranks tell each other

    def told(self, *numbers: int) -> tuple[int, ...]:
        """The numbers as rank 0 has them."""
        if not self.several:
            return numbers
        sent = torch.tensor(numbers)
        dist.broadcast(sent, src=0, group=self._news)
        return tuple(sent.tolist())

    def total(self, number: int) -> int:
        """The sum of the numbers of all ranks."""
        if not self.several:
            return number
        sent = torch.tensor(number)
        dist.all_reduce(sent)
        return int(sent)

    @torch.no_grad()
    def take_from_first(self, parameters: Iterable[torch.Tensor]) -> None:
        """Give all ranks the parameters of rank 0."""
        for each in [dist.broadcast(parameter, src=0, async_op=True) for parameter in parameters]:
            each.wait()
