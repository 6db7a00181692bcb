"""How ranks find each other: through a file in the run's private folder, then by sockets that listen on loopback only."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from datetime import timedelta
from typing import Final

import torch
import torch.distributed as dist

from skep.worker.ranks.orders import Meet
from skep.worker.training.device import TrainingDevice

LOOPBACK: Final = "lo0" if sys.platform == "darwin" else "lo"
INTERFACES: Final = {"GLOO_SOCKET_IFNAME": LOOPBACK, "NCCL_SOCKET_IFNAME": LOOPBACK}
ENVIRONMENT: Final = {
    **INTERFACES,
    # an error or a timeout in a collective is raised where it is waited for, and does not end the process
    "TORCH_NCCL_BLOCKING_WAIT": "1",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0",
}
"""Read by gloo, NCCL and torch when a group is formed."""
NCCL, GLOO = "nccl", "gloo"
BOTH: Final = f"cpu:{GLOO},cuda:{NCCL}"
"""A group that sends tensors of the host's memory by gloo and those of GPUs by NCCL."""


def use_for_collectives(device: TrainingDevice) -> None:
    """NCCL takes the current device of the process."""
    if device.device.type == "cuda":
        torch.cuda.set_device(device.device)


def meet(order: Meet) -> None:
    """Form the group, after leaving the one before. Raises RuntimeError if not all ranks come in time.

    NCCL connects the ranks here, not in the first collective.
    """
    leave()
    os.environ.update(ENVIRONMENT)
    within = timedelta(seconds=order.seconds)
    store = dist.FileStore(order.path, order.size)  # type: ignore[attr-defined]  # torch exports it at runtime only
    store.set_timeout(within)
    device = torch.device(order.device) if NCCL in order.backend else None
    dist.init_process_group(
        order.backend, store=store, rank=order.rank, world_size=order.size, timeout=within, device_id=device
    )


def leave_at_exit() -> None:
    """Have Python leave the group, if it is in one then, before it ends.

    A thread of a group that still has to release an object of Python, such as a hook, aborts a process in which Python
    has ended, and whose training is long done.
    """
    atexit.unregister(leave)
    atexit.register(leave)


def leave() -> None:
    """Leave the group, if there is one, without waiting for its other ranks."""
    if not dist.is_initialized():
        return
    with contextlib.suppress(RuntimeError):
        if NCCL in dist.get_backend():
            dist.distributed_c10d._abort_process_group()  # noqa: SLF001 - what torch documents would wait for the others
        else:
            dist.destroy_process_group()
