"""The state machine, with a test for each rule of the session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from english import in_english, spoken
from fakes import make_index, make_joined, make_progress, make_project
from skep.core.device import ComputingDevice, PowerCap
from skep.core.policy.allowance import PauseState
from skep.core.policy.conditions import Condition, answered
from skep.core.project.addresses import Reach
from skep.core.record.contributions import MOST_PENDING, Contribution, ContributionState, Evaluation, Tally
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session.phases import Phase, Stage, StageProgress, Wait
from skep.core.session.snapshot import Snapshot
from skep.core.session.step import initial, step
from skep.core.text import Problem, verbatim

NOW = 1_000_000.0
PROJECT, OTHER = make_project(), make_project("other", "Other model")
INDEX = make_index()
FAILED = m.WorkerFailed(Problem(verbatim("The swarm does not answer.")), retry=True)
HOPELESS = m.WorkerFailed(Problem(verbatim("The model is too big.")), retry=False)


LISTED = m.RevocationsArrived("{}")


class Course:
    """A sequence of snapshots; `effects` are those of the last message, without the timeline's entries and the end of
    downloads, of which `test_downloads_end` is.
    """

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self.snapshot = snapshot or Snapshot()
        self.now = NOW
        self.effects: tuple[e.Effect, ...] = ()

    def see(self, *messages: m.Message, after: float = 0.0) -> Course:
        self.now += after
        for message in messages:
            self.snapshot, effects = step(self.snapshot, message, self.now)
            aside = (e.RecordChange, e.RecordUsage, e.StopFetching)
            self.effects = tuple(effect for effect in effects if not isinstance(effect, aside))
        return self

    @property
    def phase(self) -> Phase:
        return self.snapshot.phase


JOINING: Sequence[m.Message] = (m.Join(PROJECT, seeds=("/ip4/1.2.3.4/tcp/1",)), m.IndexArrived(INDEX, PROJECT))


@pytest.fixture
def joining() -> Course:
    return Course().see(*JOINING)


@pytest.fixture
def training() -> Course:
    return Course().see(*JOINING, make_joined())


def growing(id_: str = "c1", samples: int = 16, position: int = 16, epoch: int = 3) -> m.WorkerProgress:
    return m.WorkerProgress(make_progress(epoch), contribution=id_, samples=samples, position=position)


BOTH = (ComputingDevice("cuda:0", "Card"), ComputingDevice("cuda:1", "Card"))


def test_the_devices_shown_are_those_that_compute_now(training: Course):
    training.see(m.WorkerProgress(make_progress(), devices=BOTH))
    assert training.snapshot.devices == BOTH
    training.see(m.WorkerProgress(make_progress()))
    assert training.snapshot.devices == BOTH
    training.see(m.WorkerProgress(make_progress(), devices=BOTH[:1]))
    assert training.snapshot.devices == BOTH[:1]
    assert training.snapshot.device_names == "Card"


# --- joining


def test_join_fetches_the_index_first():
    course = Course().see(m.Join(PROJECT))
    assert course.phase is Phase.JOINING
    assert course.effects == (e.FetchIndex(PROJECT),)


def test_the_index_starts_the_worker_with_what_the_session_knows():
    settings = {"compute.share_away": 0.4, "compute.device": "cpu", "compute.threads": 2, "network.port": 4001}
    settings |= {"compute.nccl_min_channels": 4, "compute.nccl_socket_threads": 2, "compute.nccl_sockets_per_thread": 8}
    settings |= {"network.map_port": True, "network.client_mode": "on", "disk.snapshots_gb_per_day": 1.5}
    course = Course(initial(settings, None, NOW)).see(*JOINING)
    assert course.phase is Phase.JOINING
    assert course.effects == (
        e.StartWorker(
            PROJECT,
            m.WorkerOptions(
                PROJECT.text,
                INDEX,
                ("/ip4/1.2.3.4/tcp/1",),
                share=0.4,
                device="cpu",
                threads=2,
                nccl=(4, 2, 8),
                port=4001,
                map_port=True,
                client_mode="on",
                snapshot_bytes_per_day=1_500_000_000,
            ),
        ),
    )


def test_a_second_index_starts_no_second_worker(joining: Course):
    assert joining.see(m.IndexArrived(INDEX, PROJECT)).effects == ()


def test_the_index_of_a_join_given_up_is_not_taken_for_the_present_one():
    course = Course().see(m.Join(PROJECT), m.Leave(), m.Join(OTHER))
    assert course.see(m.IndexArrived(INDEX, PROJECT)).effects == ()
    assert course.see(m.IndexFailed(Problem(verbatim("Gone.")), PROJECT)).phase is Phase.JOINING


def test_without_an_index_the_session_is_idle_again_with_the_problem():
    problem = Problem(verbatim("The shard server does not answer."))
    course = Course().see(m.Join(PROJECT), m.IndexFailed(problem, PROJECT))
    assert (course.phase, course.snapshot.problem, course.snapshot.project) == (Phase.IDLE, problem, None)
    assert course.effects == (e.Notify(problem),)


def test_stages_are_shown_while_joining(joining: Course):
    joining.see(m.WorkerStage(Stage.PEERS, 0.5, verbatim("1 of 2")))
    assert spoken(joining.snapshot.stage) == spoken(StageProgress(Stage.PEERS, 0.5, verbatim("1 of 2")))
    joining.see(make_joined())
    assert (joining.phase, joining.snapshot.stage) == (Phase.TRAINING, None)
    assert (joining.snapshot.peer_id, joining.snapshot.device) == ("QmPeer", "CPU")


def test_joining_while_in_a_project_changes_nothing_and_says_so(training: Course):
    before = training.snapshot
    training.see(m.Join(OTHER))
    assert training.snapshot == before
    assert spoken(training.effects) == spoken(
        (
            e.Notify(
                Problem(
                    verbatim("You are in Tiny model already."),
                    verbatim("Leave it first: skep trains one project at a time."),
                )
            ),
        )
    )


def test_what_was_seen_of_the_computer_outlasts_a_join():
    before = Course().see(m.ConditionsSeen({Condition.INPUT: answered(4.0)}))
    assert before.snapshot.conditions[Condition.INPUT] == answered(4.0)
    assert before.see(*JOINING).snapshot.conditions[Condition.INPUT] == answered(4.0)


def test_what_came_of_the_power_cap_is_on_show_and_outlasts_a_join():
    cap = PowerCap(watts=200.0, lowest=100.0, highest=350.0)
    course = Course().see(m.PowerCapSeen({"cuda:0": cap}), *JOINING)
    assert course.snapshot.power_caps == {"cuda:0": cap}
    assert in_english(course.snapshot.allowance.reason) == "Limited to 200 W."
    course.see(m.PowerCapSeen({}))
    assert (course.snapshot.power_caps, course.snapshot.allowance.rule) == ({}, "away")


def test_a_reading_that_cannot_be_counts_as_silence_and_somebody_may_be_there(training: Course):
    training.see(m.ConditionsSeen({Condition.INPUT: answered(-5.0)}))
    assert training.snapshot.conditions[Condition.INPUT].value is None
    assert (training.snapshot.allowance.share, training.snapshot.allowance.present) == (0.2, True)
    assert training.effects == (e.SetAllowance(training.snapshot.allowance),)


def test_joining_while_leaving_says_to_wait(training: Course):
    training.see(m.Leave(), m.Join(OTHER))
    assert spoken(training.effects) == spoken(
        (e.Notify(Problem(verbatim("skep is still leaving Tiny model."), verbatim("Join again in a moment."))),)
    )


def test_a_new_join_counts_from_zero_and_forgets_the_old_problem(training: Course):
    training.see(m.ContributionConfirmed("c1", 3, 16, peers=2), HOPELESS, m.WorkerExited(1))
    assert training.snapshot.totals.confirmed == Tally(1, 16)
    training.see(m.Join(OTHER))
    assert training.snapshot.totals.confirmed == Tally()
    assert training.snapshot.problem is None


# --- leaving


def test_leaving_before_the_worker_started_is_immediate():
    course = Course().see(m.Join(PROJECT), m.Leave())
    assert (course.phase, course.effects) == (Phase.IDLE, ())


STAGES: dict[str, Sequence[m.Message]] = {
    "joining": (),
    "training": (make_joined(),),
    "paused": (make_joined(), m.Pause()),
}


@pytest.mark.parametrize("stage", STAGES)
def test_leaving_at_once_stops_the_worker_and_waits_for_its_exit(stage: str):
    course = Course().see(*JOINING, *STAGES[stage], m.Leave(now=True))
    assert (course.phase, course.effects) == (Phase.LEAVING, (e.StopWorker(),))
    assert course.snapshot.leaving_until is None
    assert course.see(m.Leave(now=True)).effects == ()
    assert course.see(m.Leave()).effects == ()
    assert course.see(m.Tick(), after=100).effects == ()
    course.see(m.WorkerExited(0))
    assert (course.phase, course.snapshot.project) == (Phase.IDLE, None)
    assert spoken(course.effects) == spoken((e.LosePending("tiny", verbatim("left before the round")),))


@pytest.mark.parametrize("stage", ["training", "paused"])
def test_leaving_lets_the_worker_finish_a_round_that_nobody_can_date_for_a_minute(stage: str):
    course = Course().see(*JOINING, *STAGES[stage], m.Leave())
    assert (course.phase, course.effects) == (Phase.LEAVING, (e.TellWorker(m.FinishTraining()),))
    assert course.snapshot.leaving_until == NOW + 60
    assert course.see(m.Leave(), after=30).effects == ()  # a second request neither shortens nor extends the wait
    assert course.see(m.Tick(), after=29.9).effects == ()
    assert course.see(m.Tick(), after=0.2).effects == (e.StopWorker(),)
    assert (course.phase, course.snapshot.leaving_until) == (Phase.LEAVING, None)
    assert course.see(m.Tick(), after=1).effects == ()


@pytest.mark.parametrize(("expected", "wait"), [(None, 60), (0.0, 60), (25.0, 60), (900.0, 1800), (1e9, 3600)])
def test_leaving_waits_as_long_as_the_epoch_takes(training: Course, expected: float | None, wait: float):
    progress = replace(make_progress(), seconds_left=expected)
    training.see(m.WorkerProgress(progress, "c1", 16, 16), m.Leave())
    assert training.snapshot.leaving_until == NOW + wait
    assert training.see(m.Tick(), after=wait - 0.1).effects == ()
    assert training.see(m.Tick(), after=0.2).effects == (e.StopWorker(),)


def test_a_round_that_comes_while_leaving_confirms_and_then_it_is_idle(training: Course):
    training.see(growing(), m.Leave(), m.ContributionPending("c1", 3, 16), m.ContributionConfirmed("c1", 3, 16, 2))
    training.see(m.WorkerExited(0))
    assert (training.phase, training.snapshot.leaving_until) == (Phase.IDLE, None)
    assert training.snapshot.totals.confirmed == Tally(1, 16)
    assert training.snapshot.totals.lost == Tally()


@pytest.mark.parametrize("hurry", [m.Quit(), m.Leave(now=True)])
def test_whoever_insists_does_not_wait_for_the_round(training: Course, hurry: m.Command):
    training.see(m.Leave(), hurry)
    assert training.effects == (e.StopWorker(),)
    assert (training.phase, training.snapshot.leaving_until) == (Phase.LEAVING, None)


def test_a_clock_put_back_does_not_prolong_the_wait(training: Course):
    assert training.see(m.Leave()).see(m.Tick(), after=-3600).effects == (e.StopWorker(),)


def test_leaving_while_joining_has_no_round_to_wait_for(joining: Course):
    assert joining.see(m.Leave()).effects == (e.StopWorker(),)
    assert joining.snapshot.leaving_until is None


def test_leaving_while_recovering_is_immediate(training: Course):
    training.see(m.WorkerExited(1), m.Leave())
    assert (training.phase, training.effects, training.snapshot.restart_at) == (Phase.IDLE, (), None)


def test_leaving_when_idle_does_nothing():
    course = Course().see(m.Leave())
    assert (course.snapshot, course.effects) == (Snapshot(), ())


def test_quitting_when_idle_ends_the_engine_once():
    course = Course().see(m.Quit())
    assert course.effects == (e.EndEngine(),)
    assert course.see(m.Quit()).effects == ()


def test_quitting_ends_the_engine_only_after_the_worker_is_gone(training: Course):
    assert training.see(m.Quit()).effects == (e.StopWorker(),)
    assert training.see(m.Tick(), m.Leave()).effects == ()
    training.see(m.WorkerExited(0))
    assert spoken(training.effects) == spoken((e.LosePending("tiny", verbatim("left before the round")), e.EndEngine()))


def test_quitting_while_leaving_ends_the_engine_with_the_worker(training: Course):
    assert training.see(m.Leave(now=True), m.Quit()).effects == ()
    assert training.see(m.WorkerExited(0)).effects[-1] == e.EndEngine()


def test_quitting_before_the_worker_started_ends_the_engine_at_once():
    assert Course().see(m.Join(PROJECT), m.Quit()).effects == (e.EndEngine(),)


def test_nothing_is_joined_any_more_after_quit():
    assert Course().see(m.Quit(), m.Join(PROJECT)).phase is Phase.IDLE


# --- pausing


def test_a_pause_takes_the_share_to_zero_and_is_remembered(training: Course):
    training.see(m.Pause())
    assert training.phase is Phase.PAUSED
    assert in_english(training.snapshot.allowance.reason) == "Paused until you resume."
    assert training.effects == (e.SavePause(paused=True), e.SetAllowance(training.snapshot.allowance))


def test_resume_gives_the_share_back(training: Course):
    training.see(m.Pause(), m.Resume())
    assert (training.phase, training.snapshot.allowance.share) == (Phase.TRAINING, 1.0)
    assert training.effects == (e.SavePause(paused=False), e.SetAllowance(training.snapshot.allowance))


def test_a_pause_with_an_end_ends_by_itself(training: Course):
    training.see(m.Pause(until=NOW + 60))
    assert training.snapshot.allowance.until == NOW + 60
    assert training.see(m.Tick(), after=59).phase is Phase.PAUSED
    training.see(m.Tick(), after=1)
    assert (training.phase, training.snapshot.pause) == (Phase.TRAINING, None)
    assert training.effects == (e.SavePause(paused=False), e.SetAllowance(training.snapshot.allowance))


def test_a_pause_until_a_moment_gone_by_is_none(training: Course):
    training.see(m.Pause(until=NOW - 1))
    assert (training.phase, training.snapshot.pause) == (Phase.TRAINING, None)


def test_a_worker_started_in_a_pause_starts_at_zero_and_joins_paused():
    course = Course().see(m.Pause(), *JOINING)
    assert isinstance(course.effects[0], e.StartWorker)
    assert course.effects[0].options.share == 0.0
    assert course.see(make_joined()).phase is Phase.PAUSED


def test_a_pause_kept_from_last_time_holds_from_the_first_moment():
    kept = initial({}, PauseState(NOW + 60), NOW)
    assert kept.allowance.share == 0.0
    assert Course(kept).see(m.Tick(), after=60).snapshot.allowance.share == 1.0


def test_a_pause_lasts_through_leaving_and_joining(training: Course):
    training.see(m.Pause(), m.Leave(), m.WorkerExited(0), m.Join(OTHER))
    assert training.snapshot.pause == PauseState(None)
    assert training.snapshot.allowance.share == 0.0


# --- settings


def test_a_changed_share_reaches_the_worker(training: Course):
    values: dict[str, bool | int | float | str] = {"compute.share_away": 0.3}
    training.see(m.ChangeSettings(values))
    assert training.snapshot.settings["compute.share_away"] == 0.3
    assert training.effects == (e.SaveSettings(values), e.SetAllowance(training.snapshot.allowance))
    assert training.snapshot.allowance.share == 0.3


def test_another_setting_is_only_saved(training: Course):
    training.see(m.ChangeSettings({"disk.cache_gb": 5.0}))
    assert training.effects == (e.SaveSettings({"disk.cache_gb": 5.0}),)


def test_a_share_changed_in_a_pause_waits_for_its_end(training: Course):
    training.see(m.Pause(), m.ChangeSettings({"compute.share_away": 0.3}))
    assert training.snapshot.allowance.share == 0.0
    assert training.see(m.Resume()).snapshot.allowance.share == 0.3


# --- progress and contributions


def test_progress_saves_the_growing_contribution_and_once_an_epoch_the_position(training: Course):
    training.see(growing(samples=16, position=40))
    pending = Contribution("c1", 3, 16, ContributionState.PENDING)
    assert training.effects == (e.SavePosition("tiny", 40), e.Record("tiny", pending))
    assert training.snapshot.totals.pending == Tally(1, 16)
    assert training.see(growing(samples=16, position=40)).effects == ()
    training.see(growing(samples=24, position=48))
    assert training.snapshot.totals.pending == Tally(1, 24)
    assert e.SavePosition("tiny", 48) not in training.effects
    training.see(growing("c2", epoch=4, samples=8, position=56))
    assert e.SavePosition("tiny", 56) in training.effects


@pytest.mark.parametrize("code", [0, 1])
def test_the_last_position_is_saved_when_the_worker_is_gone(training: Course, code: int):
    training.see(growing(position=40), growing(position=48), m.WorkerExited(code))
    assert e.SavePosition("tiny", 48) in training.effects


def test_a_worker_gone_before_its_first_word_saves_no_position(joining: Course):
    joining.see(m.WorkerExited(1))
    assert not any(isinstance(effect, e.SavePosition) for effect in joining.effects)


def test_progress_without_a_contribution_records_none(training: Course):
    training.see(m.WorkerProgress(make_progress(), position=0))
    assert not any(isinstance(effect, e.Record) for effect in training.effects)
    assert training.snapshot.progress == make_progress()


def test_a_contribution_is_counted_once_in_its_last_state(training: Course):
    training.see(growing(), m.ContributionPending("c1", 3, 20))
    assert training.snapshot.totals.pending == Tally(1, 20)
    training.see(m.ContributionConfirmed("c1", 3, 20, peers=2))
    confirmed = Contribution("c1", 3, 20, ContributionState.CONFIRMED, peers=2, swarm=512)
    assert training.effects == (e.Record("tiny", confirmed),)
    for late in (
        m.ContributionLost("c1", 3, 20, verbatim("late")),
        growing(position=16),
        m.ContributionPending("c1", 3, 20),
    ):
        assert training.see(late).effects == ()
    totals = training.snapshot.totals
    assert (totals.pending, totals.confirmed, totals.lost) == (Tally(), Tally(1, 20), Tally())


def test_two_contributions_may_be_pending_at_a_time(training: Course):
    training.see(
        m.ContributionPending("c1", 3, 20), growing("c2", 8), m.ContributionLost("c1", 3, 20, verbatim("no other peer"))
    )
    totals = training.snapshot.totals
    assert (totals.pending, totals.lost) == (Tally(1, 8), Tally(1, 20))
    assert spoken(training.effects) == spoken(
        (e.Record("tiny", Contribution("c1", 3, 20, ContributionState.LOST, verbatim("no other peer"))),)
    )


def test_a_worker_that_invents_contributions_fills_nothing(training: Course):
    training.see(*(m.ContributionPending(f"c{number}", 3, 1) for number in range(MOST_PENDING)))
    assert training.see(m.ContributionPending("one more", 3, 1)).effects == ()
    assert training.see(m.ContributionPending("c0", 3, 2)).effects != ()
    assert training.snapshot.totals.pending == Tally(MOST_PENDING, MOST_PENDING + 1)
    training.see(m.ContributionConfirmed("c0", 3, 2, peers=1))
    assert training.see(m.ContributionPending("one more", 3, 1)).effects != ()


def test_what_was_pending_at_the_exit_is_lost_when_idle(training: Course):
    training.see(growing(), m.Leave(), m.WorkerExited(0))
    training.see(m.ContributionLost("c1", 3, 16, verbatim("left before the round")))
    assert spoken(training.effects) == spoken(
        (e.Record("tiny", Contribution("c1", 3, 16, ContributionState.LOST, verbatim("left before the round"))),)
    )
    assert (training.snapshot.totals.pending, training.snapshot.totals.lost) == (Tally(), Tally(1, 16))


def test_evaluations_are_kept_and_saved(training: Course):
    first, last = Evaluation(3, 5.0), Evaluation(4, 4.0)
    training.see(m.WorkerEvaluated(first), m.WorkerEvaluated(last))
    assert training.snapshot.evaluations == (first, last)
    assert training.effects == (e.SaveEvaluation("tiny", last),)


def test_months_of_evaluations_keep_the_first_and_the_latest(training: Course):
    for epoch in range(1000):
        training.see(m.WorkerEvaluated(Evaluation(epoch, 1.0)))
    shown = training.snapshot.evaluations
    assert len(shown) == 512
    assert (shown[0].epoch, shown[1].epoch, shown[-1].epoch) == (0, 489, 999)


def test_months_of_contributions_take_no_memory(training: Course):
    for number in range(1000):
        training.see(m.ContributionConfirmed(f"c{number}", number, 1, peers=1))
    assert training.snapshot.totals.confirmed == Tally(1000, 1000)
    assert len(training.snapshot.account.settled) == 256


# --- shards


def test_a_shard_of_the_index_is_fetched_and_handed_over(training: Course):
    shard = INDEX.held_out[0]
    assert training.see(m.ShardWanted(shard.sha256)).effects == (e.FetchShard(shard, Reach.ANY),)
    arrived = m.ShardArrived(shard.sha256, "/shards/f")
    assert training.see(arrived).effects == (e.TellWorker(arrived),)
    assert training.see(arrived).effects == ()


def test_a_shard_of_a_project_from_the_internet_is_fetched_from_the_internet_only():
    public = replace(PROJECT, source="https://example.org/tiny.json")
    course = Course().see(m.Join(public), m.IndexArrived(INDEX, public), make_joined())
    shard = INDEX.shards[0]
    assert course.see(m.ShardWanted(shard.sha256)).effects == (e.FetchShard(shard, Reach.GLOBAL),)


def test_a_shard_that_cannot_be_had_is_told(joining: Course):
    failed = m.ShardFailed(INDEX.shards[0].sha256, Problem(verbatim("The disk is full.")))
    assert joining.see(m.ShardWanted(INDEX.shards[0].sha256), failed).effects == (e.TellWorker(failed),)


def test_a_shard_outside_the_index_is_refused(training: Course):
    training.see(m.ShardWanted("0" * 64))
    (effect,) = training.effects
    assert isinstance(effect, e.TellWorker)
    assert isinstance(effect.message, m.ShardFailed)


def test_a_shard_asked_for_by_an_earlier_worker_is_not_handed_to_the_next(training: Course):
    sha256 = INDEX.shards[0].sha256
    training.see(m.ShardWanted(sha256), m.WorkerExited(1)).see(m.Tick(), after=2)
    assert training.see(m.ShardArrived(sha256, "/shards/1")).effects == ()


def test_no_shard_is_fetched_while_leaving(training: Course):
    assert training.see(m.Leave(), m.ShardWanted(INDEX.shards[0].sha256)).effects == ()


# --- failures


def test_a_first_join_that_fails_ends_idle_with_the_problem(joining: Course):
    joining.see(FAILED)
    assert joining.effects == (e.Notify(FAILED.problem), e.StopWorker())
    joining.see(m.WorkerExited(1))
    assert (joining.phase, joining.snapshot.problem) == (Phase.IDLE, FAILED.problem)
    assert spoken(joining.effects) == spoken((e.LosePending("tiny", verbatim("the worker stopped before the round")),))


def test_a_stage_that_is_told_after_joining_changes_nothing(training: Course):
    before = training.snapshot
    assert training.see(m.WorkerStage(Stage.PEERS, 0.5)).snapshot == before
    leaving = training.see(m.Leave(now=True)).snapshot
    assert training.see(m.WorkerStage(Stage.STATE, 0.5)).snapshot == leaving


def test_a_worker_that_fell_behind_shows_how_far_the_state_is_until_it_is_loaded(training: Course):
    detail = verbatim("4 of 8 MB")
    training.see(m.WorkerStage(Stage.STATE, 0.5, detail), m.WorkerProgress(make_progress(), waits_for=Wait.SWARM))
    assert training.phase is Phase.TRAINING
    assert training.snapshot.stage == StageProgress(Stage.STATE, 0.5, detail)
    training.see(m.WorkerProgress(make_progress()))
    assert training.snapshot.stage is None


def test_a_crash_while_joining_first_has_a_sentence_of_its_own(joining: Course):
    joining.see(m.WorkerExited(1))
    assert joining.phase is Phase.IDLE
    assert joining.snapshot.problem is not None
    assert in_english(joining.snapshot.problem.title) == "The training process ended unexpectedly."
    assert e.Notify(joining.snapshot.problem) in joining.effects


def test_a_worker_killed_from_outside_hints_at_memory(training: Course):
    training.see(m.WorkerExited(-9))
    assert training.snapshot.problem is not None
    assert "memory" in in_english(training.snapshot.problem.hint)


def test_a_crash_while_training_recovers_after_a_wait(training: Course):
    training.see(m.WorkerExited(-11))
    assert (training.phase, training.snapshot.restart_at) == (Phase.RECOVERING, NOW + 1)
    assert spoken(training.effects[0]) == spoken(e.LosePending("tiny", verbatim("the worker stopped before the round")))
    assert training.see(m.Tick(), after=0.9).effects == ()
    training.see(m.Tick(), after=0.2)
    assert (training.phase, training.snapshot.restart_at) == (Phase.JOINING, None)
    assert [type(effect) for effect in training.effects] == [e.StartWorker]


def fail_again_and_again(course: Course, times: int, chance: float = 1.0) -> list[float]:
    """Seconds from each of `times` failures to the next start."""
    waits = []
    for _ in range(times):
        course.see(m.WorkerExited(1, chance))
        assert course.snapshot.restart_at is not None
        waits.append(course.snapshot.restart_at - course.now)
        course.see(m.Tick(), after=waits[-1])
        assert course.phase is Phase.JOINING
    return waits


def test_the_waits_double(training: Course):
    assert fail_again_and_again(training, 9) == [1, 2, 4, 8, 16, 32, 64, 128, 256]


@pytest.mark.parametrize(("chance", "waits"), [(0.0, [0.5, 1, 2]), (0.5, [0.75, 1.5, 3])])
def test_chance_shortens_a_wait_to_half_at_most(training: Course, chance: float, waits: list[float]):
    assert fail_again_and_again(training, 3, chance) == waits


CONFIRMED = m.ContributionConfirmed("c1", 3, 16, 2)


def test_only_a_confirmed_contribution_ends_a_row_of_failures(training: Course):
    fail_again_and_again(training, 3)
    training.see(make_joined(), m.WorkerProgress(make_progress(9)), after=3600)
    assert training.snapshot.failures == 3
    training.see(growing(), m.ContributionPending("c1", 3, 16), CONFIRMED)
    assert training.snapshot.failures == 0
    assert fail_again_and_again(training, 3) == [1, 1, 2]


def test_after_ten_failures_in_a_row_the_project_is_paused_and_says_why(training: Course):
    fail_again_and_again(training, 9)
    training.see(FAILED, m.WorkerExited(1))
    assert (training.phase, training.snapshot.worker, training.snapshot.on_a_break) == (Phase.PAUSED, None, True)
    problem = training.snapshot.problem
    assert problem is not None
    assert in_english(problem.title) == (
        "The project is paused: the training process failed 10 times in a row without a confirmed contribution."
    )
    assert in_english(problem.hint).startswith("The swarm does not answer. skep tries again in 30")
    assert e.Notify(problem) in training.effects
    training.see(m.Tick(), after=1799)
    assert training.phase is Phase.PAUSED


def on_a_break(training: Course) -> Course:
    fail_again_and_again(training, 9)
    return training.see(m.WorkerExited(1))


def test_a_break_ends_by_itself_and_one_more_failure_begins_the_next(training: Course):
    on_a_break(training).see(m.Tick(), after=1800)
    assert training.phase is Phase.JOINING
    training.see(m.WorkerExited(1))
    assert (training.phase, training.snapshot.failures) == (Phase.PAUSED, 11)


def test_the_user_ends_a_break_at_once(training: Course):
    assert on_a_break(training).see(m.Resume(), after=10).phase is Phase.JOINING


def test_a_project_on_a_break_can_be_left(training: Course):
    assert on_a_break(training).see(m.Leave()).phase is Phase.IDLE


def test_a_clock_put_back_does_not_lengthen_a_break(training: Course):
    assert on_a_break(training).see(m.Tick(), after=-3600).phase is Phase.JOINING


def test_resume_does_not_shorten_the_wait_of_a_swarm_that_cannot_be_reached(training: Course):
    assert training.see(m.WorkerExited(1), m.Resume()).phase is Phase.RECOVERING


def test_a_clock_put_back_does_not_lengthen_the_wait(training: Course):
    training.see(m.WorkerExited(1))
    assert training.see(m.Tick(), after=-3600).phase is Phase.JOINING


def test_a_failure_while_joining_again_is_retried_too(training: Course):
    training.see(m.WorkerExited(1)).see(m.Tick(), after=2).see(FAILED, m.WorkerExited(1))
    assert (training.phase, training.snapshot.failures) == (Phase.RECOVERING, 2)


def test_joining_again_clears_the_problem(training: Course):
    training.see(m.WorkerExited(1)).see(m.Tick(), after=2).see(make_joined())
    assert (training.phase, training.snapshot.problem) == (Phase.TRAINING, None)


def test_a_failure_no_retry_mends_leaves_for_good(training: Course):
    training.see(HOPELESS)
    assert (training.phase, training.effects) == (Phase.LEAVING, (e.Notify(HOPELESS.problem), e.StopWorker()))
    training.see(m.WorkerExited(1))
    assert (training.phase, training.snapshot.problem) == (Phase.IDLE, HOPELESS.problem)
    assert spoken(training.effects) == spoken((e.LosePending("tiny", verbatim("the worker stopped before the round")),))


def test_a_failure_while_leaving_is_no_problem_any_more(training: Course):
    training.see(m.Leave(now=True), FAILED)
    assert (training.effects, training.snapshot.problem) == ((), None)
    assert spoken(training.see(m.WorkerExited(1)).effects) == spoken(
        (e.LosePending("tiny", verbatim("left before the round")),)
    )


def test_a_worker_that_fails_in_its_last_round_is_not_waited_for(training: Course):
    training.see(m.Leave(), FAILED)
    assert (training.effects, training.snapshot.problem) == ((e.StopWorker(),), None)
    assert training.snapshot.leaving_until is None


def test_a_worker_that_has_failed_is_not_asked_to_finish(training: Course):
    assert training.see(FAILED, m.Leave()).effects == (e.StopWorker(),)


@pytest.mark.parametrize("kind", [m.ProblemArose, m.WorkerNoticed])
def test_a_problem_is_told_once(training: Course, kind: type[m.ProblemArose | m.WorkerNoticed]):
    full = kind(Problem(verbatim("The disk is full.")))
    assert training.see(full).effects == (e.Notify(full.problem),)
    assert training.see(full).effects == ()
    assert training.phase is Phase.TRAINING


def test_a_noticed_problem_that_is_over_is_told_and_shown_no_more(training: Course):
    off, right = Problem(verbatim("The clock is wrong.")), Problem(verbatim("The clock is right again."))
    over = training.see(m.WorkerNoticed(off)).see(m.WorkerNoticed(right, over=off))
    assert over.effects == (e.Notify(right),)
    assert over.snapshot.problem is None


def test_the_end_of_one_problem_does_not_hide_another(training: Course):
    off, full = Problem(verbatim("The clock is wrong.")), Problem(verbatim("The disk is full."))
    training.see(m.WorkerNoticed(off), m.ProblemArose(full), m.WorkerNoticed(Problem(verbatim("Right.")), over=off))
    assert training.snapshot.problem == full


# --- late and unexpected messages


STALE = (
    m.WorkerStage(Stage.PEERS, 1.0),
    make_joined(),
    growing(),
    m.WorkerEvaluated(Evaluation(1, 1.0)),
    m.WorkerPaused(0.0, 0.1),
    m.ContributionPending("c1", 1, 1),
    m.ContributionConfirmed("c1", 1, 1, 1),
    m.ContributionLost("c1", 1, 1, verbatim("late")),
    m.ShardWanted(INDEX.shards[0].sha256),
    m.ShardArrived(INDEX.shards[0].sha256, "/x"),
    m.ShardFailed(INDEX.shards[0].sha256, Problem(verbatim("x"))),
    m.ShardProgress(INDEX.shards[0].sha256, 1, 2),
    FAILED,
    m.WorkerExited(0),
    m.IndexArrived(INDEX, PROJECT),
    m.IndexFailed(Problem(verbatim("x")), PROJECT),
)


@pytest.mark.parametrize("message", STALE, ids=lambda message: type(message).__name__)
def test_what_an_earlier_worker_says_is_ignored_when_idle(message: m.Message):
    course = Course().see(message)
    assert (course.snapshot, course.effects) == (Snapshot(), ())


def test_reports_before_joining_are_no_progress(joining: Course):
    assert joining.see(growing()).effects == ()
    assert joining.snapshot.progress is None


def test_a_step_leaves_the_snapshot_it_was_given_alone(training: Course):
    before = training.snapshot
    copy = replace(before, settings=dict(before.settings))
    training.see(m.ChangeSettings({"compute.share_away": 0.1}), m.Pause())
    assert before == copy


def test_revoked_invitations_are_told_to_a_worker_that_runs(joining: Course):
    assert joining.see(LISTED).effects == (e.TellWorker(LISTED),)
    assert Course().see(LISTED).effects == ()


def test_another_limit_on_traffic_is_told_to_a_worker_that_runs(joining: Course):
    settings = m.ChangeSettings({"network.upload_mbit": 80.0})
    assert joining.see(settings).effects == (
        e.SaveSettings(settings.values),
        e.TellWorker(m.SetTraffic(10_000_000.0, 0.0)),
    )
    assert Course().see(settings).effects == (e.SaveSettings(settings.values),)
    assert joining.see(m.ChangeSettings({"app.theme": "dark"})).effects == (e.SaveSettings({"app.theme": "dark"}),)


def test_a_limit_with_which_rounds_fail_is_said(joining: Course):
    joining.see(m.ChangeSettings({"network.upload_mbit": 1.0, "network.download_mbit": 100.0}))
    (notified,) = [each for each in joining.effects if isinstance(each, e.Notify)]
    assert in_english(notified.problem.title).startswith(
        "With network.upload_mbit at 1 Mbit/s, rounds are likely to fail"
    )


def test_the_worker_starts_with_the_limits_on_traffic():
    course = Course().see(m.ChangeSettings({"network.upload_mbit": 80.0, "network.download_mbit": 160.0}), *JOINING)
    (started,) = [each for each in course.effects if isinstance(each, e.StartWorker)]
    assert (started.options.upload, started.options.download) == (10_000_000.0, 20_000_000.0)
