"""Attacks on newcomers: states that no honest peer has, offered as one epoch newer than the newest one.

A newcomer of skep asks the donors of the usual epochs in random order, so only some newcomers ask this one.
"""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import time
from collections.abc import Callable
from functools import partial
from typing import Any, AsyncIterator  # noqa: UP035 - hivemind knows a streaming RPC by typing's own name only

import hivemind
import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.compression import CompressionInfo, serialize_torch_tensor
from hivemind.optim.state_averager import TrainingStateAverager
from hivemind.p2p import P2PContext
from hivemind.proto import averaging_pb2
from hivemind.utils import MSGPackSerializer

from attacks.stranger import AsPeer, Attack, Target, ready

OF_ADAM = 4
"""Tensors for each parameter in a state of Adam: itself, two moments and the number of steps."""
Change = Callable[[dict[str, Any], list[torch.Tensor]], None]


class Donor(DecentralizedAverager):
    """Offers a changed copy of the state that it has loaded from an honest peer; `served` counts who asked for it."""

    kept: tuple[Any, list[torch.Tensor]] = ({}, [])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.served = multiprocessing.Value("q", 0)  # before hivemind's constructor, which forks
        super().__init__(*args, **kwargs)

    async def rpc_download_state(
        self, request: averaging_pb2.DownloadRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        self.served.value += 1
        async for message in super().rpc_download_state(request, context):
            yield message

    def get_current_state(self) -> Any:
        metadata, tensors = self.kept
        infos = [CompressionInfo.from_tensor(tensor, key=key) for key, tensor in enumerate(tensors)]
        return metadata, tensors, infos


Donor.__name__ = TrainingStateAverager.__name__  # calls are named after the class


class Silent(Donor):
    """Answers nothing to who asks for the state."""

    async def rpc_download_state(
        self, _request: averaging_pb2.DownloadRequest, _context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        self.served.value += 1
        await asyncio.sleep(3600.0)
        for message in ():
            yield message


class Endless(Donor):
    """Sends parts of a state without an end."""

    async def rpc_download_state(
        self, _request: averaging_pb2.DownloadRequest, _context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        self.served.value += 1
        part = serialize_torch_tensor(torch.zeros(250_000))
        yield averaging_pb2.DownloadData(metadata=MSGPackSerializer.dumps(self.kept[0]))
        while True:
            yield averaging_pb2.DownloadData(tensor_part=part)


class Unreadable(Donor):
    """Sends metadata that no decoder takes: the name of a field is not text."""

    async def rpc_download_state(
        self, _request: averaging_pb2.DownloadRequest, _context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        self.served.value += 1
        yield averaging_pb2.DownloadData(metadata=MSGPackSerializer.dumps({"epoch": 1}).replace(b"epoch", b"\xff" * 5))


for kind in (Silent, Endless, Unreadable):
    kind.__name__ = Donor.__name__


def donor(target: Target, change: Change, kind: type[Donor] = Donor) -> dict[str, int]:
    """Offer the state as it is after `change`, in an epoch that newcomers believe."""
    dht = hivemind.DHT(initial_peers=[target.address], start=True, startup_timeout=60)
    averager = kind(
        [torch.zeros(1)],
        dht=dht,
        prefix=f"{target.run_id}_state_averager",
        start=True,
        allow_state_sharing=False,
        declare_state_period=2.0,
        target_group_size=2,
    )
    while (loaded := averager.load_state_from_peers(timeout=20)) is None:
        time.sleep(1.0)
    metadata, tensors = dict(loaded[0]), [tensor.clone() for tensor in loaded[1]]
    change(metadata, tensors)
    averager.kept = metadata, tensors
    averager.allow_state_sharing = True
    key, ends = f"{target.run_id}_state_averager.all_averagers", time.monotonic() + target.seconds
    ready()
    while time.monotonic() < ends:
        found = dht.get(key, latest=True)
        others = (
            [each.value for peer, each in found.value.items() if peer != averager.peer_id.to_bytes()] if found else []
        )
        newest = max([float(value) for value in others if value is not None], default=0.0)
        averager.state_sharing_priority = newest + 1.0  # stock newcomers ask for the newest first
        time.sleep(0.5)
    served = int(averager.served.value)
    averager.shutdown()
    dht.shutdown()
    return {"tried": 1, "answered": served}


def nothing(_metadata: dict[str, Any], _tensors: list[torch.Tensor]) -> None:
    pass


def no_number(_metadata: dict[str, Any], tensors: list[torch.Tensor]) -> None:
    tensors[0].fill_(math.nan)


def negative_moments(_metadata: dict[str, Any], tensors: list[torch.Tensor]) -> None:
    """What Adam takes the root of; a state of SGD has nothing of the kind, and is not changed."""
    if len(tensors) % OF_ADAM == 0:
        for tensor in tensors[len(tensors) // OF_ADAM :]:
            tensor.abs_().neg_()


def other_shapes(_metadata: dict[str, Any], tensors: list[torch.Tensor]) -> None:
    tensors[:] = [tensor.flatten() for tensor in tensors]


def one_value(_metadata: dict[str, Any], tensors: list[torch.Tensor]) -> None:
    """Tensors of one value, which are broadcast."""
    tensors[:] = [tensor.new_zeros(()) for tensor in tensors]


def too_few(_metadata: dict[str, Any], tensors: list[torch.Tensor]) -> None:
    del tensors[-1]


def whole_numbers(_metadata: dict[str, Any], tensors: list[torch.Tensor]) -> None:
    tensors[:] = [tensor.long() for tensor in tensors]


def false_epoch(metadata: dict[str, Any], _tensors: list[torch.Tensor]) -> None:
    metadata["epoch"] = 10**12


def no_metadata(metadata: dict[str, Any], _tensors: list[torch.Tensor]) -> None:
    metadata.clear()


STATES: dict[str, AsPeer] = {
    "a state that is no number": Attack(partial(donor, change=no_number)),
    "negative second moments": Attack(partial(donor, change=negative_moments)),
    "a state of other shapes": Attack(partial(donor, change=other_shapes)),
    "a state of single values": Attack(partial(donor, change=one_value)),
    "a state that lacks a tensor": Attack(partial(donor, change=too_few)),
    "a state of whole numbers": Attack(partial(donor, change=whole_numbers)),
    "a state of a false epoch": Attack(partial(donor, change=false_epoch)),
    "a state without metadata": Attack(partial(donor, change=no_metadata)),
    "a state with metadata that cannot be read": Attack(partial(donor, change=nothing, kind=Unreadable)),
    "a donor that is silent": Attack(partial(donor, change=nothing, kind=Silent)),
    "a state without an end": Attack(partial(donor, change=nothing, kind=Endless)),
}
