"""The answers of a running skep to requests of another terminal."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from english import in_english, raises
from fakes import make_progress, make_project
from skep.adapters.net.control_socket import problem_answer
from skep.core.device import ComputingDevice, PowerCap
from skep.core.errors import BadInput, NotRunning, SkepError
from skep.core.policy.allowance import Allowance, PauseState
from skep.core.policy.device_shares import Ceiling
from skep.core.project.data import Project
from skep.core.record.contributions import Evaluation, Tally, Totals
from skep.core.session import messages as m
from skep.core.session.control import decide, finite, result, snapshot_of, status
from skep.core.session.phases import Phase, Stage, StageProgress
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem, as_data, verbatim

BUSY = Snapshot(
    phase=Phase.PAUSED,
    allowance=Allowance(0.0, verbatim("Paused for a while."), 99.0),
    pause=PauseState(99.0),
    project=make_project(),
    stage=StageProgress(Stage.PEERS, 0.5, verbatim("1 of 2")),
    power_caps={"cuda:0": PowerCap(200.0, 100.0, 300.0)},
    ceilings={"cuda:1": Ceiling(0.4, verbatim("Too warm."))},
    devices=(ComputingDevice("cuda:0", "Card"), ComputingDevice("cuda:1", "Card", 0.4)),
    in_step=True,
    seeds=("/ip4/203.0.113.7/tcp/31337/p2p/Qm",),
    failures=3,
    joined=True,
    peer_id="Qm",
    device="CPU",
    client_mode=True,
    heavy=True,
    progress=make_progress(),
    evaluations=(Evaluation(1, 5.0), Evaluation(2, 4.0)),
    totals=Totals(confirmed=Tally(2, 20)),
    problem=Problem(verbatim("It rains."), verbatim("Wait.")),
    finished=verbatim("It is over."),
    restart_at=100.0,
    leaving_until=101.0,
)


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        ({"verb": "pause", "until": 99.5}, m.Pause(99.5)),
        ({"verb": "pause", "until": None}, m.Pause(None)),
        ({"verb": "pause"}, m.Pause(None)),
        ({"verb": "resume"}, m.Resume()),
        ({"verb": "leave"}, m.Leave()),
        ({"verb": "leave", "now": True}, m.Leave(now=True)),
        ({"verb": "leave", "now": "soon"}, m.Leave()),
        (
            {"verb": "settings", "values": {"compute.share_away": 0.3}},
            m.ChangeSettings({"compute.share_away": 0.3}),
        ),
    ],
)
def test_a_verb_becomes_its_command(request_, command):
    assert decide(request_, Snapshot()) == ({"ok": True}, (command,))


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"verb": "format"},
        {"verb": ["status"]},
        {"verb": "pause", "until": "tomorrow"},
        {"verb": "pause", "until": float("nan")},
        {"verb": "pause", "until": float("inf")},
        {"verb": "pause", "until": -1},
        {"verb": "pause", "until": True},
        {"verb": "settings"},
        {"verb": "settings", "values": {"compute.share_away": 3.0}},
        {"verb": "settings", "values": {"compute.share_away": float("nan")}},
        {"verb": "settings", "values": {"no.such": 1}},
    ],
)
def test_nonsense_is_answered_with_a_sentence_and_commands_nothing(request_):
    with pytest.raises(BadInput) as refused:
        decide(request_, Snapshot())
    answer = problem_answer(refused.value)
    assert (answer["ok"], answer["exit_code"]) == (False, 2)
    assert in_english(answer["title"]).endswith(".")
    with pytest.raises(BadInput):
        result(answer)


def test_status_travels_as_json_and_shows_the_same_at_the_other_end():
    answer, _ = decide({"verb": "status"}, BUSY)
    received = result(json.loads(json.dumps(answer, allow_nan=False)))["status"]
    assert received["phase"] == "paused"
    shown = Project(**received["project"])
    assert shown == Project("tiny", "Tiny model", "tiny.0123", "AB12 CD34", 1, "/manifests/tiny.json")
    assert snapshot_of(received) == replace(BUSY, project=shown)


def test_an_idle_snapshot_has_a_status_too():
    assert snapshot_of(status(Snapshot())) == Snapshot()


def test_no_nan_leaves_the_running_skep():
    sick = replace(
        BUSY, progress=replace(make_progress(), loss=float("nan")), evaluations=(Evaluation(1, float("nan")),)
    )
    body = status(sick)
    json.dumps(body, allow_nan=False)
    assert body["progress"]["loss"] is None
    assert snapshot_of(body).evaluations == ()


@given(
    st.recursive(st.none() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_whatever_is_made_finite_is_json(value):
    json.dumps(finite(value), allow_nan=False)


@pytest.mark.parametrize("body", [{}, {"phase": "flying"}, status(BUSY) | {"progress": {"epoch": "one"}}])
def test_a_status_of_another_version_is_said_to_be_one(body):
    with raises(NotRunning, match="does not understand"):
        snapshot_of(body)


def test_a_failure_at_the_other_end_keeps_its_words_and_exit_code():
    with pytest.raises(SkepError) as raised:
        result(
            {
                "ok": False,
                "exit_code": 1,
                "title": as_data(verbatim("The disk is full.")),
                "hint": as_data(verbatim("Free some space.")),
            }
        )
    assert (in_english(raised.value.title), in_english(raised.value.hint), raised.value.exit_code) == (
        "The disk is full.",
        "Free some space.",
        1,
    )
    with pytest.raises(SkepError):
        result({})
