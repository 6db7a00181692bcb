"""Messages and snapshots as the events that `join --json` prints."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from skep.cli.show.renderers import Events
from skep.cli.show.speech import worded
from skep.core.device import ComputingDevice
from skep.core.policy.allowance import Allowance
from skep.core.record.contributions import Evaluation
from skep.core.session import messages as m
from skep.core.session.phases import Phase, Stage, StageProgress, SwarmProgress
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem, verbatim

PROGRESS = SwarmProgress(
    epoch=3, peers=2, loss=2.5, samples_per_second=40.0, share_asked=0.5, share_measured=0.49,
    samples_accumulated=12, target_batch_size=1024, compute_seconds=1.0, nap_seconds=1.0, waiting_seconds=0.5,
    bytes_sent=10, bytes_received=20,
)  # fmt: skip


def test_a_stage_is_told_when_it_moves_and_not_again() -> None:
    events = Events()
    snapshot = Snapshot(stage=StageProgress(Stage.DATA, 0.5, verbatim("4 of 8 shards")))
    told = events.of(m.Tick(), snapshot)
    assert worded(told) == [{"event": "stage", "name": "data", "fraction": 0.5, "detail": "4 of 8 shards"}]
    assert events.of(m.Tick(), snapshot) == []


def test_joining_progress_and_evaluation_carry_their_figures() -> None:
    events = Events()
    joined = m.WorkerJoined("Qm", "CPU", "float32", 3, 8, 4, devices=(ComputingDevice("cpu", "CPU"),))
    (told,) = events.of(joined, Snapshot())
    assert json.loads(json.dumps(told)) == {
        "event": "joined", "peer_id": "Qm", "device": "CPU", "precision": "float32", "epoch": 3,
        "step_batch": 8, "micro_batch": 4, "addresses": [], "client_mode": False,
        "relayed": False, "verified": False, "heavy": False, "devices": [{"id": "cpu", "name": "CPU", "busy": 1.0}], "in_step": False,
    }  # fmt: skip
    (progress,) = events.of(m.WorkerProgress(PROGRESS), Snapshot())
    assert progress["event"] == "progress"
    assert (progress["peers"], progress["share_measured"], progress["target_batch_size"]) == (2, 0.49, 1024)
    (evaluation,) = events.of(m.WorkerEvaluated(Evaluation(3, 2.25)), Snapshot())
    assert evaluation == {"event": "evaluation", "epoch": 3, "loss": 2.25}


def test_the_end_of_a_problem_is_told() -> None:
    over = m.WorkerNoticed(Problem(verbatim("The clock is right again.")), over=Problem(verbatim("It is wrong.")))
    assert worded(Events().of(over, Snapshot())) == [{"event": "problem_over", "message": "The clock is right again."}]
    over = m.ProblemArose(over.problem, over=over.over)
    assert worded(Events().of(over, Snapshot())) == [{"event": "problem_over", "message": "The clock is right again."}]


def test_a_number_that_is_none_is_null() -> None:
    sick = replace(PROGRESS, loss=float("nan"), samples_per_second=float("inf"))
    (told,) = Events().of(m.WorkerProgress(sick), Snapshot())
    assert json.loads(json.dumps(told, allow_nan=False))["loss"] is None
    assert told["samples_per_second"] is None


def test_a_pause_and_its_end_are_told_with_the_reason() -> None:
    events = Events()
    assert events.of(m.Tick(), Snapshot()) == []
    paused = Snapshot(allowance=Allowance(0.0, verbatim("Paused until 15:30."), 99.0))
    assert worded(events.of(m.Pause(99.0), paused)) == [
        {"event": "paused", "share": 0.0, "until": 99.0, "reason": "Paused until 15:30."}
    ]
    assert events.of(m.Tick(), paused) == []
    assert events.of(m.Resume(), Snapshot(allowance=Allowance(0.3, verbatim("Training at 30 %."))))[0]["share"] == 0.3


def test_a_run_that_begins_paused_says_so() -> None:
    (told,) = Events().of(m.Tick(), Snapshot(allowance=Allowance(0.0, verbatim("Paused until you resume."))))
    assert told["event"] == "paused"


def test_a_wait_for_the_last_round_is_told_once_with_its_end() -> None:
    events = Events()
    waiting = Snapshot(phase=Phase.LEAVING, leaving_until=99.0)
    assert events.of(m.Leave(), waiting) == [{"event": "leaving", "until": 99.0}]
    assert events.of(m.Tick(), waiting) == []
    assert events.of(m.Leave(now=True), replace(waiting, leaving_until=None)) == []


def test_a_problem_is_told_once_and_again_when_it_comes_back() -> None:
    events = Events()
    sick = Snapshot(problem=Problem(verbatim("The swarm is silent."), verbatim("Wait.")))
    assert worded(events.of(m.Tick(), sick)) == [{"event": "problem", "title": "The swarm is silent.", "hint": "Wait."}]
    assert worded(events.of(m.Tick(), sick)) == []
    assert events.of(m.Tick(), Snapshot()) == []
    assert len(events.of(m.Tick(), sick)) == 1


CONTRIBUTIONS = st.one_of(
    st.builds(m.ContributionPending, st.sampled_from("ab"), st.just(1), st.just(8)),
    st.builds(m.ContributionConfirmed, st.sampled_from("ab"), st.just(1), st.just(8), st.just(2)),
    st.builds(m.ContributionLost, st.sampled_from("ab"), st.just(1), st.just(8), st.just("no other peer")),
)


@given(st.lists(CONTRIBUTIONS, max_size=20))
def test_whatever_the_worker_repeats_each_contribution_is_pending_once_then_final_once(
    messages: list[m.Message],
) -> None:
    events = Events()
    told = [event for message in messages for event in events.of(message, Snapshot())]
    for name in "ab":
        states = [event["state"] for event in told if event["id"] == name]
        assert states.count("pending") <= 1
        assert len([state for state in states if state != "pending"]) <= 1
        assert "pending" not in states[1:]


def test_what_is_lost_while_it_grows_is_told_as_pending_first() -> None:
    events = Events()
    events.of(m.WorkerProgress(PROGRESS, contribution="a", samples=8), Snapshot())
    told = events.of(m.ContributionLost("a", 3, 8, verbatim("left before the round")), Snapshot())
    assert [event["state"] for event in told] == ["pending", "lost"]


def test_what_an_earlier_run_left_pending_is_only_lost() -> None:
    told = Events().of(m.ContributionLost("old", 3, 8, verbatim("left before the round")), Snapshot())
    assert [event["state"] for event in told] == ["lost"]
