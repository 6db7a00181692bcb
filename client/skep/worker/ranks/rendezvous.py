"""How ranks find each other: through a file in the run's private folder, then by sockets that listen on loopback only.

And how a script ends that has met: with gloo alone the process aborts now and then when its training is done.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
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
GLOO_THREAD: Final = "pt_gloo_runloop\n"
SETTLE_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.01
_TASKS: Final = Path("/proc/self/task")
"""Linux's list of this process's threads; elsewhere there is none, and nothing more than LOOK_SECONDS is waited for."""
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


def settle_at_exit() -> None:
    """Have Python wait, before it ends, until gloo's threads have nothing to do, for SETTLE_SECONDS at most.

    One that still calls or releases an object of Python then, such as a hook or a tensor, aborts the process. To destroy the
    group would wait for them only if nothing else refers to it, as each DistributedDataParallel does.
    """
    atexit.unregister(_settle)
    atexit.register(_settle)


def _settle() -> None:
    deadline = time.monotonic() + SETTLE_SECONDS
    time.sleep(LOOK_SECONDS)  # Python's lock is free meanwhile, for threads that wait for it
    while any(map(_is_busy, _TASKS.glob("*"))) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)


def _is_busy(thread: Path) -> bool:
    """Whether it is one in which gloo works, and does something, or would if a processor were free."""
    try:
        return (thread / "comm").read_text() == GLOO_THREAD and " R " in (thread / "stat").read_text()
    except OSError:  # it has ended meanwhile
        return False


def leave() -> None:
    """Leave the group, if there is one, without waiting for its other ranks."""
    if not dist.is_initialized():
        return
    with contextlib.suppress(RuntimeError):
        if NCCL in dist.get_backend():
            dist.distributed_c10d._abort_process_group()  # noqa: SLF001 - what torch documents would wait for the others
        else:
            dist.destroy_process_group()
