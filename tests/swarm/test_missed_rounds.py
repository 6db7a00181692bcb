"""A groupmate that is late, gone or alone: how long the others, and it itself, wait. hivemind's averagers beside ours."""

import time

import pytest
import torch
from hivemind.averaging.control import AveragingStage
from hivemind.optim.grad_averager import GradientAverager

import forked_peers
from skep.worker.swarm.averaging.all_reduce import PATIENCE
from skep.worker.swarm.averaging.averagers import CheckedGradientAverager
from swarm_peers import together, wait_until

SILENCE, LESS_SILENCE = 12.0, 5.0
"""Seconds until a silent sender counts as gone; a silent reducer after twice that."""
MATCHMAKING = 2.0
PREFIX = "pair"
ROUND = 120.0
PROMPT = 4.0
"""Seconds within which a round ends that waits for nobody, also on a busy computer."""
SHARED, ONE_REDUCES = 1_000_000, 1000
"""Numbers of values: of the second, one peer reduces all, which is the first or the other one."""


class Pair:
    """Two averagers of one kind, each with a process tree of its own."""

    def __init__(self, kind, dhts, size, silence):
        self._kind, self._size, self._silence = kind, size, silence
        self.averagers = []
        for dht in dhts:
            self.add(dht)

    def add(self, dht):
        parameter = torch.nn.Parameter(torch.zeros(self._size))
        parameter.grad = torch.full((self._size,), float(len(self.averagers)))
        made = self._kind(
            [parameter],
            dht=dht,
            prefix=PREFIX,
            start=True,
            min_matchmaking_time=MATCHMAKING,
            request_timeout=1.0,
            next_chunk_timeout=self._silence,
            reuse_grad_buffers=True,
            allreduce_timeout=ROUND,
        )
        self.averagers.append(made)
        made.wait_until_ready(60)
        made.accumulate_grads_(1)
        return made

    def found(self):
        """Rounds of both, which have found each other and are not due yet."""
        rounds = [Round(each) for each in self.averagers]
        wait_until(lambda: all(each.control.stage is AveragingStage.AWAITING_TRIGGER for each in rounds))
        return rounds

    def tree(self, number):
        """The processes of one of them, with its DHT and p2pd."""
        averager = self.averagers[number]
        return [*forked_peers.family(averager), *forked_peers.family(averager.dht)]

    def close(self):
        forked_peers.end(self.averagers)


class Round:
    def __init__(self, averager):
        self._averager, self.control = averager, averager.schedule_step(timeout=ROUND)

    def seconds(self):
        """Let it be due; how long it then takes. What becomes of it does not matter here."""
        begun = time.monotonic()
        self._averager.step(control=self.control, wait=False)
        self.control.exception(ROUND)
        return time.monotonic() - begun


@pytest.fixture
def make_pair(make_dhts):
    made = []

    def make(kind, size=SHARED, silence=SILENCE):
        made.append(Pair(kind, make_dhts(3)[1:], size, silence))  # the first is the seed
        return made[-1]

    yield make
    for pair in made:
        pair.close()


KINDS = [pytest.param(GradientAverager, False, id="stock"), pytest.param(CheckedGradientAverager, True, id="ours")]


@pytest.mark.parametrize(("kind", "prompt"), KINDS)
def test_a_peer_that_is_late_for_its_round_is_told_at_once_that_it_is_over(make_pair, kind, prompt):
    in_time, late = make_pair(kind, silence=LESS_SILENCE).found()
    in_time.seconds()
    assert (late.seconds() < PROMPT) == prompt


@pytest.mark.parametrize(
    ("kind", "prompt", "size"),
    [
        pytest.param(GradientAverager, False, SHARED, id="stock"),
        pytest.param(CheckedGradientAverager, True, SHARED, id="ours"),
        pytest.param(CheckedGradientAverager, True, ONE_REDUCES, id="ours, one reduces"),
    ],
)
def test_nobody_waits_for_a_groupmate_that_has_died(make_pair, kind, prompt, size):
    pair = make_pair(kind, size, LESS_SILENCE)
    together(*(each.seconds for each in pair.found()))  # the stock one does not know its groupmate better by that
    survivor, _ = pair.found()
    forked_peers.kill(pair.tree(1))
    assert (survivor.seconds() < PROMPT) == prompt


@pytest.mark.parametrize(
    ("kind", "prompt", "size"),
    [
        pytest.param(GradientAverager, False, SHARED, id="stock", marks=pytest.mark.long),
        pytest.param(GradientAverager, False, ONE_REDUCES, id="stock, one reduces", marks=pytest.mark.long),
        pytest.param(CheckedGradientAverager, True, SHARED, id="ours"),
        pytest.param(CheckedGradientAverager, True, ONE_REDUCES, id="ours, one reduces"),
    ],
)
def test_a_groupmate_that_hangs_costs_less_than_one_that_is_slow(make_pair, kind, prompt, size):
    pair = make_pair(kind, size)
    survivor, _ = pair.found()
    hanging = pair.tree(1)
    forked_peers.suspend(hanging)
    try:
        seconds = survivor.seconds()
    finally:
        forked_peers.kill(hanging)
    assert (PATIENCE * SILENCE <= seconds < SILENCE) == prompt


def test_two_rounds_that_are_due_at_the_same_time_are_averaged(make_pair):
    pair = make_pair(CheckedGradientAverager)
    rounds = pair.found()
    together(*(each.seconds for each in rounds))
    assert all(each.control.result().facts.complete for each in rounds)
    with pair.averagers[0].get_tensors() as tensors:
        assert float(tensors[0].mean()) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("kind", "taken"),
    [pytest.param(GradientAverager, True, id="stock"), pytest.param(CheckedGradientAverager, False, id="ours")],
)
def test_a_peer_that_is_one_epoch_behind_is_in_no_group_whose_round_is_not_due(make_pair, kind, taken):
    pair = make_pair(kind, silence=LESS_SILENCE)
    for epoch, averager in enumerate(pair.averagers):
        averager.ends = lambda epoch=epoch: epoch  # hivemind's averagers say none
    behind, ahead = map(Round, pair.averagers)
    if taken:
        wait_until(lambda: ahead.control.stage is AveragingStage.AWAITING_TRIGGER)
    behind.seconds()
    assert ahead.control.stage is (AveragingStage.AWAITING_TRIGGER if taken else AveragingStage.LOOKING_FOR_GROUP)
    if not taken:
        assert "could not find a group" in str(behind.control.exception())
    ahead.control.cancel()


def test_a_peer_that_is_one_epoch_behind_averages_with_one_whose_round_is_due_too(make_pair):
    pair = make_pair(CheckedGradientAverager)
    for epoch, averager in enumerate(pair.averagers):
        averager.ends, averager.is_due = (lambda epoch=epoch: epoch), (lambda: True)
    rounds = [Round(each) for each in pair.averagers]
    together(*(each.seconds for each in rounds))
    assert all(each.control.result().facts.complete for each in rounds)


def test_a_peer_whose_groupmates_are_all_gone_meets_a_newcomer(make_pair, make_dhts):
    pair = make_pair(CheckedGradientAverager)
    together(*(each.seconds for each in pair.found()))
    forked_peers.kill(pair.tree(1))
    alone, newcomer = pair.averagers[0], pair.add(make_dhts(1)[-1])
    early = Round(newcomer)
    wait_until(lambda: looks_for_a_group(newcomer, alone.dht))
    late = Round(alone)
    together(early.seconds, late.seconds)
    assert late.control.result().facts.heard == (str(newcomer.peer_id),)


def looks_for_a_group(averager, dht):
    found = dht.get(f"{PREFIX}.0b", latest=True)
    entry = found.value.get(averager.peer_id.to_bytes()) if found else None
    return entry is not None and entry.value


@pytest.mark.parametrize(("kind", "ends"), KINDS)
def test_a_search_that_finds_nobody_ends_after_the_time_that_peers_need_to_meet(make_pair, kind, ends):
    control = make_pair(kind).averagers[0].step(wait=False, timeout=ROUND)
    search = MATCHMAKING + 1.0
    if ends:
        begun = time.monotonic()
        with pytest.raises(Exception, match="could not find a group"):
            control.result(ROUND)
        assert (
            search - 0.5 < time.monotonic() - begun < search + PROMPT
        )  # the clock of the round began a little earlier
    else:
        with pytest.raises(TimeoutError):
            control.result(search + PROMPT)
        control.cancel()
