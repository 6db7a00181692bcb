"""The loop's decisions, with stand-ins for its parts; real rounds are tested in tests/swarm."""

import math
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from hivemind.utils import get_dht_time

from english import in_english, raises, spoken
from skep.core.device import ComputingDevice
from skep.core.errors import DataError, DeviceError, SwarmError
from skep.core.policy.allowance import GpuMemory
from skep.core.record.contributions import Evaluation
from skep.core.session.losses import LEFT
from skep.core.session.messages import (
    ContributionConfirmed,
    ContributionLost,
    ContributionPending,
    SetShare,
    ShardArrived,
    ShardFailed,
    WorkerEvaluated,
    WorkerFinished,
    WorkerMemory,
    WorkerNoticed,
    WorkerPaused,
    WorkerProgress,
)
from skep.core.session.phases import Wait
from skep.core.text import Problem, verbatim
from skep.recipes.tensors.batches import text_batch
from skep.worker.connection.network import ByteCounters, add
from skep.worker.swarm.global_rounds import LAST_ROUND_SECONDS, GlobalRounds
from skep.worker.swarm.rounds import RoundFacts, Rounds
from skep.worker.training import loop as loop_module
from skep.worker.training.bad_losses import LATEST, MANY, USABLE_AGAIN
from skep.worker.training.data import ASK_AGAIN_SECONDS, NotFetched
from skep.worker.training.device import Threads
from skep.worker.training.device_errors import PartialGradients
from skep.worker.training.loop import DOUBTFUL, FETCHED_AGAIN, HOPELESS, STATE_PART_BYTES, TrainingLoop
from skep.worker.training.pace import Pace, RequestedLimits, SleepDetector
from skep.worker.training.reporter import RATE_SECONDS, Reporter
from skep.worker.training.resource_limits import DryRun, MicroBatches, ResourceLimits
from skep.worker.training.trainer import EVALUATION_COST, Evaluator

STEP_BATCH = 8
LENGTH = 4


@dataclass
class FakeLink:
    said: list = field(default_factory=list)
    inbox: list = field(default_factory=list)

    def send(self, message):
        self.said.append(message)

    def received(self):
        messages, self.inbox = self.inbox, []
        return messages

    def all(self, kind):
        return [message for message in self.said if isinstance(message, kind)]


@dataclass
class FakeSamples:
    """Numbered samples; `limit` of them have arrived, and `ready` raises `broken`."""

    limit: float = math.inf
    position: int = 0
    held_out_count: int = 6
    planned: list = field(default_factory=list)
    broken: DataError | None = None
    refused: int = 0
    heard: list = field(default_factory=list)

    def ready(self, count):
        if self.broken:
            self.refused += 1
            raise self.broken
        return self.position + count <= self.limit

    def plan(self, count):
        self.planned.append(count)

    def next_batch(self, count):
        assert self.ready(count)
        self.position += count
        return text_batch(torch.zeros(count, LENGTH, dtype=torch.int64))

    def held_out(self, count):
        return text_batch(torch.zeros(min(count, self.held_out_count), LENGTH)) if self.held_out_count else None

    def arrived(self, sha256, path):
        self.heard.append((sha256, path))

    def failed(self, sha256, problem):
        self.broken = NotFetched(problem.title, problem.hint)


@dataclass
class FakeTrainer:
    """Records its micro-batches; returns each of `losses`, then 2.0. More than `room` samples do not fit."""

    name = "Fake GPU"
    devices = (ComputingDevice("cuda:0", "Fake GPU"),)
    parameters = ()
    room: float = math.inf
    emptied: int = 0
    losses: list = field(default_factory=list)
    finite: bool = True
    spoilt: bool = False
    done: list = field(default_factory=list)
    measured: list = field(default_factory=list)
    seconds: float = 0.0
    collected: list = field(default_factory=list)
    forgotten: int = 0
    lost_samples: int = 0

    def collect(self):
        self.collected.append(len(self.done))

    def forget(self):
        self.forgotten += 1

    def lost(self):
        lost, self.lost_samples = self.lost_samples, 0
        return lost

    def add_gradients(self, tokens, scale):
        if len(tokens) > self.room:
            raise torch.OutOfMemoryError
        self.done.append((len(tokens), scale))
        self.meanwhile()
        return self.losses.pop(0) if self.losses else 2.0

    def empty_caches(self):
        self.emptied += 1

    def measure_gradients(self):
        self.measured.append(len(self.done))

    def gradients_finite(self):
        return self.finite

    def parameters_finite(self):
        return not self.spoilt

    def loss_size(self, size):
        return size

    def loss(self, tokens):
        self.seconds += 0.5
        return float(len(tokens))

    def stopwatch(self):
        return self.seconds


class FakeTracker:
    """The progress of a swarm at this peer's epoch, with two other peers, or as in `answers`; None is no answer."""

    global_epoch, others, others_at_least, usual = 0, 2, 0, 0
    stands = False

    def __init__(self):
        self.answers, self.rests = [], 0
        self.global_progress = SimpleNamespace(
            samples_accumulated=40.7, target_batch_size=512, num_peers=3, eta_next_epoch=math.inf
        )
        self.fetched_global_progress_this_epoch = threading.Event()

    def back(self, within):
        self.fetched_global_progress_this_epoch.clear()
        answer = self.answers.pop(0) if self.answers else 2
        if answer is not None:
            self.others = answer
            self.fetched_global_progress_this_epoch.set()

    def rest(self):
        self.rests += 1

    def stand(self):
        self.stands = True

    def report_local_progress(self, epoch, samples):
        pass


class FakeRounds(GlobalRounds):
    """GlobalRounds without hivemind: ends the epoch when `round_due` is set; records the loop's calls in `calls`.

    A round stays open while `under_way` is set.
    """

    _parent_pid = 0  # so that hivemind's destructor shuts nothing down
    _snapshots = None
    local_epoch, accumulated, _total_epochs = 3, 0, 1000
    round_due = under_way = False
    _signed, _apart = None, SimpleNamespace(must_load=lambda _epoch: False)

    def __init__(self, rounds):
        self.calls, self._rounds = [], rounds
        self.tracker, self.state_averager = FakeTracker(), SimpleNamespace(pending_updates=False)

    def rest(self, *, leaving):
        if self._resting_since is None:
            self.calls.append(("rest", self.accumulated))
        super().rest(leaving=leaving)

    def wake(self):
        self.calls.append(("wake",))
        super().wake()

    def find_back(self, hand_over):
        self.calls.append(("find back",))
        return super().find_back(hand_over)

    def contribute(self, samples):
        self.calls.append(("contribute", samples))
        self.accumulated += samples

    def discard(self, reason):
        self.calls.append(("discard", reason))
        self.accumulated = 0
        self._rounds.lose(reason)

    def _keep_in_step(self, hand_over):
        if not self.round_due:
            return False
        hand_over()
        self.calls.append(("round", self.accumulated))
        self._rounds.open(self.local_epoch).settle(RoundFacts(2, ("another",), (), complete=True))
        if not self.under_way:
            self._rounds.close()
        self.accumulated, self.round_due = 0, False
        self.local_epoch += 1
        return True

    def apply_arrived(self):
        self.calls.append(("apply",))

    def withdraw_from_rounds(self):
        self.round_due = False
        if self.finished:
            self.calls.append(("no round",))

    def _is_beyond(self, _epoch):
        return False

    def withdraw(self):
        if ("withdraw",) not in self.calls:
            self.calls.append(("withdraw",))

    def named(self, name):
        return [call for call in self.calls if call[0] == name]


class Clock:
    """Stands still; a test advances it."""

    now = 100.0

    def __call__(self):
        return self.now


@dataclass
class FakeOffload:
    away: bool = False
    moves: list = field(default_factory=list)

    def leave(self):
        self.away = True
        self.moves.append("left")

    def come_back(self):
        if self.away:
            self.away = False
            self.moves.append("back")


class Bench:
    """A loop with stand-ins for all its parts; it runs until a condition is true."""

    def __init__(self, share=1.0, micro_batch=4):
        self.link, self.samples, self.trainer = FakeLink(), FakeSamples(held_out_count=0), FakeTrainer()
        self.rounds = Rounds("s", self.link.send)
        self.optimizer = self.sync = FakeRounds(self.rounds)
        self.pace = Pace(share, lambda: 0.0, obeyed=lambda *told: self.link.send(WorkerPaused(*told)))
        self.requested = RequestedLimits(obeyed=lambda *told: self.link.send(WorkerMemory(*told)))
        self.clock = Clock()
        self.sleep = SleepDetector(self.clock, beat=0.001)
        # all sizes take the same short time, so the largest is the most efficient
        self.sizes = MicroBatches(DryRun({1: 0.001, micro_batch: 0.001}, micro_batch))
        self.offload = FakeOffload()
        self.limits = ResourceLimits(self.requested, self.trainer, self.sizes, Threads(1), self.offload)
        self.finish, self.at_edge = threading.Event(), threading.Event()
        self.loop = TrainingLoop(
            link=self.link,
            pace=self.pace,
            samples=self.samples,
            trainer=self.trainer,
            sync=self.sync,
            rounds=self.rounds,
            traffic=ByteCounters(),
            step_batch=STEP_BATCH,
            limits=self.limits,
            sleep=self.sleep,
        )

    def run_until(self, condition):
        """Call the loop's `run`, and stop it when the condition is true."""
        deadline = time.monotonic() + 10

        class Stop(threading.Event):
            def is_set(self):
                assert time.monotonic() < deadline
                return condition()

        self.loop.run(Stop(), self.finish, self.at_edge)


def test_micro_batches_fill_step_batches_of_constant_size():
    bench = Bench(micro_batch=3)
    bench.run_until(lambda: len(bench.trainer.done) >= 6)
    assert [size for size, _ in bench.trainer.done] == [3, 3, 2, 3, 3, 2]  # never beyond the end of a step batch
    assert [scale for _, scale in bench.trainer.done[:3]] == [3 / 8, 3 / 8, 2 / 8]
    assert bench.optimizer.calls == [("contribute", 8), ("contribute", 8)]
    assert bench.rounds.grown == 16


def test_while_the_device_computes_the_next_samples_are_chosen_and_the_gradients_of_a_whole_step_batch_are_checked():
    bench = Bench(micro_batch=3)
    bench.run_until(lambda: len(bench.trainer.done) >= 6)
    assert bench.samples.planned[:6] == [3, 2, 3, 3, 2, 3]  # each is the size of the next micro-batch
    assert bench.trainer.measured == [3, 6]


def test_other_devices_gradients_are_collected_before_each_hand_over_and_forgotten_with_what_is_dropped():
    bench = Bench()
    bench.run_until(lambda: len(bench.trainer.done) >= 3)
    bench.optimizer.round_due = True
    bench.run_until(lambda: bench.optimizer.local_epoch == 4)
    assert bench.trainer.collected == [2, 4]
    assert bench.trainer.forgotten == 0
    bench.trainer.losses = [math.nan] * DOUBTFUL
    bench.trainer.spoilt, bench.optimizer.reload = True, lambda: None
    bench.run_until(lambda: bench.trainer.forgotten)


def test_what_is_lost_of_a_micro_batch_in_halves_was_counted_before(monkeypatch):
    bench, grown = Bench(micro_batch=2), []
    lose_part = bench.rounds.lose_part
    monkeypatch.setattr(bench.rounds, "lose_part", lambda *lost: (grown.append(bench.rounds.grown), lose_part(*lost)))
    bench.trainer.lost_samples = 1
    bench.run_until(lambda: len(bench.trainer.done) == 1)
    assert grown == [2]
    assert bench.rounds.grown == 1


def test_samples_lost_with_a_device_are_recorded_as_lost_and_not_handed_over():
    bench = Bench(micro_batch=2)
    bench.run_until(lambda: len(bench.trainer.done) == 3)
    bench.trainer.lost_samples = 3
    bench.run_until(lambda: len(bench.trainer.done) == 4)
    assert bench.link.all(ContributionPending) == [ContributionPending("s-0000", 3, 3)]
    (lost,) = bench.link.all(ContributionLost)
    assert (lost.samples, in_english(lost.reason)) == (
        3,
        "a device stopped or ran out of memory before its part was added up",
    )
    assert bench.rounds.grown == 5
    bench.optimizer.round_due = True
    bench.run_until(lambda: bench.optimizer.local_epoch == 4)
    assert bench.optimizer.calls[-2:] == [("contribute", 7), ("round", 7)]  # with another micro-batch


def test_samples_lost_in_the_hand_over_itself_are_not_handed_over():
    bench = Bench(micro_batch=4)
    bench.trainer.collect = lambda: setattr(bench.trainer, "lost_samples", 2)
    bench.run_until(lambda: len(bench.trainer.done) >= 2)
    assert bench.optimizer.calls == [("contribute", 6)]
    assert bench.rounds.grown == 6


def test_when_all_samples_are_lost_in_the_hand_over_nothing_is():
    bench = Bench(micro_batch=4)
    bench.trainer.collect = lambda: setattr(bench.trainer, "lost_samples", STEP_BATCH)
    bench.run_until(lambda: len(bench.trainer.done) >= 4)
    assert bench.optimizer.calls == []
    assert bench.rounds.grown == 0


def test_reports_name_the_devices_that_compute_now():
    bench, two_cards = Bench(), (ComputingDevice("cuda:0", "Fake GPU"), ComputingDevice("cuda:1", "Fake GPU", 0.5))
    bench.trainer.devices = two_cards
    bench.run_until(lambda: bench.link.all(WorkerProgress))
    assert bench.link.all(WorkerProgress)[-1].devices == two_cards


def test_the_held_out_loss_is_computed_in_micro_batches_for_which_the_trainer_has_room():
    bench = Bench(micro_batch=8)
    bench.trainer.loss_size = lambda size: size // 4
    assert bench.loop._evaluator.size() == 2


def test_an_unfinished_step_batch_is_handed_over_before_a_round():
    bench = Bench()
    bench.run_until(lambda: len(bench.trainer.done) == 3)
    bench.optimizer.round_due = True
    bench.run_until(lambda: bench.optimizer.local_epoch == 4)
    assert bench.optimizer.named("contribute")[-1] == ("contribute", 8)
    bench = Bench(micro_batch=2)
    bench.run_until(lambda: len(bench.trainer.done) == 5)
    bench.optimizer.round_due = True
    bench.run_until(lambda: bench.optimizer.local_epoch == 4)
    assert bench.optimizer.calls[-2:] == [("contribute", 4), ("round", 12)]
    assert bench.link.all(ContributionPending) == [ContributionPending("s-0000", 3, 12)]
    bench.run_until(lambda: len(bench.trainer.done) == 7)
    assert bench.rounds.grown == 2  # the next epoch begins with an empty step batch


def test_a_loss_that_is_not_finite_is_skipped_and_its_samples_not_counted():
    bench = Bench()
    bench.trainer.losses = [2.0, math.nan, math.inf, 4.0]
    bench.run_until(lambda: len(bench.trainer.done) == 4)
    assert bench.optimizer.calls == [("contribute", 8)]  # the two finite micro-batches
    assert bench.rounds.grown == 8
    assert bench.loop._reporter.progress(time.monotonic()).loss == 3.0


def test_parameters_that_are_not_finite_are_loaded_again():
    bench = Bench()
    bench.trainer.spoilt = True
    bench.trainer.losses = [math.nan] * 1000

    def reload():
        bench.trainer.spoilt, bench.trainer.losses = False, []

    bench.optimizer.reload = reload
    bench.run_until(lambda: bench.optimizer.named("contribute"))
    assert len(bench.trainer.done) == DOUBTFUL + 2
    assert bench.optimizer.calls == [("contribute", 8)]


def test_an_unfinished_step_batch_is_dropped_with_the_parameters():
    bench = Bench()
    bench.trainer.losses = [2.0, *[math.nan] * DOUBTFUL]
    bench.trainer.spoilt = True
    bench.optimizer.reload = lambda: None
    bench.run_until(lambda: bench.optimizer.named("contribute"))
    assert len(bench.trainer.done) == 1 + DOUBTFUL + 2


def test_bad_samples_are_only_skipped():
    bench = Bench()
    bench.trainer.losses = [math.nan] * (HOPELESS - 1)
    bench.run_until(lambda: bench.optimizer.named("contribute"))
    assert len(bench.trainer.done) == HOPELESS + 1


def test_many_bad_samples_are_said_and_so_is_their_end():
    bench = Bench()
    bench.trainer.losses = [1.0, 1.0, math.nan] * int(MANY * LATEST)
    bench.run_until(lambda: len(bench.trainer.done) == 3 * int(MANY * LATEST))
    (noticed,) = bench.link.all(WorkerNoticed)
    assert in_english(noticed.problem.title) == "20 of the last 60 batches had no usable loss or gradients."
    bench.run_until(lambda: len(bench.trainer.done) == 3 * int(MANY * LATEST) + LATEST)
    _, over = bench.link.all(WorkerNoticed)
    assert (over.problem, over.over) == (USABLE_AGAIN, noticed.problem)


def test_few_bad_samples_are_not_worth_a_word():
    bench = Bench()
    bench.trainer.losses = ([1.0] * 24 + [math.nan]) * 20
    bench.run_until(lambda: len(bench.trainer.done) == 500)
    assert bench.link.all(WorkerNoticed) == []


def test_a_model_without_any_finite_loss_is_not_trained_in_silence_for_ever():
    bench = Bench()
    bench.trainer.losses = [math.nan] * 1000
    with raises(SwarmError, match="None of the last 100 losses was finite"):
        bench.run_until(lambda: False)


def test_a_device_whose_gradients_are_never_finite_is_not_used_in_silence_for_ever():
    bench = Bench(micro_batch=STEP_BATCH)
    bench.trainer.finite = False
    with raises(SwarmError, match="None of the last 100 batches had gradients that could be used"):
        bench.run_until(lambda: len(bench.trainer.done) > HOPELESS)
    assert len(bench.link.all(ContributionLost)) == HOPELESS


def test_a_few_unusable_gradients_are_only_discarded():
    bench = Bench(micro_batch=STEP_BATCH)
    for count in (1, 2):
        bench.trainer.finite = False
        bench.run_until(lambda end=count * HOPELESS: len(bench.trainer.done) >= end - 1)
        bench.trainer.finite = True
        bench.run_until(lambda end=count * HOPELESS: len(bench.trainer.done) >= end)
    assert len(bench.optimizer.named("contribute")) == 2
    assert len(bench.optimizer.named("discard")) == 2 * HOPELESS - 2


def test_gradients_that_are_not_finite_are_discarded_and_said_to_be_lost():
    bench = Bench()
    bench.trainer.finite = False
    bench.run_until(lambda: len(bench.trainer.done) == 2)
    assert in_english(bench.optimizer.calls) == [("discard", "gradients that were not finite or far too large")]
    assert spoken(bench.link.all(ContributionLost)) == [
        ContributionLost("s-0000", 3, 8, verbatim("gradients that were not finite or far too large"))
    ]
    assert bench.rounds.growing == "s-0001"


def test_a_pause_hands_over_says_so_and_waits_for_the_round_of_its_epoch():
    bench = Bench()
    bench.run_until(lambda: len(bench.trainer.done) == 3)
    bench.pace.set_share(0.0)
    assert bench.link.all(WorkerPaused)[0].share == 0.0  # immediately: nothing was being computed
    bench.run_until(lambda: bench.optimizer.named("rest"))
    assert bench.optimizer.calls[-2:] == [("contribute", 4), ("rest", 12)]
    assert len(bench.trainer.done) == 3
    assert not bench.optimizer.named("withdraw")  # the others still expect it in the round
    bench.optimizer.round_due = True
    bench.run_until(lambda: bench.optimizer.named("withdraw"))
    assert bench.optimizer.calls[-2:] == [("round", 12), ("withdraw",)]
    assert len(bench.trainer.done) == 3
    assert len(bench.link.all(WorkerPaused)) == 1


def test_a_pause_with_nothing_accumulated_leaves_the_books_at_once():
    bench = Bench(share=0.0)
    bench.run_until(lambda: bench.optimizer.named("withdraw"))
    assert bench.optimizer.calls == [("rest", 0), ("apply",), ("withdraw",)]
    assert bench.trainer.done == []


def paused(seconds):
    """A peer with two accumulated micro-batches, paused for `seconds`."""
    bench = Bench()
    bench.run_until(lambda: len(bench.trainer.done) == 2)
    bench.pace.set_share(0.0)
    bench.run_until(lambda: bench.optimizer.named("rest"))
    bench.sync._resting_since -= seconds
    return bench


def paused_too_long():
    """The same, paused until it has withdrawn its progress record."""
    bench = paused(LAST_ROUND_SECONDS)
    bench.run_until(lambda: bench.optimizer.named("withdraw"))
    return bench


@pytest.mark.parametrize(
    ("rested", "left", "peers", "stays"),
    [(1500, 300, 3, True), (1500, 300, 1, False), (1500, math.inf, 3, False), (3500, 300, 3, False)],
)
def test_a_paused_peer_waits_for_its_round_while_it_is_expected_within_an_hour(rested, left, peers, stays):
    bench = paused(rested)
    swarm = bench.optimizer.tracker.global_progress
    swarm.eta_next_epoch, swarm.num_peers = get_dht_time() + left, peers
    assert bench.sync.progress.seconds_left == (None if left == math.inf else pytest.approx(left, abs=60))
    looks = iter(range(10))
    bench.run_until(lambda: next(looks) == 9)
    assert bool(bench.optimizer.named("withdraw")) == (not stays)


def test_while_no_round_comes_a_paused_peer_is_off_the_books_and_keeps_what_it_had():
    bench = paused_too_long()
    assert bench.optimizer.calls[-2:] == [("apply",), ("withdraw",)]
    bench.optimizer.round_due = True  # a withdrawn peer takes no part in it
    bench.run_until(lambda: len(bench.optimizer.named("apply")) == 3)
    assert not bench.optimizer.named("round")
    bench.pace.set_share(1.0)
    bench.run_until(lambda: bench.optimizer.named("round"))
    assert bench.optimizer.named("wake")
    assert not bench.link.all(ContributionLost)
    ((_, samples),) = bench.optimizer.named("round")
    assert samples > 8  # the accumulated samples, and new ones


def test_a_paused_peer_that_leaves_gives_up_what_no_round_takes():
    bench = paused_too_long()
    bench.finish.set()
    bench.run_until(lambda: False)
    assert [(lost.samples, lost.reason) for lost in bench.link.all(ContributionLost)] == [(8, LEFT)]


def test_leaving_computes_no_more_and_waits_for_the_round_of_its_epoch():
    bench = Bench(micro_batch=2)
    bench.run_until(lambda: len(bench.trainer.done) == 5)
    bench.finish.set()
    looks = []
    tend = bench.optimizer.tend
    bench.optimizer.tend = lambda hand_over: looks.append(bench.optimizer.accumulated) or tend(hand_over)
    bench.run_until(lambda: len(looks) == 3)
    assert looks == [10, 10, 10]  # the incomplete step batch was handed over
    assert len(bench.trainer.done) == 5
    bench.optimizer.round_due = bench.optimizer.under_way = True
    bench.optimizer.tracker.global_progress.num_peers = 1  # as for a peer that has removed its progress record
    bench.run_until(lambda: len(bench.optimizer.named("apply")) == 3)  # the round continues in the background
    assert len(bench.optimizer.named("apply")) == 3  # it has not ended
    bench.rounds.close()
    bench.run_until(lambda: False)
    assert bench.link.all(ContributionPending) == [ContributionPending("s-0000", 3, 10)]
    assert not bench.link.all(ContributionLost)
    assert len(bench.trainer.done) == 5


def test_a_worker_that_is_to_end_at_an_edge_computes_until_its_epoch_has_ended_and_nothing_after_it():
    bench = Bench(micro_batch=2)
    bench.at_edge.set()
    bench.run_until(lambda: len(bench.trainer.done) == 5)
    bench.optimizer.round_due = bench.optimizer.under_way = True
    bench.run_until(lambda: len(bench.optimizer.named("apply")) == 3)  # the round continues in the background
    assert bench.finish.is_set()
    bench.rounds.close()
    bench.run_until(lambda: False)
    assert bench.link.all(ContributionPending) == [ContributionPending("s-0000", 3, 12)]
    assert len(bench.link.all(ContributionConfirmed)) == 1
    assert not bench.link.all(ContributionLost)
    assert (len(bench.trainer.done), bench.rounds.grown) == (6, 0)


@pytest.mark.parametrize("alone", [True, False])
def test_leaving_waits_for_no_round_where_none_will_come(alone):
    bench = Bench(share=1.0 if alone else 0.0)
    bench.run_until(lambda: bench.trainer.done if alone else bench.optimizer.named("rest"))
    bench.optimizer.tracker.global_progress.num_peers = 1 if alone else 3
    bench.finish.set()
    bench.run_until(lambda: False)
    assert not bench.optimizer.named("discard")  # leaving the swarm settles the rest


def test_leaving_waits_no_longer_than_it_may():
    bench = Bench()
    bench.run_until(lambda: len(bench.trainer.done) == 2)
    bench.finish.set()
    bench.run_until(lambda: bench.optimizer.named("rest"))
    bench.sync._resting_since -= LAST_ROUND_SECONDS
    bench.run_until(lambda: False)
    assert in_english(bench.optimizer.named("discard")) == [("discard", "left before the round")]


def test_a_stop_cuts_the_wait_for_the_round_short():
    bench = Bench()
    bench.run_until(lambda: len(bench.trainer.done) == 2)
    bench.finish.set()
    bench.run_until(lambda: bench.optimizer.named("rest"))
    assert bench.optimizer.accumulated == 8


def test_a_leave_ends_a_nap():
    bench = Bench(share=0.0001)
    bench.pace.stopwatch = iter(range(10**6)).__next__  # a nap of hours is due
    bench.run_until(lambda: bench.trainer.done)
    bench.optimizer.tracker.global_progress.num_peers = 1
    threading.Timer(0.1, bench.finish.set).start()
    bench.run_until(lambda: False)
    assert len(bench.trainer.done) <= 2


class LongRound:
    """Blocks in `tend` until released, as in a round with slow groupmates."""

    def __init__(self, bench, *, moves_on=False):
        self.bench, self.moves_on = bench, moves_on
        self.entered, self.go_on = threading.Event(), threading.Event()
        bench.optimizer.tend = self
        self.thread = threading.Thread(target=bench.run_until, args=(self.go_on.is_set,))

    def __call__(self, hand_over):
        self.entered.set()
        assert self.go_on.wait(10)
        return self.moves_on

    def __enter__(self):
        self.thread.start()
        assert self.entered.wait(10)
        return self

    def __exit__(self, *_):
        self.go_on.set()
        self.thread.join()


@pytest.mark.parametrize(("is_round", "behind"), [(True, "round"), (False, "")])
def test_a_pause_that_comes_in_a_round_is_obeyed_after_it_and_says_so(is_round, behind):
    bench = Bench()
    with LongRound(bench, moves_on=is_round):
        bench.pace.set_share(0.0)
        assert not bench.link.all(WorkerPaused)
        done = len(bench.trainer.done)
    assert len(bench.trainer.done) == done
    (told,) = bench.link.all(WorkerPaused)
    assert (told.share, told.behind) == (0.0, behind)
    assert told.reaction_seconds > 0


def test_progress_is_told_on_while_the_training_thread_stands_in_a_round():
    bench = Bench()
    bench.loop._reporter.every = 0.05
    with LongRound(bench):
        before = len(bench.link.all(WorkerProgress))
        wait_until(lambda: len(bench.link.all(WorkerProgress)) >= before + 3)
        assert bench.link.all(WorkerProgress)[-1].waits_for is Wait.SWARM


def wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_resumed_peer_gets_in_step_before_it_computes():
    bench = Bench(share=0.0)
    bench.run_until(lambda: bench.optimizer.named("withdraw"))
    bench.pace.set_share(1.0)
    bench.run_until(lambda: bench.trainer.done)
    assert bench.optimizer.calls[-1] == ("wake",)
    assert bench.link.all(WorkerPaused)[-1].share == 1.0
    bench.run_until(lambda: len(bench.trainer.done) > 3)
    assert len(bench.optimizer.named("wake")) == 1


def test_the_swarm_is_looked_after_during_naps():
    bench = Bench(share=0.001)
    bench.pace.stopwatch = iter(range(10**6)).__next__  # each micro-batch appears to take a second
    looks = []
    tend = bench.optimizer.tend
    bench.optimizer.tend = lambda hand_over: looks.append(len(bench.trainer.done)) or tend(hand_over)
    bench.run_until(lambda: len(looks) >= 4)
    assert looks == [1, 1, 1, 1]


def test_data_on_its_way_is_waited_for_as_neither_computing_nor_a_nap():
    bench = Bench()
    bench.samples.limit = 4
    bench.run_until(lambda: bench.pace.waiting_seconds > 0.1)
    assert [size for size, _ in bench.trainer.done] == [4]
    assert bench.loop.waits_for is Wait.DATA
    bench.samples.limit = math.inf
    bench.run_until(lambda: len(bench.trainer.done) > 1)
    assert bench.loop.waits_for is Wait.NOTHING


def test_news_of_shards_reach_the_samples():
    bench = Bench()
    bench.link.inbox = [SetShare(1.0), ShardArrived("ab", "/cache/ab")]
    bench.run_until(lambda: bench.samples.heard)
    assert bench.samples.heard == [("ab", "/cache/ab")]


def test_data_that_cannot_be_fetched_is_said_once_and_asked_for_again():
    bench, full = Bench(), Problem(verbatim("The disk is full."), verbatim("Free some space."))
    bench.loop.ask_again_seconds = 0.05
    bench.run_until(lambda: bench.trainer.done)
    bench.link.inbox = [ShardFailed("cd", full)]
    bench.run_until(lambda: bench.samples.refused > 2)
    assert bench.loop.waits_for is Wait.DATA
    assert [each.problem for each in bench.link.all(WorkerNoticed)] == [full]
    bench.samples.broken, before = None, len(bench.trainer.done)
    bench.run_until(lambda: len(bench.trainer.done) > before)
    _, over = bench.link.all(WorkerNoticed)
    assert (over.problem, over.over) == (FETCHED_AGAIN, full)


def test_data_that_is_wrong_ends_training_in_words():
    bench = Bench()
    bench.samples.broken = DataError(verbatim("The shard is wrong."))
    with raises(DataError, match="The shard is wrong"):
        bench.run_until(lambda: False)


def test_progress_tells_what_a_front_end_shows():
    bench = Bench(share=0.5)
    ticks = iter(range(10**6))
    bench.pace.stopwatch = lambda: next(ticks) / 20
    bench.loop.traffic.sent.value = 7
    bench.loop.traffic.received.value = 9
    bench.run_until(lambda: len(bench.trainer.done) == 3)
    bench.loop._reporter.tell(at_once=True)
    told = bench.link.all(WorkerProgress)[-1]
    assert (told.contribution, told.samples, told.position) == ("s-0000", 12, 12)
    progress = told.progress
    assert (progress.epoch, progress.peers, progress.loss) == (3, 0, 2.0)
    assert (progress.samples_accumulated, progress.target_batch_size) == (40, 512)
    assert (progress.bytes_sent, progress.bytes_received) == (7, 9)
    assert progress.share_asked == 0.5
    # naps are real ones, and may last longer on a busy computer
    assert progress.share_measured == pytest.approx(0.15 / (0.15 + progress.nap_seconds))
    assert progress.share_measured < 0.7
    assert progress.samples_per_second == 12 / RATE_SECONDS
    assert progress.compute_seconds == pytest.approx(0.15)
    assert progress.nap_seconds > 0


def test_without_work_progress_names_no_contribution():
    bench = Bench(share=0.0)
    bench.run_until(lambda: bench.link.all(WorkerProgress))
    told = bench.link.all(WorkerProgress)[0]
    assert (told.contribution, told.samples) == ("", 0)
    assert (told.progress.loss, told.progress.share_measured) == (None, None)


def test_the_first_step_batch_and_rounds_are_reported_at_once_and_progress_otherwise_once_a_second(monkeypatch):
    # the second thread reports when the first has not: here how soon that has a turn is not the matter
    monkeypatch.setattr(Reporter, "_beat", lambda *_: None)
    bench = Bench()
    bench.run_until(lambda: len(bench.trainer.done) == 4)  # of half a step batch each
    assert [message.samples for message in bench.link.all(WorkerProgress)] == [STEP_BATCH // 2, STEP_BATCH]
    bench.optimizer.round_due = True
    bench.run_until(lambda: bench.optimizer.local_epoch == 4)
    assert [message.progress.epoch for message in bench.link.all(WorkerProgress)] == [3, 3, 4]


def test_what_was_freed_is_given_back_once_an_epoch(monkeypatch):
    times = []
    monkeypatch.setattr(loop_module, "give_back", lambda: times.append(None))
    bench = Bench()
    bench.run_until(lambda: len(bench.trainer.done) == 3)
    assert times == []
    for epoch in (4, 5):
        bench.optimizer.round_due = True
        bench.run_until(lambda epoch=epoch: bench.optimizer.local_epoch == epoch)
    assert len(times) == 2


def test_held_out_loss_is_measured_after_the_first_batch_and_between_micro_batches():
    bench = Bench()
    bench.samples.held_out_count = 6
    bench.run_until(lambda: bench.link.all(WorkerEvaluated))
    # two micro-batches of 4 and 2 samples, each with its size as its loss: weighted by samples
    assert bench.link.all(WorkerEvaluated) == [WorkerEvaluated(Evaluation(3, (4 * 4 + 2 * 2) / 6))]


def test_a_newcomers_first_batch_is_counted_before_anything_is_examined():
    bench = Bench()
    bench.samples.held_out_count = 6
    done = []
    bench.trainer.loss = lambda _chunk: done.append(list(bench.optimizer.calls)) or 1.0
    bench.run_until(lambda: done)
    assert "contribute" in [name for name, *_ in done[0]]


def test_an_evaluation_without_room_is_given_up_and_begun_again_later(examiner, monkeypatch):
    def too_large(_tokens):
        raise torch.OutOfMemoryError

    with monkeypatch.context() as patched:
        patched.setattr(examiner.trainer, "loss", too_large)
        examiner.begin(1)
        assert examiner.go_on() is None
    assert not examiner.busy
    assert examiner.trainer.emptied == 1
    examiner.begin(1)
    assert not examiner.busy
    examiner._next = 0.0
    examiner.begin(1)
    assert examiner.go_on() == Evaluation(1, 4.0)


def test_another_error_of_an_evaluation_is_not_hidden(examiner, monkeypatch):
    def broken(_tokens):
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setattr(examiner.trainer, "loss", broken)
    examiner.begin(1)
    with pytest.raises(RuntimeError, match="launch failure"):
        examiner.go_on()


def test_a_micro_batch_has_as_many_samples_as_there_are_data_for(monkeypatch):
    bench, asked, taken = Bench(), [], []
    ready, next_batch = bench.samples.ready, bench.samples.next_batch

    def looked_at(count):
        asked.append(count)
        bench.limits._held = GpuMemory.SHRINK  # the person comes back meanwhile
        return ready(count)

    def taken_now(count):
        taken.append((asked[-1], count))
        return next_batch(count)

    monkeypatch.setattr(bench.limits, "obey", lambda _behind: None)
    monkeypatch.setattr(bench.samples, "ready", looked_at)
    monkeypatch.setattr(bench.samples, "next_batch", taken_now)
    bench.run_until(lambda: len(taken) >= 2)
    assert taken[:2] == [(4, 4), (1, 1)]


def test_an_epoch_is_examined_once(examiner):
    examiner.begin(1)
    examiner.go_on()
    examiner._next = 0.0
    examiner.begin(1)
    assert not examiner.busy


@pytest.fixture
def examiner():
    return Evaluator(FakeTrainer(), FakeSamples(held_out_count=4), size=lambda: 4)


def test_a_held_out_evaluation_is_not_repeated_before_it_is_cheap(examiner):
    examiner.begin(1)
    assert examiner.go_on() == Evaluation(1, 4.0)
    examiner.begin(2)
    assert not examiner.busy
    assert examiner._next - time.monotonic() == pytest.approx(EVALUATION_COST * 0.5, abs=1)
    examiner._next = 0.0
    examiner.begin(3)
    assert examiner.busy


def test_an_evaluation_under_way_is_not_begun_again(examiner):
    examiner.samples.held_out_count = 8
    examiner.begin(1)
    assert examiner.go_on() is None
    examiner.begin(2)
    assert examiner.go_on() == Evaluation(1, 4.0)


def test_without_held_out_samples_nothing_is_evaluated(examiner):
    examiner.samples.held_out_count = 0
    examiner.begin(1)
    assert not examiner.busy


def test_held_out_samples_that_cannot_be_fetched_are_asked_for_again_later_and_training_goes_on(examiner, monkeypatch):
    really = examiner.samples.held_out

    def refused(count):
        raise NotFetched(verbatim("The data server does not answer."))

    monkeypatch.setattr(examiner.samples, "held_out", refused)
    examiner.begin(1)
    assert not examiner.busy
    assert examiner._next - time.monotonic() == pytest.approx(ASK_AGAIN_SECONDS, abs=1)
    monkeypatch.setattr(examiner.samples, "held_out", really)
    examiner.begin(1)
    assert not examiner.busy
    examiner._next = 0.0
    examiner.begin(1)
    assert examiner.busy


def test_a_held_out_loss_that_is_not_finite_is_not_told(examiner):
    examiner.trainer.loss = lambda tokens: math.nan
    examiner.begin(1)
    assert examiner.go_on() is None
    assert not examiner.busy


# --- limits for the user's sake


def test_presence_takes_effect_at_the_next_micro_batch_and_step_batches_stay_whole():
    bench = Bench(micro_batch=4)
    bench.sizes._sizings[True].size = 2
    bench.run_until(lambda: len(bench.trainer.done) == 1)
    bench.requested.give(GpuMemory.KEEP, present=True)
    bench.run_until(lambda: len(bench.trainer.done) == 2)
    bench.requested.give(GpuMemory.KEEP, present=False)
    bench.run_until(lambda: len(bench.trainer.done) == 5)
    assert [size for size, _ in bench.trainer.done] == [4, 2, 2, 4, 4]
    assert sum(size for size, _ in bench.trainer.done[:3]) == STEP_BATCH
    assert [scale for _, scale in bench.trainer.done] == [size / STEP_BATCH for size, _ in bench.trainer.done]
    assert bench.optimizer.calls == [("contribute", 8), ("contribute", 8)]


def test_what_runs_out_of_memory_is_computed_in_halves_and_counted_whole():
    bench = Bench(micro_batch=4)
    bench.trainer.room = 2
    bench.run_until(lambda: bench.optimizer.named("contribute"))
    assert bench.trainer.done == [(2, 2 / 8)] * 4
    assert bench.optimizer.calls == [("contribute", 8)]
    assert bench.trainer.emptied == 1  # only once: the next micro-batch fitted


def test_memory_that_holds_not_one_sample_ends_training_in_words():
    bench = Bench()
    bench.trainer.room = 0
    with raises(DeviceError, match="The memory of Fake GPU has no room for even one sample now"):
        bench.run_until(lambda: False)


def test_a_device_that_is_gone_ends_training_in_words():
    bench = Bench()

    def lost(*_):
        raise RuntimeError("CUDA error: unspecified launch failure")

    bench.trainer.add_gradients = lost
    with raises(DeviceError, match="Fake GPU stopped working"):
        bench.run_until(lambda: False)


def test_gradients_that_were_only_partly_added_are_thrown_away():
    bench = Bench(micro_batch=4)
    bench.run_until(lambda: len(bench.trainer.done) == 1)
    real = bench.limits.add_gradients

    def spoil(*_):
        bench.limits.add_gradients = real
        raise PartialGradients

    bench.limits.add_gradients = spoil
    bench.run_until(lambda: bench.optimizer.named("contribute"))
    assert in_english(bench.optimizer.calls) == [
        ("discard", "gradients that were not finite or far too large"),
        ("contribute", 8),
    ]
    assert len(bench.trainer.done) == 3  # a whole step batch after the discarded one
    assert [lost.samples for lost in bench.link.all(ContributionLost)] == [4]


def test_released_memory_rests_the_worker_and_training_goes_on_where_it_was():
    bench = Bench(micro_batch=4)
    bench.run_until(lambda: len(bench.trainer.done) == 3)
    bench.requested.give(GpuMemory.RELEASE, present=True)
    bench.run_until(lambda: bench.optimizer.named("rest"))
    assert bench.offload.moves == ["left"]
    assert bench.loop.waits_for is Wait.MEMORY
    assert [told.memory for told in bench.link.all(WorkerMemory)] == [GpuMemory.RELEASE]
    assert len(bench.trainer.done) == 3
    bench.requested.give(GpuMemory.KEEP, present=False)
    bench.run_until(lambda: len(bench.trainer.done) == 4)
    assert bench.offload.moves == ["left", "back"]
    assert bench.optimizer.named("wake")
    assert [told.memory for told in bench.link.all(WorkerMemory)] == [GpuMemory.RELEASE, GpuMemory.KEEP]


def test_an_order_that_comes_in_a_round_says_what_it_waited_for():
    bench = Bench()
    with LongRound(bench, moves_on=True):
        bench.requested.give(GpuMemory.SHRINK, present=True)
    bench.optimizer.tend = lambda hand_over: False
    bench.run_until(lambda: bench.link.all(WorkerMemory))
    (told,) = bench.link.all(WorkerMemory)
    assert (told.memory, told.behind) == (GpuMemory.SHRINK, "round")


@pytest.mark.parametrize("heavy", [True, False])
def test_progress_says_whether_the_project_is_heavy(heavy):
    bench = Bench(micro_batch=1)
    bench.pace.stopwatch = iter(range(10**6)).__next__ if heavy else lambda: 0.0  # a second for each sample, or none
    bench.run_until(lambda: any(told.samples for told in bench.link.all(WorkerProgress)))
    assert bench.link.all(WorkerProgress)[-1].heavy is heavy


def test_the_swarm_is_told_the_rate_of_now():
    bench = Bench()
    bench.pace.stopwatch = time.monotonic
    add_gradients = bench.trainer.add_gradients
    bench.trainer.add_gradients = lambda *given: (time.sleep(0.05), add_gradients(*given))[1]
    assert bench.pace.rate() is None
    bench.run_until(lambda: len(bench.trainer.done) >= 10)
    full = bench.pace.rate()
    assert 0 < full <= 4 / 0.05
    bench.pace.set_share(0.2)
    assert full / 6 < bench.pace.rate() < full / 4  # immediately, not after dozens of step batches
    bench.pace.set_share(0.0)
    assert bench.pace.rate() == 0.0


def test_after_a_sleep_the_swarm_is_found_before_anything_else_happens():
    bench = Bench(micro_batch=4)
    bench.run_until(lambda: len(bench.trainer.done) == 3)
    bench.optimizer.tracker.answers = [None, 0, 2]
    bench.clock.now += 60.0
    bench.run_until(lambda: len(bench.trainer.done) == 4)
    # asked until it answers; an empty answer of a swarm that had other peers is not accepted
    assert bench.optimizer.calls[1:4] == [("find back",)] * 3
    assert bench.optimizer.local_epoch == 3


def test_a_sleep_in_the_middle_of_a_micro_batch_begins_no_round():
    bench = Bench(micro_batch=4)
    bench.run_until(lambda: len(bench.trainer.done) == 2)
    add_gradients = bench.trainer.add_gradients

    def sleep(*given):
        bench.clock.now += 60.0
        bench.optimizer.round_due = True  # due by this peer's clock, but the others ended it long ago
        bench.trainer.add_gradients = add_gradients
        return add_gradients(*given)

    bench.trainer.add_gradients = sleep
    bench.run_until(lambda: bench.optimizer.named("find back"))
    assert bench.optimizer.named("round") == []


def test_micro_batches_of_a_minute_are_no_sleep():
    bench = Bench(micro_batch=4)
    add_gradients = bench.trainer.add_gradients

    def take_a_minute(*given):
        for _ in range(15):
            bench.clock.now += 4.0
            wait_until(lambda: bench.sleep._looked == bench.clock.now)
        return add_gradients(*given)

    bench.trainer.add_gradients = take_a_minute
    bench.run_until(lambda: len(bench.trainer.done) == 2)
    assert bench.optimizer.named("find back") == []


def test_a_sleep_during_a_round_is_noticed_after_it():
    bench = Bench()
    with LongRound(bench):
        bench.clock.now += 60.0
        bench.optimizer.tend = lambda hand_over: False
    bench.run_until(lambda: bench.optimizer.named("find back"))


def test_a_turn_in_which_the_computer_slept_tells_no_rate():
    bench = Bench(micro_batch=4)
    tend = bench.optimizer.tend

    def sleep(hand_over):
        bench.clock.now += 60.0
        bench.optimizer.tend = tend
        return tend(hand_over)

    bench.optimizer.tend = sleep
    bench.run_until(lambda: len(bench.trainer.done) == 1)
    assert bench.pace.rate() is None
    bench.run_until(lambda: len(bench.trainer.done) == 2)
    assert bench.pace.rate()


def test_computing_in_which_the_computer_slept_counts_at_most_as_its_like():
    bench = Bench(micro_batch=4)
    bench.pace.stopwatch = lambda: bench.clock.now
    with bench.pace.computing():
        bench.clock.now += 4.0
    with bench.pace.computing():
        bench.clock.now += 60.0
    assert bench.pace.compute_seconds == 8.0


def test_a_swarm_that_is_not_found_after_a_sleep_is_said_in_words():
    bench = Bench()
    bench.loop.find_back_seconds = 0.1
    bench.optimizer.tracker.answers = [None] * 10**6
    bench.clock.now += 60.0
    with raises(SwarmError, match="has not answered since this computer woke up"):
        bench.run_until(lambda: False)


def test_a_stop_is_obeyed_while_the_swarm_is_looked_for():
    bench = Bench()
    bench.optimizer.tracker.answers = [None] * 10**6
    bench.clock.now += 60.0
    bench.run_until(lambda: len(bench.optimizer.named("find back")) > 2)


def resting_after_a_sleep(*, epoch=None, answers=()):
    """A worker that rests with samples for the round of epoch 3, and slept a minute; then the swarm is at `epoch`."""
    bench = Bench()
    bench.run_until(lambda: len(bench.trainer.done) == 2)
    bench.pace.set_share(0.0)
    bench.run_until(lambda: bench.optimizer.named("rest"))
    bench.optimizer.tracker.answers = list(answers)
    bench.optimizer.tracker.global_epoch = epoch or bench.optimizer.tracker.global_epoch
    bench.clock.now += 60.0
    return bench


def test_a_worker_that_slept_while_it_rested_keeps_what_waits_for_the_same_epoch():
    bench = resting_after_a_sleep()
    kept = bench.optimizer.accumulated
    bench.run_until(lambda: bench.optimizer.named("find back"))
    assert bench.optimizer.accumulated == kept > 0
    assert bench.optimizer.named("discard") == []
    assert bench.optimizer.tracker.rests == 2  # looking for the swarm publishes a rate again


def test_a_worker_that_slept_while_it_rested_gives_up_what_the_swarm_has_ended_without_it():
    bench = resting_after_a_sleep(epoch=4)
    bench.run_until(lambda: bench.optimizer.named("withdraw"))
    assert in_english(bench.optimizer.named("discard")) == [("discard", "this computer was asleep")]
    assert not bench.optimizer.named("round")
    assert not bench.optimizer.named("catch up")  # the next wake does


def test_a_worker_that_rests_and_finds_no_swarm_after_a_sleep_gives_up_what_waited():
    bench = resting_after_a_sleep(answers=[None] * 10**6)
    bench.loop.find_back_seconds = 0.1
    bench.run_until(lambda: bench.optimizer.named("discard"))
    assert in_english(bench.optimizer.named("discard")) == [("discard", "this computer was asleep")]
    assert bench.optimizer._company
    bench.pace.set_share(1.0)
    bench.run_until(lambda: bench.optimizer.named("wake"))
    assert bench.optimizer._company is None  # a later sleep asks for those that are there then


# --- the end of the run


def test_after_the_last_epoch_nothing_is_computed_and_the_end_is_reported():
    bench = Bench()
    bench.optimizer._total_epochs = 4
    bench.loop.hand_over_seconds = 0.1
    bench.run_until(lambda: len(bench.trainer.done) == 3)
    bench.optimizer.round_due = bench.optimizer.under_way = True
    begun = time.monotonic()
    bench.run_until(lambda: bench.rounds.oldest and time.monotonic() - begun > 0.5)
    assert not bench.link.all(WorkerFinished)  # the last step is still being taken
    assert len(bench.trainer.done) in (3, 4)
    computed = len(bench.trainer.done)
    bench.rounds.close()
    bench.run_until(lambda: False)  # returns by itself
    assert len(bench.trainer.done) == computed
    assert bench.link.all(ContributionConfirmed)[0].epoch == 3
    assert bench.link.all(WorkerFinished) == [WorkerFinished()]
    assert bench.optimizer.named("no round")
    assert not bench.optimizer.named("withdraw")
    assert bench.optimizer.tracker.stands  # others find the last state


def test_a_finished_worker_stays_while_others_load_its_state():
    bench = Bench()
    bench.optimizer.local_epoch = bench.optimizer._total_epochs
    bench.loop.hand_over_seconds = 0.6
    parts = []

    def sending():
        if bench.link.all(WorkerFinished) and len(parts) < 4:
            parts.append(time.monotonic())
            add(bench.loop.traffic.sent, STATE_PART_BYTES)
        return False

    bench.run_until(sending)
    assert len(parts) == 4
    assert time.monotonic() - parts[-1] >= 0.6
    assert not bench.trainer.done


def test_a_finished_worker_gives_the_devices_memory_back_when_it_is_asked():
    bench = Bench()
    bench.optimizer.local_epoch = bench.optimizer._total_epochs
    bench.loop.hand_over_seconds = 60.0

    def asking():
        if bench.link.all(WorkerFinished):
            bench.requested.give(GpuMemory.RELEASE, present=True)
        return bool(bench.link.all(WorkerMemory))

    bench.run_until(asking)
    assert bench.offload.away
    assert [each.memory for each in bench.link.all(WorkerMemory)] == [GpuMemory.RELEASE]


class Behind(FakeRounds):
    """Two epochs behind the others, or in a round of its own epoch that is due."""

    def __init__(self, rounds, *, behind):
        super().__init__(rounds)
        self._behind, self.accumulated = behind, 8
        self._apart = SimpleNamespace(must_load=lambda _epoch: True)
        self.tracker.tell, self.tracker.ready_to_update_epoch = lambda: None, not behind
        self._keep_in_step = partial(GlobalRounds._keep_in_step, self)

    def _follow(self):
        pass

    _look_before_round = _maybe_schedule_gradient_averaging = _maybe_schedule_state_averaging = _follow

    def _should_load_state_from_peers(self):
        return self._behind

    def _update_global_epoch(self, _due):
        self.local_epoch, self.accumulated = self.local_epoch + 1, 0

    def catch_up(self, _reason):
        self.calls.append(("load",))


@pytest.mark.parametrize("behind", [True, False])
@pytest.mark.parametrize("resting", [True, False])
def test_at_rest_no_state_is_loaded(behind, resting):
    rounds = Behind(Rounds("s", lambda _: None), behind=behind)
    if resting:
        rounds.rest(leaving=False)
    rounds.tend(lambda: None)
    assert bool(rounds.named("load")) != resting
    assert bool(rounds.named("discard")) == (resting and behind)
    if resting and not behind:
        rounds.wake()  # it has missed that round
        assert rounds.named("load")


def test_a_peer_behind_a_finished_run_stops_too_and_its_samples_are_lost_with_the_reason():
    bench = Bench()
    bench.loop.hand_over_seconds = 0.0
    bench.run_until(lambda: len(bench.trainer.done) == 3)
    bench.optimizer.tracker.others_at_least = 1000
    bench.run_until(lambda: False)
    assert bench.link.all(WorkerFinished)
    (lost,) = bench.link.all(ContributionLost)
    assert (lost.samples, in_english(lost.reason)) == (12, "the run was finished before the round")
    assert bench.optimizer.named("withdraw")  # it has not the last state
