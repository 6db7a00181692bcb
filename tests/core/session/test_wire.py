"""Messages are encoded and decoded unchanged, and everything else is rejected."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import make_index, make_joined
from skep.core.policy.allowance import GpuMemory
from skep.core.project.data import FileRef, ImageLayout, ShardIndex, ShardRef, TextLayout
from skep.core.record.contributions import Evaluation
from skep.core.session import messages as m
from skep.core.session import wire
from skep.core.session.phases import Stage, SwarmProgress
from skep.core.session.wire import (
    FROM_WORKER_LIMIT,
    LINE_LIMIT,
    WireError,
    decode_from_worker,
    decode_to_worker,
    encode,
)
from skep.core.text import Problem, Text, verbatim

numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(-wire.LARGEST, wire.LARGEST)
texts = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20)
lists = st.lists(texts, max_size=3).map(tuple)
values = texts | st.booleans() | counts | numbers
leaves = st.builds(
    lambda name, args: Text(name, **args), texts, st.dictionaries(st.text("abc", min_size=1), values, max_size=3)
)
messages = (
    st.builds(
        lambda inner, several: Text("outer.id", inner=inner, several=several),
        leaves,
        st.lists(texts | leaves, max_size=2).map(tuple),
    )
    | leaves
)
problems = st.builds(Problem, messages, messages, texts)
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
        m.WorkerOptions,
        manifest=texts,
        index=st.builds(ShardIndex, layouts, shard_lists, shard_lists, files),
        identity_path=texts,
        run_folder=texts,
        seeds=lists,
        listen_host=texts,
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
    st.builds(m.RevocationsArrived, texts),
    st.builds(m.SetTraffic, numbers, numbers),
    st.builds(m.FinishTraining, st.booleans()),
    st.builds(m.StopTraining),
)
from_worker = st.one_of(
    st.builds(m.WorkerStage, st.sampled_from(Stage), numbers, messages),
    st.builds(m.WorkerJoined, texts, texts, texts, counts, counts, counts, lists, st.booleans(), st.booleans()),
    st.builds(m.WorkerProgress, progresses, texts, counts, counts, st.booleans()),
    st.builds(m.WorkerEvaluated, st.builds(Evaluation, counts, numbers)),
    st.builds(m.WorkerPaused, numbers, numbers, texts),
    st.builds(m.WorkerMemory, st.sampled_from(GpuMemory), numbers, texts),
    st.builds(m.ContributionPending, texts, counts, counts),
    st.builds(m.ContributionConfirmed, texts, counts, counts, counts),
    st.builds(m.ContributionLost, texts, counts, counts, messages, counts),
    st.builds(m.ShardWanted, texts),
    st.builds(m.WorkerNoticed, problems, st.none() | problems),
    st.builds(m.WorkerFailed, problems, st.booleans()),
    st.builds(m.WorkerFinished),
    st.builds(m.WorkerSaving, numbers),
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
def test_what_the_worker_says_arrives_unchanged_in_one_line(message: m.FromWorker):
    line = encode(message)
    assert line.count(b"\n") == 1
    assert decode_from_worker(line) == message


def test_every_message_of_the_wire_is_tried_above():
    assert {type(message).__name__ for message in _examples()} == {
        kind.__name__ for kind in get_args(m.ToWorker | m.FromWorker)
    }


def _examples() -> list[Any]:
    return [
        m.WorkerOptions("{}", make_index(), identity_path="/id", run_folder="/run"),
        m.SetShare(0.5),
        m.ShardArrived("0" * 64, "/x"),
        m.ShardFailed("0" * 64, Problem(verbatim("x"))),
        m.RevocationsArrived("{}"),
        m.SetTraffic(1.0, 0.0),
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
        m.ContributionLost("a", 1, 1, verbatim("why")),
        m.ShardWanted("0" * 64),
        m.WorkerNoticed(Problem(verbatim("x"))),
        m.WorkerFailed(Problem(verbatim("x")), retry=False),
        m.WorkerFinished(),
        m.WorkerSaving(30.0),
    ]


@given(st.binary(max_size=60))
def test_rubbish_is_refused_and_nothing_else_happens(line: bytes):
    with pytest.raises(WireError):
        decode_from_worker(line)


@given(
    st.sampled_from([kind.__name__ for kind in get_args(m.FromWorker)]), st.dictionaries(texts, json_values, max_size=4)
)
def test_a_known_name_with_other_fields_is_refused(name: str, body: dict[str, Any]):
    with pytest.raises(WireError):
        decode_from_worker(json.dumps(body | {"type": name, "extra": 1}).encode())


def test_an_unknown_field_without_a_name_is_refused_too():
    with pytest.raises(WireError):
        decode_from_worker(b'{"type": "WorkerFinished", "": null}')


@given(from_worker, json_values, st.randoms())
def test_a_field_of_another_kind_never_raises_anything_but_a_wire_error(message, value, random):
    body = json.loads(encode(message))
    body[random.choice(sorted(body))] = value
    try:
        decoded = decode_from_worker(json.dumps(body).encode())
    except WireError:
        return
    assert isinstance(decoded, m.FromWorker)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"type":"SetShare"}', "missing required field `share`"),
        ('{"type":"SetShare","share":1,"more":2}', "unknown field more"),
        ('{"type":"SetShare","share":"1"}', "Expected `float`, got `str`"),
        ('{"type":"SetShare","share":true}', "Expected `float`, got `bool`"),
        ('{"type":"SetShare","share":null}', "Expected `float`, got `null`"),
        ('{"type":"SetShare","share":NaN}', "NaN"),
        ('{"type":"SetShare","share":-Infinity}', "-Infinity"),
        ('{"type":"SetShare","share":1e999}', "too_large"),
        ('{"type":"SetShare","share":1' + "0" * 400 + "}", "too_large"),
        ('{"type":"SetShare","share":1' + "0" * 5000 + "}", "too_large"),
        ('{"type":"SetShare","share":0.1,"share":0.9}', "twice"),
        ('{"type":"ShardArrived","sha256":1,"path":""}', "Expected `str`, got `int`"),
        ('{"type":"Quit"}', "'Quit'"),
        ('{"type":["SetShare"]}', "Expected `str`"),
        ('{"share":1.0}', "missing required field `type`"),
        ("[]", "not_json_object"),
        ("", "not_json"),
        ('{"type":"SetShare","share":1}}', "not_json"),
        ("[" * 100_000, "nested"),
    ],
)
def test_each_kind_of_wrong_line_is_named(line: str, what: str):
    with pytest.raises(WireError, match=what):
        decode_to_worker(line.encode())


def test_a_whole_number_counts_as_a_fraction_but_not_the_other_way_round():
    assert decode_to_worker(b'{"type":"SetShare","share":1}') == m.SetShare(1.0)
    with pytest.raises(WireError, match="Expected `int`"):
        decode_from_worker(b'{"type":"ContributionPending","id":"a","epoch":1.0,"samples":1}')


def test_true_is_no_number():
    with pytest.raises(WireError, match="Expected `int`"):
        decode_from_worker(b'{"type":"ContributionPending","id":"a","epoch":true,"samples":1}')


def test_a_wrong_stage_is_refused():
    with pytest.raises(WireError, match="Invalid enum value 'lunch'"):
        decode_from_worker(b'{"type":"WorkerStage","stage":"lunch","fraction":0.5}')


@pytest.mark.parametrize(
    ("problem", "what"),
    [
        ("{}", r"missing required field `title` - at `\$\.problem`"),
        ("1", r"Expected `object`, got `int` - at `\$\.problem`"),
        ('{"title":{"id":"x","args":{}},"more":1}', "unknown field more"),
    ],
)
def test_nested_fields_are_checked_too(problem: str, what: str):
    with pytest.raises(WireError, match=what):
        decode_from_worker(f'{{"type":"WorkerFailed","problem":{problem},"retry":true}}'.encode())


def test_what_lies_in_a_list_is_checked_too():
    line = encode(m.WorkerOptions("", make_index()))
    with pytest.raises(WireError, match="Expected `array`, got `object`"):
        decode_to_worker(line.replace(b"[]", b"{}", 1))
    with pytest.raises(WireError, match="unknown field more"):
        decode_to_worker(line.replace(b'"samples":', b'"more":1,"samples":', 1))


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"\\ud800"}',
        b'{"type":"ShardWanted","sha256":"","\\ud800":1}',
        b'{"type":"WorkerStage","stage":"\\ud800","fraction":0}',
    ],
)
def test_a_name_that_is_no_text_is_refused_in_words_that_can_be_written(line: bytes):
    with pytest.raises(WireError) as refused:
        decode_from_worker(line)
    assert str(refused.value).isascii()


def test_the_two_directions_are_kept_apart():
    with pytest.raises(WireError):
        decode_from_worker(encode(m.StopTraining()))
    with pytest.raises(WireError):
        decode_to_worker(encode(m.ShardWanted("0" * 64)))


def test_a_line_over_the_limit_is_refused_unread():
    line = b'{"type":"ShardWanted","sha256":"' + b"0" * LINE_LIMIT + b'"}'
    with pytest.raises(WireError, match="larger_than_kib limit=4096"):
        decode_to_worker(line)
    with pytest.raises(WireError, match="larger_than_kib limit=64"):
        decode_from_worker(line[-FROM_WORKER_LIMIT - 1 :])


def test_unseen_characters_of_the_worker_are_replaced():
    line = rb'{"type":"WorkerFailed","problem":{"title":{"id":"text.verbatim","args":{"words":"a\u001b[2J\ud800\n"}}},"retry":true}'
    message = decode_from_worker(line)
    assert message == m.WorkerFailed(Problem(verbatim("a\ufffd[2J\ufffd\n")), retry=True)


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1])
def test_no_number_of_the_worker_is_so_large_that_the_ledger_cannot_add_it(number: int):
    with pytest.raises(WireError, match="far too large"):
        decode_from_worker(encode(m.ContributionPending("id", 1, number)))


def test_what_is_not_finite_is_never_sent():
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(m.SetShare(float("nan")))


@pytest.mark.parametrize(("kind", "value"), [(int | None, "x"), (dict[str, int], []), (dict[str, int], {"a": "b"})])
def test_build_refuses_what_the_annotation_does_not_allow(kind: Any, value: Any):
    with pytest.raises(WireError):
        wire.build(kind, value)


@given(messages)
def test_a_text_survives_with_all_that_is_in_it(said: Text):
    line = json.dumps(msgspec.to_builtins(said))
    assert wire.build(Text, json.loads(line)) == said


def test_a_text_in_a_text_comes_back_as_one():
    said = Text("data.gone", host="a.org", bytes=5, share=0.5, sure=True, why=Text("data.late", of=("a", "b")))
    again = wire.build(Text, json.loads(json.dumps(msgspec.to_builtins(said))))
    assert again == said
    assert {name: type(value) for name, value in again.args.items()} == {
        "host": str,
        "bytes": int,
        "share": float,
        "sure": bool,
        "why": Text,
    }
    with pytest.raises(WireError):
        wire.build(Text, {"id": "a", "args": {"why": {"id": "b", "args": {}, "more": 1}}})


@pytest.mark.parametrize("message", [m.StopTraining(), m.ShardArrived("0" * 64, "/caf\udce9")])
def test_a_path_that_is_not_utf_8_arrives_too(message: m.ToWorker):
    assert decode_to_worker(encode(message)) == message
