"""Messages survive the wire unchanged, and nothing else is let through."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import make_index, make_joined
from skep.core import messages as m
from skep.core import wire
from skep.core.model import (
    Evaluation,
    FileRef,
    GpuMemory,
    ImageLayout,
    Problem,
    ShardIndex,
    ShardRef,
    Stage,
    SwarmProgress,
    TextLayout,
)
from skep.core.wire import LINE_LIMIT, WireError, decode_from_worker, decode_to_worker, encode

numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(-(2**63), 2**63)
texts = st.text(max_size=20)
lists = st.lists(texts, max_size=3).map(tuple)
problems = st.builds(Problem, texts, texts)
shards = st.builds(ShardRef, texts, counts, counts)
layouts = st.builds(TextLayout, counts, counts) | st.builds(ImageLayout, counts, counts, counts)
files = st.lists(st.builds(FileRef, texts, texts, counts, texts), max_size=2).map(tuple)
shard_lists = st.lists(shards, max_size=3).map(tuple)
progresses = st.builds(
    SwarmProgress,
    **{
        field.name: {"int": counts, "float": numbers, "float | None": st.none() | numbers}[str(field.type)]
        for field in dataclasses.fields(SwarmProgress)
    },
)

to_worker = st.one_of(
    st.builds(
        m.StartTraining,
        manifest=texts,
        index=st.builds(ShardIndex, layouts, shard_lists, shard_lists, files),
        identity_path=texts,
        run_folder=texts,
        seeds=lists,
        listen=lists,
        share=numbers,
        device=texts,
        threads=counts,
        position=counts,
        nice=counts,
        present=st.booleans(),
        memory=st.sampled_from(GpuMemory),
        leave_gpu=counts,
        leave_ram=counts,
    ),
    st.builds(m.SetShare, numbers, st.booleans(), st.sampled_from(GpuMemory)),
    st.builds(m.ShardArrived, texts, texts),
    st.builds(m.ShardFailed, texts, problems),
    st.builds(m.FinishTraining),
    st.builds(m.StopTraining),
)
from_worker = st.one_of(
    st.builds(m.WorkerStage, st.sampled_from(Stage), numbers, texts),
    st.builds(m.WorkerJoined, texts, texts, texts, counts, counts, counts, lists, st.booleans(), st.booleans()),
    st.builds(m.WorkerProgress, progresses, texts, counts, counts, st.booleans()),
    st.builds(m.WorkerEvaluated, st.builds(Evaluation, counts, numbers)),
    st.builds(m.WorkerPaused, numbers, numbers, texts),
    st.builds(m.WorkerMemory, st.sampled_from(GpuMemory), numbers, texts),
    st.builds(m.ContributionPending, texts, counts, counts),
    st.builds(m.ContributionConfirmed, texts, counts, counts, counts),
    st.builds(m.ContributionLost, texts, counts, counts, texts, counts),
    st.builds(m.ShardWanted, texts),
    st.builds(m.WorkerFailed, problems, st.booleans()),
)
json_values = st.recursive(
    st.none() | st.booleans() | counts | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(to_worker)
def test_what_the_engine_says_arrives_unchanged_in_one_line(message: m.ToWorker):
    line = encode(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_to_worker(line) == message


@given(from_worker)
def test_what_the_worker_says_arrives_unchanged_in_one_line(message: wire.FromWorker):
    line = encode(message)
    assert line.count(b"\n") == 1
    assert decode_from_worker(line) == message


def test_every_message_of_the_wire_is_tried_above():
    assert {type(message).__name__ for message in _examples()} == {
        kind.__name__ for kind in (*wire.TO_WORKER, *wire.FROM_WORKER)
    }


def _examples() -> list[Any]:
    return [
        m.StartTraining("{}", make_index(), "/id", "/run", (), (), 1.0),
        m.SetShare(0.5),
        m.ShardArrived("0" * 64, "/x"),
        m.ShardFailed("0" * 64, Problem("x")),
        m.FinishTraining(),
        m.StopTraining(),
        m.WorkerStage(Stage.DATA, 0.1),
        make_joined(),
        m.WorkerProgress(SwarmProgress(1, 0, None, 0.0, 0.0, None, 0, 1, 0.0, 0.0, 0.0, 0, 0)),
        m.WorkerEvaluated(Evaluation(1, 1.0)),
        m.WorkerPaused(0.0, 0.0),
        m.WorkerMemory(GpuMemory.RELEASE, 0.1, "round"),
        m.ContributionPending("a", 1, 1),
        m.ContributionConfirmed("a", 1, 1, 1),
        m.ContributionLost("a", 1, 1, "why"),
        m.ShardWanted("0" * 64),
        m.WorkerFailed(Problem("x"), retry=False),
    ]


@given(st.binary(max_size=60))
def test_rubbish_is_refused_and_nothing_else_happens(line: bytes):
    with pytest.raises(WireError):
        decode_from_worker(line)


@given(st.sampled_from([kind.__name__ for kind in wire.FROM_WORKER]), st.dictionaries(texts, json_values, max_size=4))
def test_a_known_name_with_other_fields_is_refused(name: str, body: dict[str, Any]):
    with pytest.raises(WireError):
        decode_from_worker(json.dumps(body | {"type": name, "extra": 1}).encode())


@given(from_worker, json_values, st.randoms())
def test_a_field_of_another_kind_never_raises_anything_but_a_wire_error(message, value, random):
    body = json.loads(encode(message))
    body[random.choice(sorted(body))] = value
    try:
        decoded = decode_from_worker(json.dumps(body).encode())
    except WireError:
        return
    assert isinstance(decoded, wire.FROM_WORKER)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"type":"SetShare"}', "lacks share"),
        ('{"type":"SetShare","share":1,"more":2}', "unknown more"),
        ('{"type":"SetShare","share":"1"}', "not float"),
        ('{"type":"SetShare","share":true}', "not float"),
        ('{"type":"SetShare","share":null}', "not float"),
        ('{"type":"SetShare","share":NaN}', "NaN"),
        ('{"type":"SetShare","share":-Infinity}', "-Infinity"),
        ('{"type":"SetShare","share":1e999}', "finite"),
        ('{"type":"SetShare","share":1' + "0" * 400 + "}", "finite"),
        ('{"type":"SetShare","share":1' + "0" * 5000 + "}", "JSON"),
        ('{"type":"SetShare","share":0.1,"share":0.9}', "twice"),
        ('{"type":"ShardArrived","sha256":1,"path":""}', "not str"),
        ('{"type":"Quit"}', "unknown message 'Quit'"),
        ('{"type":["SetShare"]}', "unknown message"),
        ('{"share":1.0}', "unknown message None"),
        ("[]", "not an object"),
        ("", "JSON"),
        ('{"type":"SetShare","share":1}}', "JSON"),
        ("[" * 100_000, "JSON"),
    ],
)
def test_each_kind_of_wrong_line_is_named(line: str, what: str):
    with pytest.raises(WireError, match=what):
        decode_to_worker(line.encode())


def test_a_whole_number_counts_as_a_fraction_but_not_the_other_way_round():
    assert decode_to_worker(b'{"type":"SetShare","share":1}') == m.SetShare(1.0)
    with pytest.raises(WireError, match="not int"):
        decode_from_worker(b'{"type":"ContributionPending","id":"a","epoch":1.0,"samples":1}')


def test_true_is_no_number():
    with pytest.raises(WireError, match="not int"):
        decode_from_worker(b'{"type":"ContributionPending","id":"a","epoch":true,"samples":1}')


def test_a_wrong_stage_is_refused():
    with pytest.raises(WireError, match="not a Stage"):
        decode_from_worker(b'{"type":"WorkerStage","stage":"lunch","fraction":0.5}')


def test_nested_fields_are_checked_too():
    with pytest.raises(WireError, match=r"WorkerFailed\.problem lacks title"):
        decode_from_worker(b'{"type":"WorkerFailed","problem":{},"retry":true}')
    with pytest.raises(WireError, match="not a list"):
        decode_to_worker(encode(m.StartTraining("", make_index(), "", "", (), (), 1.0)).replace(b"[]", b"{}", 1))


def test_the_two_directions_are_kept_apart():
    with pytest.raises(WireError):
        decode_from_worker(encode(m.StopTraining()))
    with pytest.raises(WireError):
        decode_to_worker(encode(m.ShardWanted("0" * 64)))


def test_a_line_over_the_limit_is_refused_unread():
    line = b'{"type":"ShardWanted","sha256":"' + b"0" * LINE_LIMIT + b'"}'
    with pytest.raises(WireError, match="over the limit"):
        decode_from_worker(line)


def test_what_is_not_finite_is_never_sent():
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(m.SetShare(float("nan")))


@pytest.mark.parametrize(("kind", "value"), [(int | None, "x"), (dict[str, int], []), (dict[str, int], {"a": "b"})])
def test_build_refuses_what_the_annotation_does_not_allow(kind: Any, value: Any):
    with pytest.raises(WireError):
        wire.build(kind, value, "it")


def test_build_knows_the_shapes_our_messages_use():
    assert wire.build(int | None, None, "it") is None
    assert wire.build(dict[str, int], {"a": 1}, "it") == {"a": 1}
    assert wire.build(tuple[float, ...], [1, 2.5], "it") == (1.0, 2.5)


def test_a_part_of_a_message_that_is_no_object_is_refused():
    with pytest.raises(WireError, match=r"WorkerFailed\.problem is not an object"):
        decode_from_worker(b'{"type":"WorkerFailed","problem":1,"retry":true}')
