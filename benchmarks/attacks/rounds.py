"""Attacks in rounds: on the search for a group, and as a member with data that no honest peer has."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import hivemind
import torch
from hivemind.averaging.allreduce import AllReduceRunner, AveragingMode
from hivemind.averaging.averager import compute_schema_hash
from hivemind.averaging.matchmaking import Matchmaking
from hivemind.compression import deserialize_torch_tensor, serialize_torch_tensor
from hivemind.optim.grad_averager import GradientAverager
from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import averaging_pb2, runtime_pb2
from hivemind.utils import MSGPackSerializer, get_dht_time

from attacks.records import bomb
from attacks.stranger import AsPeer, Attack, Calling, Stranger, Target, ready

ROUND_SECONDS = 15.0
SCALED = "values and weights are brought within bounds, and averaged"
ALLOWED = "its gradients could be those of an honest peer"
LEADS = "the leader of a group decides who is in it, and when it begins"
FIRST = "in the first rounds of a peer nothing is known that averages could be compared with"
LOOKING_SECONDS = 1.5
"""Until a group is formed: less than others look for one, and their leaders are those who are nearest to that."""


def claim(bandwidth: Any = 1.0, data: Any = None) -> bytes:
    return MSGPackSerializer.dumps([bandwidth, AveragingMode.NODE.value, MSGPackSerializer.dumps(data)])


def asking(gather: Callable[[], bytes]) -> Callable[[Stranger], Awaitable[None]]:
    """Requests to join a group that say this of the sender, at both averagers; who is accepted stays, and does nothing."""

    async def attack(own: Stranger) -> None:
        schema = compute_schema_hash([torch.zeros(shape) for shape in own.target.shapes])

        async def ask(peer: PeerID, *, of_state: bool) -> None:
            request = averaging_pb2.JoinRequest(
                schema_hash=schema,
                expiration=get_dht_time() + LOOKING_SECONDS,
                gather=gather(),
                client_mode=False,
                group_key=f"{own.state if of_state else own.gradients}.0b",
            )
            await own.drained(own.averager(peer, of_state=of_state).rpc_join_group(request))

        await own.repeat(
            lambda: own.at_once(ask(peer, of_state=kind) for peer in own.peers for kind in (False, True)), 0.02
        )

    return attack


async def invented_averagers(own: Stranger) -> None:
    """Peers that look for a group and do not exist, before all others, so that these ask them first."""

    async def declare() -> None:
        for _ in range(20):
            subkey = MSGPackSerializer.dumps(secrets.token_bytes(34))
            expires = get_dht_time() + LOOKING_SECONDS
            await own.store(f"{own.gradients}.0b", MSGPackSerializer.dumps(True), tag=subkey, expires=expires)

    await own.repeat(declare)


# --- as a member: in a process of its own, which hivemind's averager forks


def member(
    target: Target,
    *,
    value: Callable[[], torch.Tensor | float] = lambda: 1.0,
    weight: float = 8.0,
    **options: Any,
) -> dict[str, int]:
    """Take part in every round with gradients of this value and this weight."""
    dht = hivemind.DHT(initial_peers=[target.address], start=True, startup_timeout=60)
    parameters = [torch.nn.Parameter(torch.zeros(shape)) for shape in target.shapes]
    averager = GradientAverager(
        parameters,
        dht=dht,
        prefix=f"{target.run_id}_grad_averager",
        start=True,
        min_matchmaking_time=2.0,
        request_timeout=0.6,
        allreduce_timeout=ROUND_SECONDS,
        sender_timeout=5.0,
        reducer_timeout=10.0,
        **({} if target.reduces else {"bandwidth": 0.0}) | options,
    )
    ready()
    counts, ends = {"tried": 0, "answered": 0}, time.monotonic() + target.seconds
    while time.monotonic() < ends:
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter) + value()
        averager.accumulate_grads_(8)
        counts["tried"] += 1
        try:
            averager.step(weight=weight, timeout=ROUND_SECONDS)
            counts["answered"] += 1
        except Exception:  # noqa: BLE001 - whatever happens, the next round is attacked too
            time.sleep(0.1)
    averager.shutdown()
    dht.shutdown()
    return counts


def sending(change: Callable[[averaging_pb2.AveragingData], None]) -> Callable[[Target], dict[str, int]]:
    """A member whose messages are changed."""

    def attack(target: Target) -> dict[str, int]:
        honest = AllReduceRunner._generate_input_for_peer  # noqa: SLF001 - stock is changed

        async def generate(self: Any, peer_index: int) -> AsyncIterator[averaging_pb2.AveragingData]:
            async for message in honest(self, peer_index):
                change(message)
                yield message

        AllReduceRunner._generate_input_for_peer = generate  # noqa: SLF001 - as above
        return member(target)

    return attack


def no_number(message: averaging_pb2.AveragingData) -> None:
    message.weight = math.nan


def endless_weight(message: averaging_pb2.AveragingData) -> None:
    message.weight = 1e300


def another_shape(message: averaging_pb2.AveragingData) -> None:
    message.tensor_part.size[:] = [1, *message.tensor_part.size]


def no_tensor(message: averaging_pb2.AveragingData) -> None:
    message.tensor_part.buffer = b"no tensor"


def another_kind(message: averaging_pb2.AveragingData) -> None:
    message.tensor_part.dtype = "int64"


def unknown_codec(message: averaging_pb2.AveragingData) -> None:
    message.tensor_part.compression = 99


def another_epoch(message: averaging_pb2.AveragingData) -> None:
    message.peer_id = b"999999999"


def text(message: averaging_pb2.AveragingData) -> None:
    """Decoded, each value takes four kilobytes."""
    part = message.tensor_part
    part.compression, part.dtype = runtime_pb2.FLOAT16, "U1000"
    part.buffer = bytes(2 * math.prod(part.size))


def returning(value: float) -> Callable[[Target], dict[str, int]]:
    """A member that returns its parts changed by this value."""

    def attack(target: Target) -> dict[str, int]:
        honest = AllReduceRunner._accumulate_parts_streaming  # noqa: SLF001 - stock is changed

        async def accumulate(self: Any, *given: Any) -> AsyncIterator[averaging_pb2.AveragingData]:
            async for answer in honest(self, *given):
                changed = deserialize_torch_tensor(answer.tensor_part) + value
                answer.tensor_part.CopyFrom(serialize_torch_tensor(changed, answer.tensor_part.compression))
                yield answer

        AllReduceRunner._accumulate_parts_streaming = accumulate  # noqa: SLF001 - as above
        return member(target)

    return attack


def silent_member(target: Target) -> dict[str, int]:
    """Joins groups and sends nothing."""

    async def generate(_self: Any, _peer_index: int) -> AsyncIterator[averaging_pb2.AveragingData]:
        await asyncio.sleep(3600.0)
        for message in ():
            yield message

    AllReduceRunner._generate_input_for_peer = generate  # noqa: SLF001 - stock is changed
    return member(target)


def leading(
    begin: Callable[[Any, PeerID], averaging_pb2.MessageFromLeader] | None,
) -> Callable[[Target], dict[str, int]]:
    """A member that accepts everybody into a group, and begins the round with this message, or never."""

    def attack(target: Target) -> dict[str, int]:
        async def accept(
            self: Any, _request: averaging_pb2.JoinRequest, context: P2PContext
        ) -> AsyncIterator[averaging_pb2.MessageFromLeader]:
            yield averaging_pb2.MessageFromLeader(code=averaging_pb2.ACCEPTED)
            if begin is None:
                await asyncio.sleep(3600.0)
            else:
                yield begin(self, context.remote_id)

        Matchmaking.rpc_join_group = accept
        return member(target)

    return attack


def group_of_strangers(own: Any, follower: PeerID) -> averaging_pb2.MessageFromLeader:
    """A group with a peer that does not exist, which claims a false epoch."""
    return averaging_pb2.MessageFromLeader(
        code=averaging_pb2.BEGIN_ALLREDUCE,
        group_id=secrets.token_bytes(20),
        ordered_peer_ids=[own.peer_id.to_bytes(), follower.to_bytes(), secrets.token_bytes(34)],
        gathered=[claim(), claim(), claim(data={"epoch": 10**9})],
    )


ASKING: dict[str, Calling] = {
    "requests that say nothing": Attack(asking(lambda: b"")),
    "requests of a large bandwidth": Attack(asking(partial(claim, 1e12))),
    "requests with nested claims": Attack(
        asking(lambda: MSGPackSerializer.dumps([1.0, AveragingMode.NODE.value, bomb()]))
    ),
    "requests with large claims": Attack(asking(lambda: claim(data="x" * 1_000_000))),
    "invented averagers": Attack(invented_averagers),
}
MEMBERS: dict[str, AsPeer] = {
    "gradients that are no number": Attack(partial(member, value=lambda: math.nan)),
    "endless gradients": Attack(partial(member, value=lambda: 3e38)),
    "large gradients": Attack(partial(member, value=lambda: 1e4), SCALED),
    "a large weight": Attack(partial(member, value=lambda: 1.0, weight=1e12), SCALED),
    "random gradients": Attack(partial(member, value=lambda: float(torch.randn(()))), ALLOWED),
    "a weight that is no number": Attack(sending(no_number)),
    "an endless weight": Attack(sending(endless_weight), SCALED),
    "parts of another shape": Attack(sending(another_shape)),
    "parts that are no tensor": Attack(sending(no_tensor)),
    "parts of whole numbers": Attack(sending(another_kind)),
    "parts in another codec": Attack(sending(unknown_codec)),
    "parts of text": Attack(sending(text)),
    "false averages": Attack(returning(1e4), FIRST),
    "another epoch said": Attack(sending(another_epoch), ALLOWED),
    "a silent member": Attack(silent_member),
    "a claimed bandwidth": Attack(partial(member, bandwidth=1e12)),
    "a leader without a group": Attack(leading(None), LEADS),
    "a leader of strangers": Attack(leading(group_of_strangers), LEADS),
}
