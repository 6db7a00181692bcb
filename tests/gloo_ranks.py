"""Runs a function in forked processes that are the ranks of a gloo group, found through a file."""

import gc
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import distributed as dist
from torch.distributed.device_mesh import DeviceMesh

DEADLINE = 120
"""Seconds for all ranks together; the machine may be busy."""
GONE = None
ADAM = {"lr": 1e-3, "eps": 1e-4}
"""For steps that are compared: with torch's epsilon of 1e-8 the rounding of a gradient near zero decides their direction."""


class Failed(str):
    """Why a rank gave no result."""

    __slots__ = ()


def join(rank: int, count: int, file: Path, seconds: float = 60.0) -> DeviceMesh:
    """This process as `rank` of `count`; every collective ends within `seconds`."""
    dist.init_process_group(
        "gloo", init_method=f"file://{file}", rank=rank, world_size=count, timeout=timedelta(seconds=seconds)
    )
    return DeviceMesh.from_group(dist.group.WORLD, "cpu")


def run(count: int, work: Callable, *arguments, silent=frozenset()):
    """What `work(rank, count, folder, *arguments)` returns in each rank; GONE for the `silent` ones, which give nothing."""
    context = get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        pipes = [context.Pipe(duplex=False) for _ in range(count)]
        processes = [
            context.Process(target=_one, args=(answer, work, rank, count, Path(folder), arguments), daemon=True)
            for rank, (_, answer) in enumerate(pipes)
        ]
        for process, (_, answer) in zip(processes, pipes, strict=True):
            process.start()
            answer.close()
        ends = time.monotonic() + DEADLINE
        try:
            found = [GONE if rank in silent else _answer(pipe, ends) for rank, (pipe, _) in enumerate(pipes)]
        finally:
            for process in processes:
                process.kill()
                process.join()
    problems = [each for each in found if isinstance(each, Failed)]
    assert not problems, "\n".join(problems)
    return found


def _answer(pipe, ends: float):
    if not pipe.poll(max(0.0, ends - time.monotonic())):
        return Failed("a rank did not answer in time")
    try:
        return pipe.recv()
    except EOFError:
        return Failed("a rank ended without an answer")


def _one(answer, work, rank, count, folder, arguments) -> None:
    gc.freeze()  # a group that is garbage of this test's process has no threads here, for which its end would wait
    torch.set_num_threads(1)
    try:
        result = work(rank, count, folder, *arguments)
    except BaseException:  # noqa: BLE001 - the test's process has to see it
        result = Failed(f"rank {rank}: {traceback.format_exc()}")
    answer.send(result)
    answer.close()
    sys.stdout.flush()
    # no exit handlers of the test's process
    os._exit(0)


def difference(parameters, values) -> float:
    """The largest between parameters and the nested lists that another process sent of its own."""
    return max(float((a.detach() - torch.tensor(b)).abs().max()) for a, b in zip(parameters, values, strict=True))
