"""Parts of another peer are checked before they are decoded, in both directions. No network."""

import asyncio
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hivemind import compression
from hivemind.averaging.allreduce import AllReduceRunner, AveragingMode
from hivemind.compression import serialize_torch_tensor
from hivemind.p2p import PeerID
from hivemind.p2p.servicer import ServicerBase
from hivemind.proto import averaging_pb2, runtime_pb2

from groupmates import Lasting
from skep.worker.swarm.averaging.all_reduce import PromptAllReduce
from skep.worker.swarm.averaging.parts import UnlikeOurs, check
from skep.worker.swarm.averaging.robust import RobustMean

OURS, THEIRS, THIRD = PeerID(b"ours"), PeerID(b"theirs"), PeerID(b"third")
GROUP = b"group"
LONG, DEADLINE = 600.0, 30.0
VALUES, PARTS = 4096, 2
PART_BYTES = 4 * VALUES // PARTS
VALUE_BYTES = 4000
"""A value as text of a thousand letters."""

CODECS = {
    "none": compression.NoCompression(),
    "float16": compression.Float16Compression(),
    "scaled float16": compression.ScaledFloat16Compression(),
    "uniform": compression.Uniform8BitQuantization(),
    "quantile": compression.Quantile8BitQuantization(),
}
KINDS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def encoded(codec, values, kind=torch.float32):
    return serialize_torch_tensor(torch.randn(values).to(kind), codec.compression_type)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("values", [2, 300, 70_001])
def test_what_hivemind_encodes_is_accepted(codec, values):
    kinds = KINDS if codec == "none" else KINDS[:1]
    for kind in kinds:
        check(encoded(CODECS[codec], values, kind), values)


def test_bfloat16_is_accepted_as_hivemind_sent_it_once():
    part = encoded(CODECS["none"], 300, torch.bfloat16)
    part.buffer = bytes(4 * 300)
    check(part, 300)


def test_a_blockwise_codec_has_a_table_for_each_block():
    values, tables = 5000, (2, 256)
    part = encoded(CODECS["none"], values)
    part.compression = runtime_pb2.BLOCKWISE_8BIT
    head = np.array(tables, dtype=np.int64).tobytes()
    part.buffer = head + bytes(4 * sum(tables)) + bytes(values)
    check(part, values)
    part.buffer = head + bytes(4 * sum(tables)) + bytes(values - 1)
    with pytest.raises(UnlikeOurs):
        check(part, values)


def another_kind(part):
    part.compression, part.dtype = runtime_pb2.FLOAT16, "U1000"
    part.buffer = bytes(2 * part.size[0])


def whole_numbers(part):
    part.dtype = "int32"


def needs_a_gradient(part):
    part.requires_grad = True


def another_shape(part):
    part.size[:] = [1, *part.size]


def one_more(part):
    part.size[0] += 1


def too_short(part):
    part.buffer = part.buffer[:-4]


def unknown_codec(part):
    part.compression = 99


def long_table(part):
    part.compression = runtime_pb2.UNIFORM_8BIT
    part.buffer = (1 << 40).to_bytes(8, "little") + bytes(4 * 256 + part.size[0])


BAD = (another_kind, whole_numbers, needs_a_gradient, another_shape, one_more, too_short, unknown_codec, long_table)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("change", BAD)
def test_what_cannot_be_ours_is_not(codec, change):
    part = encoded(CODECS[codec], VALUES)
    change(part)
    with pytest.raises(UnlikeOurs):
        check(part, VALUES)


# --- in a round


class Reducers:
    """The calls of peers that return our own values and one, each changed by `change`."""

    def __init__(self, change):
        self.change = change

    def get_stub(self, _p2p, _peer, namespace):
        assert namespace is None
        return self

    async def rpc_aggregate_part(self, parts):
        return self._answers([part async for part in parts])

    async def _answers(self, parts):
        for part in parts:
            answer = averaging_pb2.AveragingData(code=averaging_pb2.AVERAGED_PART)
            answer.tensor_part.CopyFrom(serialize_torch_tensor(torch.ones(VALUES // PARTS)))
            self.change(answer.tensor_part)
            assert part.weight == 1.0
            yield answer


def runner(kind, peers, shares, stub):
    """That of the first of the peers."""
    servicer = type("Servicer", (ServicerBase,), {"get_stub": stub.get_stub})
    options = {"company": Lasting(), "combination": RobustMean(OURS)} if kind is PromptAllReduce else {}
    return kind(
        p2p=SimpleNamespace(peer_id=OURS),
        servicer_type=servicer,
        prefix=None,
        group_id=GROUP,
        tensors=[torch.zeros(VALUES)],
        ordered_peer_ids=peers,
        peer_fractions=shares,
        modes=[AveragingMode.NODE if share else AveragingMode.CLIENT for share in shares],
        sender_timeout=LONG,
        reducer_timeout=2 * LONG,
        part_size_bytes=PART_BYTES,
        **options,
    )


async def average(made):
    return torch.cat([change async for change in made])


async def sends(made, peer, change=lambda _part: None):
    async def parts():
        for number in range(PARTS):
            message = averaging_pb2.AveragingData(weight=1.0)
            message.tensor_part.CopyFrom(serialize_torch_tensor(torch.ones(VALUES // PARTS)))
            if not number:
                message.code, message.group_id = averaging_pb2.PART_FOR_AVERAGING, GROUP
            change(message.tensor_part)
            yield message

    async for _ in made.rpc_aggregate_part(parts(), SimpleNamespace(remote_id=peer)):
        pass


def peak_of(round_):
    """The result of a round, and the most memory that it took."""
    tracemalloc.start()
    try:
        return asyncio.run(asyncio.wait_for(round_, DEADLINE)), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


MUCH = VALUES // PARTS * VALUE_BYTES / 2


def test_stock_decodes_a_part_that_takes_much_memory():
    async def round_():
        made = runner(AllReduceRunner, [OURS, THEIRS, THIRD], (1.0, 0.0, 0.0), Reducers(lambda _part: None))
        sending = asyncio.ensure_future(sends(made, THEIRS, another_kind))
        while tracemalloc.get_traced_memory()[1] < MUCH:  # noqa: ASYNC110 - memory has no event; the call may hang then
            await asyncio.sleep(0.01)
        sending.cancel()

    _, peak = peak_of(round_())
    assert peak >= MUCH


def test_a_part_that_would_take_much_memory_is_not_decoded_and_its_sender_banned():
    async def round_():
        made = runner(PromptAllReduce, [OURS, THEIRS, THIRD], (1.0, 0.0, 0.0), Reducers(lambda _part: None))
        calls = (average(made), sends(made, THEIRS, another_kind), sends(made, THIRD))
        return made.banned_senders, (await asyncio.gather(*calls))[0]

    (banned, change), peak = peak_of(round_())
    assert banned == {THEIRS}
    assert change.tolist() == [0.5] * VALUES
    assert peak < MUCH


@pytest.mark.parametrize("change", BAD)
def test_a_bad_part_bans_its_sender_and_the_others_average(change):
    async def round_():
        made = runner(PromptAllReduce, [OURS, THEIRS, THIRD], (1.0, 0.0, 0.0), Reducers(change))
        calls = (average(made), sends(made, THEIRS, change), sends(made, THIRD))
        changed, *_ = await asyncio.gather(*calls)
        return made.banned_senders, changed, made._company.avoids(THEIRS)

    banned, changed, avoided = asyncio.run(asyncio.wait_for(round_(), DEADLINE))
    assert banned == {THEIRS}
    assert changed.tolist() == [0.5] * VALUES
    assert not changed.requires_grad
    assert not avoided


@pytest.mark.parametrize("change", BAD)
def test_a_peer_that_sends_such_a_part_is_avoided_if_it_was_alone_with_us(change):
    async def round_():
        made = runner(PromptAllReduce, [OURS, THEIRS], (1.0, 0.0), Reducers(change))
        await asyncio.gather(average(made), sends(made, THEIRS, change))
        return made.banned_senders, made._company.avoids(THEIRS)

    assert asyncio.run(asyncio.wait_for(round_(), DEADLINE)) == ({THEIRS}, True)


@pytest.mark.parametrize("change", BAD)
def test_a_reducer_that_returns_such_a_part_is_banned_and_ours_stays(change):
    async def round_():
        made = runner(PromptAllReduce, [OURS, THEIRS], (0.0, 1.0), Reducers(change))
        changed, avoided = await average(made), made._company.avoids(THEIRS)
        return changed, made.tensor_part_container.failed_size, made.banned_senders, avoided

    (changed, failed, banned, avoided), peak = peak_of(round_())
    assert changed.tolist() == [0.0] * VALUES
    assert (failed, banned) == (VALUES, {THEIRS})
    assert avoided
    assert peak < MUCH


def test_what_a_reducer_returns_is_used():
    async def round_():
        return await average(runner(PromptAllReduce, [OURS, THEIRS], (0.0, 1.0), Reducers(lambda _part: None)))

    assert asyncio.run(asyncio.wait_for(round_(), DEADLINE)).tolist() == [1.0] * VALUES
