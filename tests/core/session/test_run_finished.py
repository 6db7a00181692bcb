"""The end of a run: what is said, and how the session leaves."""

from __future__ import annotations

from dataclasses import replace

from english import in_english
from fakes import make_index, make_joined, make_project
from manifests import raw
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session import phases
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.session.step import step
from skep.core.session.transitions import HANDING_OVER_SECONDS
from skep.core.text import Problem, verbatim
from skep.language.units import THIN

NOW = 1_000_000.0
PROJECT = make_project(manifest=raw(schedule__total_epochs=1200))
UNTITLED = make_project(manifest=raw(homepage=""))
AT_HOME = "The project tells where the result is: https://example.org"


def course(*messages: m.Message, snapshot: Snapshot | None = None, now: float = NOW):
    """The snapshot after the messages, and the effects of the last."""
    after, effects = snapshot or Snapshot(), ()
    for message in messages:
        after, effects = step(after, message, now)
    return after, tuple(each for each in effects if not isinstance(each, e.RecordChange | e.RecordUsage))


def trained(project=PROJECT, *messages: m.Message) -> Snapshot:
    done = m.ContributionPending("c", 1199, 640), m.ContributionConfirmed("c", 1199, 640, 2)
    return course(m.Join(project), m.IndexArrived(make_index(), project), make_joined(), *done, *messages)[0]


def test_the_end_of_a_run_is_said_once_with_the_own_part_and_the_place_of_the_result():
    over, effects = course(m.WorkerFinished(), snapshot=trained())
    said = f"Tiny code model is finished after 1{THIN}200 epochs. "
    said += f"640 samples of this computer were confirmed in this stay. {AT_HOME}"
    assert in_english(over.finished) == said
    assert effects == (e.Notify(Problem(over.finished)),)
    assert (over.phase, over.problem) == (Phase.LEAVING, None)
    assert course(m.WorkerFinished(), snapshot=over) == (over, ())


def test_without_a_homepage_the_publisher_is_named():
    over, _ = course(m.WorkerFinished(), snapshot=trained(UNTITLED))
    assert in_english(over.finished).endswith("Ask the project's publisher for the result: Example Lab.")


def test_the_worker_may_hand_over_the_state_before_it_exits():
    over, _ = course(m.WorkerFinished(), snapshot=trained())
    for seconds in (1, HANDING_OVER_SECONDS - 1):
        waiting, effects = course(m.Tick(), snapshot=over, now=NOW + seconds)
        assert (waiting.phase, effects) == (Phase.LEAVING, ())
    assert in_english(phases.leaving(over.leaving_until, NOW, finished=True)).endswith(f"for 10{THIN}min at most.")
    late, effects = course(m.Tick(), snapshot=waiting, now=NOW + HANDING_OVER_SECONDS)
    assert effects == (e.StopWorker(),)
    assert course(m.Leave(now=True), snapshot=waiting)[1] == (e.StopWorker(),)
    idle, _ = course(m.WorkerExited(0), snapshot=late)
    assert (idle.phase, idle.finished, idle.problem) == (Phase.IDLE, over.finished, None)
    assert course(m.Join(PROJECT), snapshot=idle)[0].finished == Snapshot().finished


def test_a_newcomer_to_a_finished_run_is_told_in_one_sentence_and_leaves_at_once():
    joining, _ = course(m.Join(PROJECT), m.IndexArrived(make_index(), PROJECT))
    over, effects = course(m.WorkerFinished(), snapshot=joining)
    assert in_english(over.finished) == f"Tiny code model is finished after 1{THIN}200 epochs. {AT_HOME}"
    assert effects == (e.Notify(Problem(over.finished)), e.StopWorker())
    assert (over.phase, over.leaving_until) == (Phase.LEAVING, None)


def test_a_worker_that_failed_reports_no_end():
    failed = trained(PROJECT, m.WorkerFailed(Problem(verbatim("Gone.")), retry=True))
    assert course(m.WorkerFinished(), snapshot=failed) == (failed, ())


def test_a_run_that_ends_while_this_computer_waits_for_its_last_round_is_finished():
    leaving, _ = course(m.Leave(), snapshot=trained())
    over, _ = course(m.WorkerFinished(), snapshot=leaving)
    assert over == replace(leaving, finished=over.finished)
    assert over.finished
