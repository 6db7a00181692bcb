"""When the worker counts as stuck, and what is said while nothing is trained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from english import in_english
from fakes import make_index, make_joined, make_progress, make_project
from manifests import raw
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session.phases import Phase, Stage, Wait
from skep.core.session.snapshot import Snapshot
from skep.core.session.step import step

PROJECT, INDEX = make_project(), make_index()
SYNC = PROJECT.manifest.sync
ROUNDS = 3 * (SYNC.matchmaking_seconds + SYNC.averaging_timeout_seconds)
"""Seconds that the rounds of one epoch may take."""
FULL = SYNC.target_batch_size


class Stay:
    """A stay in a project, with a worker that reports each second; its training thread does what the test says."""

    def __init__(self) -> None:
        self.snapshot, self.now = Snapshot(), 1_000_000.0
        self.progress = replace(make_progress(), samples_accumulated=0, target_batch_size=FULL, compute_seconds=0.0)
        self.waits_for = Wait.NOTHING
        self.ended_at: float | None = None
        """Seconds since the last call of `reports` or `silence` when the worker was ended."""

    def see(self, *messages: m.Message) -> Stay:
        for message in messages:
            self.snapshot, effects = step(self.snapshot, message, self.now)
            if e.EndStuckWorker() in effects and self.ended_at is None:
                self.ended_at = self.now - self.begun
        return self

    begun = 1_000_000.0

    def silence(self, seconds: float) -> Stay:
        self.begun = self.now
        for _ in range(round(seconds)):
            self.now += 1.0
            self.see(m.Tick())
        return self

    def reports(self, seconds: float, *, every: float = 0.0, rate: float = 0.0, received: int = 0) -> Stay:
        """Reports for `seconds`; a micro-batch ends after `every` seconds, if any; `received` bytes arrive in each."""
        self.begun, since = self.now, 0.0
        for _ in range(round(seconds)):
            self.now, since = self.now + 1.0, since + 1.0
            computed = self.progress.compute_seconds
            if every and since >= every:
                computed, since = computed + every, 0.0
            self.progress = replace(
                self.progress,
                compute_seconds=computed,
                samples_per_second=rate,
                bytes_received=self.progress.bytes_received + received,
            )
            self.see(m.WorkerProgress(self.progress, waits_for=self.waits_for), m.Tick())
        return self

    @property
    def title(self) -> str:
        assert self.snapshot.problem is not None
        return str(in_english(self.snapshot.problem.title))


@pytest.fixture
def stay() -> Stay:
    return Stay().see(m.Join(PROJECT), m.IndexArrived(INDEX, PROJECT))


@pytest.fixture
def training(stay: Stay) -> Stay:
    """With a few micro-batches of a second, so that the usual time of one is known."""
    return stay.see(make_joined()).reports(30, every=1)


# --- a worker that trains


def test_a_worker_that_computes_is_left_alone(training: Stay):
    training.reports(60 + 2 * ROUNDS, every=1)
    assert training.ended_at is None


def test_a_worker_that_reports_and_does_nothing_is_ended_when_no_round_can_last_so_long(training: Stay):
    training.reports(60 + ROUNDS)
    assert training.ended_at is None
    training.reports(2)
    assert training.ended_at is not None
    assert training.snapshot.phase is Phase.TRAINING
    assert training.title.startswith("Training made no progress for")
    training.see(m.WorkerExited(-9))
    assert training.snapshot.phase is Phase.RECOVERING


def test_the_figures_of_a_worker_end_with_it(training: Stay):
    assert training.snapshot.progress is not None
    training.see(m.WorkerExited(-9))
    assert training.snapshot.phase is Phase.RECOVERING
    assert training.snapshot.progress is None


def test_a_stuck_worker_is_ended_once(training: Stay):
    training.reports(60 + ROUNDS + 2).ended_at = None
    assert training.reports(100 + ROUNDS).ended_at is None


def test_a_worker_that_says_nothing_is_ended_after_a_minute(training: Stay):
    training.silence(80)
    assert training.ended_at == 61
    assert training.title.startswith("The training process did not answer")


def test_a_paused_worker_that_says_nothing_is_ended_too(training: Stay):
    training.see(m.Pause()).silence(80)
    assert training.ended_at == 61


def test_a_paused_worker_need_not_compute(training: Stay):
    assert training.see(m.Pause()).reports(100 + ROUNDS).ended_at is None
    assert training.see(m.Resume()).reports(50 + ROUNDS).ended_at is None


def test_long_micro_batches_are_no_failure(training: Stay):
    training.reports(660, every=55).reports(540 + ROUNDS)
    assert training.ended_at is None


def test_the_first_micro_batch_may_take_ten_minutes(stay: Stay):
    stay.see(make_joined()).reports(600)
    assert stay.ended_at is None


def test_a_state_that_arrives_slowly_is_no_failure(training: Stay):
    training.reports(100 + 2 * ROUNDS, received=20_000)
    assert training.ended_at is None


def test_requests_of_other_peers_are_no_progress(training: Stay):
    training.reports(120 + ROUNDS, received=500)
    assert training.ended_at is not None


def test_computing_after_the_end_of_an_epoch_is_no_progress(training: Stay):
    training.progress = replace(training.progress, samples_accumulated=FULL)
    training.reports(70 + ROUNDS, every=1)
    assert training.ended_at is not None


def test_the_next_epoch_is_progress(training: Stay):
    training.progress = replace(training.progress, samples_accumulated=FULL)
    training.reports(50 + ROUNDS, every=1)
    training.progress = replace(training.progress, epoch=4)
    training.reports(50 + ROUNDS, every=1)
    assert training.ended_at is None


PATIENT = make_project(manifest=raw(sync__averaging_timeout_seconds=900))


@pytest.mark.parametrize(
    ("rounds", "took", "each"),
    [(2, 5, 900 + SYNC.matchmaking_seconds), (3, 5, 60), (3, 20, 200), (3, 600, 900 + SYNC.matchmaking_seconds)],
)
def test_a_round_may_take_ten_times_as_long_as_usual_and_no_longer_than_the_manifest_allows(
    rounds: int, took: int, each: float
):
    training = Stay().see(m.Join(PATIENT), m.IndexArrived(INDEX, PATIENT), make_joined()).reports(30, every=1)
    for _ in range(rounds):
        training.progress = replace(training.progress, samples_accumulated=FULL)
        training.reports(took - 1, every=1)
        training.progress = replace(training.progress, samples_accumulated=0, epoch=training.progress.epoch + 1)
        training.reports(30, every=1)
    training.progress = replace(training.progress, samples_accumulated=FULL)
    assert training.reports(60 + 3 * each, every=1).ended_at is None
    assert training.reports(2, every=1).ended_at is not None


@pytest.mark.parametrize("reason", [Wait.DATA, Wait.MEMORY])
def test_a_wait_that_the_engine_knows_of_is_no_failure(training: Stay, reason: Wait):
    training.waits_for = reason
    assert training.reports(100 + ROUNDS).ended_at is None


def test_a_sleep_of_the_computer_is_no_failure(training: Stay):
    training.now += 7200
    assert training.see(m.Tick()).reports(40, every=1).ended_at is None


# --- a worker that joins


@pytest.mark.parametrize(
    ("stage", "longest"),
    [(None, 300), (Stage.HARDWARE, 300), (Stage.PEERS, 300), (Stage.WARM_UP, 900), (Stage.STATE, 2400)],
)
def test_a_stage_without_news_ends_after_a_while(stay: Stay, stage: Stage | None, longest: int):
    if stage is not None:
        stay.silence(100).see(m.WorkerStage(stage, 0.0))
    stay.silence(longest + 2)
    assert stay.ended_at == longest + 1
    assert stay.title.startswith("Joining made no progress for")
    assert stay.see(m.WorkerExited(-9)).snapshot.phase is Phase.IDLE


def test_a_stage_with_news_may_last(stay: Stay):
    for _ in range(3):
        stay.see(m.WorkerStage(Stage.PEERS, 0.1)).silence(250)
    assert stay.ended_at is None


def test_a_download_may_last_for_hours(stay: Stay):
    stay.see(m.WorkerStage(Stage.DATA, 0.0), m.ShardWanted(INDEX.shards[0].sha256)).silence(900)
    assert stay.ended_at is None


def test_a_peer_that_fell_behind_may_wait_for_a_busy_donor_for_hours(training: Stay):
    training.waits_for = Wait.SWARM
    for _ in range(60):
        training.see(m.WorkerStage(Stage.STATE, 0.0)).reports(30)
        assert training.ended_at is None
    # once the worker tells nothing of it any more, no more than otherwise
    assert training.reports(60 + ROUNDS + 2).ended_at is not None


def test_a_worker_that_leaves_has_its_own_deadline(training: Stay):
    assert training.see(m.Leave(now=True)).silence(100).ended_at is None


# --- what is said


def said(stay: Stay) -> str:
    return str(in_english(stay.snapshot.waiting)) if stay.snapshot.waiting else ""


def test_nothing_is_said_of_waiting_while_samples_are_trained(training: Stay):
    assert said(training.reports(300, every=1, rate=4.0)) == ""


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (Wait.DATA, "waiting for training data."),
        (Wait.MEMORY, "waiting until other programs leave enough memory."),
        (Wait.SWARM, "waiting for the swarm's round or its state."),
        (Wait.NOTHING, "no sample has been completed."),
    ],
)
def test_after_a_minute_without_a_sample_the_reason_is_said(training: Stay, reason: Wait, words: str):
    training.reports(5, every=1, rate=4.0).waits_for = reason
    assert said(training.reports(59)) == ""
    assert said(training.reports(1)) == f"Nothing was trained for a minute: {words}"
    assert said(training.reports(2, every=1, rate=4.0)) == ""


def test_a_micro_batch_that_always_takes_minutes_is_no_wait(stay: Stay):
    stay.see(make_joined())
    for _ in range(4):
        stay.reports(149).reports(1, every=1, rate=0.1)
    assert said(stay.reports(299)) == ""
    assert said(stay.reports(2)) == "Nothing was trained for a minute: no sample has been completed."


def test_a_worker_that_no_longer_reports_is_said_not_to_answer(training: Stay):
    training.reports(5, every=1, rate=4.0).silence(60)
    assert said(training) == "Nothing was trained for a minute: the training process does not answer."


def test_a_pause_is_no_wait(training: Stay):
    training.reports(5, every=1, rate=4.0).see(m.Pause())
    assert said(training.reports(600)) == ""
    assert said(training.see(m.Resume()).reports(30)) == ""
