"""The end of a run: what is said, and how the session leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from english import in_english
from fakes import make_index, make_joined, make_progress, make_project
from manifests import raw
from skep.core.project.needs import parameters_of
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
LARGE = {"recipe__model__layers": 18, "recipe__model__width": 768, "recipe__model__heads": 12}
"""127 M parameters."""
AT_HOME = "The project tells where the result is: https://example.org"


def course(*messages: m.Message, snapshot: Snapshot | None = None, now: float = NOW):
    """The snapshot after the messages, and the effects of the last."""
    after, effects = snapshot or Snapshot(), ()
    for message in messages:
        after, effects = step(after, message, now)
    return after, tuple(each for each in effects if not isinstance(each, e.RecordChange | e.RecordUsage))


def sent(count: int) -> m.WorkerProgress:
    return m.WorkerProgress(replace(make_progress(), bytes_sent=count))


def trained(project=PROJECT, *messages: m.Message) -> Snapshot:
    done = m.ContributionPending("c", 1199, 640), m.ContributionConfirmed("c", 1199, 640, 2)
    return course(m.Join(project), m.IndexArrived(make_index(), project), make_joined(), *done, *messages)[0]


def test_the_end_of_a_run_is_said_once_with_the_own_part_and_the_place_of_the_result():
    over, effects = course(m.WorkerFinished(), snapshot=trained())
    said = f"Tiny code model is finished after 1{THIN}200 epochs. "
    said += f"640 samples of this computer were confirmed in this stay. {AT_HOME}"
    assert in_english(over.finished) == said
    assert effects == (e.Notify(Problem(over.finished)), e.StopFetching())
    assert (over.phase, over.problem) == (Phase.LEAVING, None)
    assert course(m.WorkerFinished(), snapshot=over) == (over, ())


def test_without_a_homepage_the_publisher_is_named():
    over, _ = course(m.WorkerFinished(), snapshot=trained(UNTITLED))
    assert in_english(over.finished).endswith("Ask the project's publisher for the result: Example Lab.")


def test_the_worker_may_hand_over_the_state_before_it_exits():
    over, _ = course(m.WorkerFinished(), snapshot=trained())
    waiting = over
    for seconds in range(1, int(HANDING_OVER_SECONDS)):
        waiting, effects = course(sent(seconds << 16), m.Tick(), snapshot=waiting, now=NOW + seconds)
        assert (waiting.phase, effects) == (Phase.LEAVING, ())
    assert in_english(phases.leaving(over.leaving_until, NOW, finished=True)).endswith(f"for 10{THIN}min at most.")
    late, effects = course(m.Tick(), snapshot=waiting, now=NOW + HANDING_OVER_SECONDS)
    assert effects == (e.StopWorker(),)
    assert course(m.Leave(now=True), snapshot=waiting)[1] == (e.StopWorker(),)
    idle, _ = course(m.WorkerExited(0), snapshot=late)
    assert (idle.phase, idle.finished, idle.problem) == (Phase.IDLE, over.finished, None)
    assert course(m.Join(PROJECT), snapshot=idle)[0].finished == Snapshot().finished


def test_a_large_state_that_is_being_sent_goes_all_the_way_to_the_host():
    """1.5 GB at 20 Mbit/s, as a volunteer's line has, need 10 minutes for one copy."""
    large = make_project(manifest=raw(schedule__total_epochs=1200, **LARGE))
    handing, effects = course(m.WorkerFinished(), snapshot=trained(large))
    size = 12 * parameters_of(large.manifest)
    assert size > 1e9
    seconds, rate = 0, 20_000_000 / 8
    while seconds * rate < 2 * size:
        seconds += 1
        handing, effects = course(sent(int(seconds * rate)), m.Tick(), snapshot=handing, now=NOW + seconds)
        assert (handing.phase, effects) == (Phase.LEAVING, ()), f"stopped after {seconds} s"
    for rest in range(125):  # nothing more is sent, and the worker does not exit by itself
        handing, effects = course(m.Tick(), snapshot=handing, now=NOW + seconds + rest)
        if effects:
            break
    assert effects == (e.StopWorker(),)
    assert rest > 100


def test_a_limit_on_what_is_sent_lengthens_the_end_of_a_run_and_a_trickle_does_not():
    large = make_project(manifest=raw(schedule__total_epochs=1200, **LARGE))
    plain, limited = trained(large), trained(large, m.ChangeSettings({"network.upload_mbit": 2.5}))
    ends = [course(m.WorkerFinished(), snapshot=each)[0].leaving_until for each in (plain, limited)]
    assert all(each is not None for each in ends)
    assert ends[1] - NOW == pytest.approx(2 * (ends[0] - NOW), rel=0.01)  # a project asks for 5 Mbit/s at least
    handing, seconds = course(m.WorkerFinished(), snapshot=plain)[0], 0
    while handing.leaving_until is not None:
        seconds += 30
        handing, effects = course(sent(seconds << 16), m.Tick(), snapshot=handing, now=NOW + seconds)
    assert seconds == pytest.approx(ends[0] - NOW, abs=30)
    assert effects == (e.StopWorker(),)


def test_a_newcomer_to_a_finished_run_is_told_in_one_sentence_and_hands_over_the_state_before_it_leaves():
    joining, _ = course(m.Join(PROJECT), m.IndexArrived(make_index(), PROJECT))
    over, effects = course(m.WorkerFinished(), snapshot=joining)
    assert in_english(over.finished) == f"Tiny code model is finished after 1{THIN}200 epochs. {AT_HOME}"
    assert effects == (e.Notify(Problem(over.finished)), e.StopFetching())
    assert (over.phase, over.leaving_until) == (Phase.LEAVING, NOW + HANDING_OVER_SECONDS)
    handing = over
    for seconds in range(1, 300):
        handing, effects = course(sent(seconds << 16), m.Tick(), snapshot=handing, now=NOW + seconds)
        assert (handing.phase, effects) == (Phase.LEAVING, ()), f"stopped after {seconds} s"
    assert course(m.WorkerExited(0), snapshot=handing)[0].phase is Phase.IDLE


def test_who_has_left_a_project_before_it_was_joined_does_not_wait_for_the_end_of_its_run():
    leaving, _ = course(m.Join(PROJECT), m.IndexArrived(make_index(), PROJECT), m.Leave())
    over, effects = course(m.WorkerFinished(), snapshot=leaving)
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
