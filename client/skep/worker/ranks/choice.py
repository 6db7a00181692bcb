"""Which devices compute, by the setting, and whether they share one model.

Several are looked at in a process of its own, because a fork cannot use a card that its parent has used.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final

import torch

from skep.core.device import ALL, Device, DeviceKind, chosen, labelled
from skep.core.errors import DoesNotFit
from skep.core.project.manifest import Manifest
from skep.core.project.needs import offloads, spread_over
from skep.core.text import NOTHING, Problem, Text
from skep.worker.training.device import CPU, TorchFacts, choose_precision, has_precision, look, try_out, why_not

LOOK_SECONDS: Final = 60.0
MOST_SOCKETS: Final = 64
"""Threads times sockets of each, in NCCL's documentation of NCCL_SOCKET_NTHREADS."""
NCCL: Final = ("NCCL_MIN_NCHANNELS", "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")


@dataclass(frozen=True)
class Choice:
    """A name, as torch has it, for each rank; "" for the best device. `sharded` where they share one model's memory.

    With `offload` the shards are in the host's memory.
    """

    names: tuple[str, ...]
    sharded: bool = False
    offload: bool = False


@dataclass(frozen=True)
class Found:
    """Devices by torch's name, each with what torch knows of it; and what is said of cards that are left out."""

    devices: tuple[tuple[str, Device], ...] = ()
    notices: tuple[Problem, ...] = ()


def devices_of(wanted: str, manifest: Manifest, tell: Callable[[Problem], object]) -> Choice:
    """The ranks of a worker for `wanted`, the setting compute.device; the best device also where "all" are not two.

    Several have a copy of the model each. Where the largest card has no room for one, those that `fit` has counted
    together share the model. `tell` gets a notice about each card that is left out, and where "all" are not two.
    """
    names = chosen(wanted)
    if len(names) == 1 and names != (ALL,):
        return Choice(names)
    found = _in_a_fork(names, manifest.precision)
    for notice in found.notices:
        tell(notice)
    if names == (ALL,) and not found.devices:
        tell(Problem(Text("ranks.only_one_device"), Text("ranks.best_device_trains")))
        return Choice(("",))
    names = tuple(name for name, _ in found.devices) or names
    shared = spread_over(manifest, [card for _, card in found.devices])
    sharing = tuple(name for name, card in found.devices if any(card is each for each in shared))
    return Choice(sharing, sharded=True, offload=offloads(manifest, shared)) if sharing else Choice(names)


def set_nccl(parameters: tuple[int, int, int]) -> None:
    """Set NCCL's parameters for this process and those forked from now on; 0 leaves the choice to NCCL.

    Raises DoesNotFit for more sockets than NCCL has between two ranks.
    """
    _, threads, sockets = parameters
    if threads * sockets > MOST_SOCKETS:
        raise DoesNotFit(
            Text("ranks.too_many_sockets", threads=threads, sockets=sockets, most=MOST_SOCKETS),
            Text("ranks.lower_sockets", setting="compute.nccl_sockets_per_thread"),
            remedy="setting:compute.nccl_sockets_per_thread",
        )
    os.environ.update({name: str(value) for name, value in zip(NCCL, parameters, strict=True) if value})


def _in_a_fork(names: Sequence[str], precision: str) -> Found:
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_tell, args=(theirs, names, precision), daemon=True)
    process.start()
    theirs.close()
    found = Found()
    with contextlib.suppress(EOFError), ours:
        if ours.poll(LOOK_SECONDS):
            found = ours.recv()
    process.kill()
    process.join()
    return found


def _tell(link: Connection, names: Sequence[str], precision: str) -> None:
    link.send(look_at(names, precision))


def look_at(names: Sequence[str], precision: str) -> Found:
    """The named devices that compute in `precision`; for "all" every such card, if they are two, that with the most memory first.

    If none of several that are named does, they are all there: the first one is refused in words later.
    """
    facts = look()
    if tuple(names) == (ALL,):
        order = sorted(range(len(facts.gpus)), key=lambda index: -facts.gpus[index].memory)
        found = _usable_of([torch.device("cuda", index) for index in order], precision, facts)
        return found if len(found.devices) > 1 else Found((), found.notices)
    wanted = [torch.device(name) for name in names]
    found = _usable_of(wanted, precision, facts)
    return found if found.devices else Found(tuple((str(each), _device(each, facts)) for each in wanted))


def _usable_of(devices: Sequence[torch.device], precision: str, facts: TorchFacts) -> Found:
    """All ranks compute in one precision, which "auto" leaves to the first: so that a sample counts the same on each."""
    usable, notices = list[tuple[str, Device]](), list[Problem]()
    for each in devices:
        found = _device(each, facts)
        name = labelled(found.name, str(each))
        if failed := why_not(each, facts) or (NOTHING if each == CPU else try_out(each)):
            notices.append(_left_out(name, Text("device.training_cannot_use", wanted=str(each), reason=failed)))
            continue
        if precision == "auto":
            precision = choose_precision(precision, each, facts)
        if has_precision(each, precision, facts):
            usable.append((str(each), found))
        else:
            notices.append(_left_out(name, Text("device.project_computes_cannot", wanted=precision, device=name)))
    return Found(tuple(usable), tuple(notices))


def _left_out(name: str, reason: Text) -> Problem:
    return Problem(Text("ranks.left_out", device=name), reason)


def _device(device: torch.device, facts: TorchFacts) -> Device:
    """Of a card that torch does not find, the memory is unknown."""
    index = device.index or 0
    if device.type != "cuda" or index >= len(facts.gpus):
        return Device(DeviceKind.CPU, index, "")
    gpu = facts.gpus[index]
    # torch has no name for a card's maker, which makes no difference here
    return Device(DeviceKind.NVIDIA, index, gpu.name, memory_total=gpu.memory, bf16=gpu.bf16)
