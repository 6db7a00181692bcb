"""What a reducer makes of the parts of honest and of hostile peers, as functions and in a small training."""

import asyncio
import math
import random

import pytest
import torch
from hivemind.averaging.partition import AllreduceException, TensorPartReducer

from skep.worker.swarm.averaging.low_rank import MOST_TARGETS
from skep.worker.swarm.averaging.reducer import CheckedReducer
from skep.worker.swarm.averaging.returned import UsualNorms
from skep.worker.swarm.averaging.robust import LOOSE, TIGHT, Median, Part, RobustMean, mean

OWN, HOSTILE = 0, 3
PART_VALUES = 2048
SECONDS = 10


def parts(*values, weights=None, size=4):
    weights = weights or [1.0] * len(values)
    return [
        Part(sender, torch.full((size,), float(value)), weight)
        for sender, (value, weight) in enumerate(zip(values, weights, strict=True))
    ]


# --- functions


def test_the_mean_is_stocks_to_the_last_bit():
    sent = [Part(sender, torch.randn(5000), float(weight)) for sender, weight in enumerate((3, 7, 1, 5))]
    total = torch.zeros(5000)
    for each in sent:
        total.add_(each.values, alpha=each.weight)
    assert torch.equal(RobustMean(OWN).combine(0, sent).values, total.div_(16.0))


def test_one_part_alone_is_the_mean():
    assert torch.equal(RobustMean(OWN).combine(0, parts(3)).values, torch.full((4,), 3.0))
    assert torch.isnan(RobustMean(OWN).combine(0, parts(3, weights=[0.0])).values).all()


def test_a_part_far_above_the_others_is_scaled_down():
    found = RobustMean(OWN).combine(0, parts(1, 1, 1, 1000))
    assert found.scaled == {HOSTILE}
    assert float(found.values[0]) == pytest.approx((3 + TIGHT) / 4)


def test_of_two_parts_the_larger_is_bounded_by_ours():
    found = RobustMean(OWN).combine(0, parts(1, 1000))
    assert float(found.values[0]) == pytest.approx((1 + LOOSE) / 2)


def test_fewer_samples_may_have_more_noise():
    found = RobustMean(OWN).combine(0, parts(1, 1, 1, TIGHT * 9, weights=[100.0, 100.0, 100.0, 1.0]))
    assert found.scaled == set()


def test_where_others_have_nothing_our_own_gradients_are_the_reference():
    combination = RobustMean(1)
    for _ in range(3):
        combination.see_own([10.0])
    sparse = [Part(0, torch.tensor([3.0, 0.0]), 1.0), Part(1, torch.zeros(2), 1.0), Part(2, torch.zeros(2), 1.0)]
    assert combination.combine(0, sparse).scaled == set()
    huge = [Part(0, torch.tensor([3000.0, 0.0]), 1.0), *sparse[1:]]
    assert combination.combine(0, huge).scaled == {0}


def test_no_weight_is_above_the_most():
    def of_two(shapes):
        return CheckedReducer(shapes, [0, 1], RobustMean(OWN, most_weight=3.0), 0)

    first, second = in_a_round(of_two, (0, torch.zeros(4), 3.0), (1, torch.ones(4), 1e9))
    assert float(first[0]) == pytest.approx(0.5)
    assert torch.equal(first, second)


# --- the median of parameters


def test_equal_parameters_stay_as_they_are():
    assert torch.equal(Median().combine(0, parts(0.1, 0.1, 0.1)).values, torch.full((4,), 0.1))


@pytest.mark.parametrize(("values", "expected"), [((1, 1, 900), 1), ((1, 2, 3, 900), 2.5), ((1, 3), 2)])
def test_parameters_are_the_median_and_of_two_the_mean(values, expected):
    assert float(Median().combine(0, parts(*values)).values[0]) == pytest.approx(expected)


def test_peers_that_lack_steps_have_no_vote():
    found = Median().combine(0, parts(1, 1, 5, 9, 9, weights=[1e-3, 1e-3, 1.0, 1.0, 1.0]))
    assert float(found.values[0]) == 9.0
    alone = Median().combine(0, parts(1, 1, 5, weights=[1e-3, 1e-3, 1.0]))
    assert float(alone.values[0]) == pytest.approx(5.0, abs=0.01)


# --- the reducer


def in_a_round(kind, *sent):
    """What each sender gets back for one part of 4 values, or the error; None where it waits for ever."""

    async def run():
        reducer = kind([torch.Size([4])])
        calls = [reducer.accumulate_part(sender, 0, values, weight) for sender, values, weight in sent]
        tasks = [asyncio.ensure_future(call) for call in calls]
        await asyncio.sleep(0)
        for (sender, *_), task in zip(sent, tasks, strict=True):
            if task.done() and task.exception():
                reducer.on_sender_failed(sender)  # as hivemind does
        done, waiting = await asyncio.wait(tasks, timeout=0.5)
        for task in waiting:
            task.cancel()
        return [(task.exception() or task.result()) if task in done else None for task in tasks]

    return asyncio.run(asyncio.wait_for(run(), SECONDS))


def stock(shapes):
    return TensorPartReducer(shapes, 3)


def ours(shapes):
    return CheckedReducer(shapes, [0, 1, 2], RobustMean(OWN), 0)


GOOD = [(0, torch.ones(4), 1.0), (1, torch.ones(4), 1.0)]
BAD = {
    "not finite": (2, torch.tensor([1.0, math.nan, 1.0, 1.0]), 1.0),
    "too large to have a norm": (2, torch.full((4,), 3e38), 1.0),
    "another shape": (2, torch.ones(7), 1.0),
    "a shape that is broadcast": (2, torch.full((1,), 100.0), 1.0),
    "whole numbers": (2, torch.full((4,), 7), 1.0),
    "a negative weight": (2, torch.ones(4) * 5, -1.0),
    "a weight that is none": (2, torch.ones(4), math.nan),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_part_bans_its_sender_and_the_round_goes_on(bad):
    first, second, refused = in_a_round(ours, *GOOD, BAD[bad])
    assert isinstance(refused, AllreduceException)
    assert torch.equal(first, torch.ones(4))
    assert torch.equal(second, torch.ones(4))


@pytest.mark.parametrize("bad", BAD)
def test_in_stock_hivemind_a_bad_part_changes_the_average_or_stops_the_round(bad):
    for got in in_a_round(stock, *GOOD, BAD[bad])[:2]:
        assert got is None or not torch.equal(got, torch.ones(4))


def test_a_second_stream_of_a_sender_counts_for_nobody():
    def sent_twice(shapes):
        return CheckedReducer([*shapes, torch.Size([7])], [0, 1, 2], Median(), 0)

    evil = (2, torch.full((4,), 1e6), 1.0)
    results = in_a_round(sent_twice, evil, evil, evil, GOOD[0], GOOD[1])
    assert [isinstance(each, AllreduceException) for each in results] == [False, True, True, False, False]
    assert torch.equal(results[3], torch.ones(4))


def test_more_senders_than_are_remembered_make_a_round():
    combination = RobustMean(OWN)
    for _ in range(3):
        combination.begin()
        found = combination.combine(0, [Part(peer, torch.ones(4), 1.0) for peer in range(300)])
    assert torch.allclose(found.values, torch.ones(4))
    assert not found.left_out


def test_a_sender_that_is_banned_before_its_part_is_not_waited_for():
    def without_the_third(shapes):
        made = ours(shapes)
        made.on_sender_failed(2)
        return made

    first, second = in_a_round(without_the_third, *GOOD)
    assert torch.equal(first, torch.ones(4))
    assert torch.equal(second, torch.ones(4))


# --- a training


class Training:
    """A classifier that peers train with the gradients of their own samples, combined as by one reducer."""

    def __init__(self, sizes, seed=0):
        torch.manual_seed(seed)
        self.sizes, self.combination = sizes, RobustMean(OWN)
        self.teacher = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8))
        for parameter in self.teacher.parameters():
            parameter.data *= 3
        self.model = torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.Tanh(), torch.nn.Linear(128, 8))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-3)
        self.chance = [torch.Generator().manual_seed(100 + peer) for peer in range(len(sizes))]
        self.scaled, self.left_out, self.weight = [], [], None
        """`weight`: of the hostile peer; None for as many samples as it has."""
        self.usual = [UsualNorms() for _ in sizes]
        self.nearest = 0.0
        """Of what a reducer returned, beside the most that it may return."""

    def samples(self, count, chance):
        inputs = torch.randn(count, 32, generator=chance)
        with torch.no_grad():
            return inputs, self.teacher(inputs).argmax(dim=1)

    def gradient(self, peer):
        self.model.zero_grad()
        inputs, labels = self.samples(self.sizes[peer], self.chance[peer])
        torch.nn.functional.cross_entropy(self.model(inputs), labels).backward()
        return torch.cat([each.grad.flatten() for each in self.model.parameters()])

    def epoch(self, peers, attack=None):
        gradients = {peer: self.gradient(peer) for peer in peers}
        whole = {peer: gradient.split(PART_VALUES) for peer, gradient in gradients.items()}
        self.combination.begin()
        self.combination.see_own([float(part.norm()) for part in whole[OWN]])
        combined = []
        for number in range(len(whole[OWN])):
            sent = [Part(peer, whole[peer][number], float(self.sizes[peer])) for peer in peers]
            if attack:
                self.weigh(sent)
                sent[HOSTILE] = self.attacked(number, sent, attack)
            found = self.combination.combine(number, sent)
            combined.append(found.values)
            self.scaled += found.scaled
            self.left_out += found.left_out
        for peer in peers:
            self.compare_returned(self.usual[peer], whole[peer], combined)
        done = 0
        flat = torch.cat(combined)
        for each in self.model.parameters():
            each.grad = flat[done : done + each.numel()].view_as(each).clone()
            done += each.numel()
        self.optimizer.step()

    def compare_returned(self, usual, own, combined):
        """With every two parts of another reducer."""
        slabs = [range(first, min(first + 2, len(own))) for first in range(0, len(own), 2)]
        limits = usual.begin(
            [float(part.norm()) for part in own], [[len(own[part]) for part in slab] for slab in slabs]
        )
        for number, part in enumerate(combined):
            usual.see(number, float(part.norm()))
        for slab, limit in zip(slabs, limits, strict=True):
            self.nearest = max(self.nearest, float(torch.cat([combined[part] for part in slab]).norm()) / limit)

    def attacked(self, number, sent, attack):
        """The hostile peer's part, with a norm just below the one from which it would be scaled down."""
        values = attack([part.values for part in sent])
        norms = [float(part.values.norm()) for part in sent]
        reference = self.combination._references(number, sent, norms)[HOSTILE]
        most = self.combination._most(HOSTILE, reference, judged=True)
        return Part(HOSTILE, values * (0.99 * most / float(values.norm())), sent[HOSTILE].weight)

    def weigh(self, sent):
        if self.weight:
            sent[HOSTILE] = Part(HOSTILE, sent[HOSTILE].values, self.weight)

    def loss(self):
        inputs, labels = self.samples(4000, torch.Generator().manual_seed(7))
        with torch.no_grad():
            return float(torch.nn.functional.cross_entropy(self.model(inputs), labels))


ATTACKS = {
    "sign-flipped": lambda sent: -sent[HOSTILE],
    "the others' mean, sign-flipped": lambda sent: -sum(sent[:HOSTILE]),
    "constant": lambda sent: torch.ones_like(sent[HOSTILE]),
    "noise": lambda sent: torch.randn(sent[HOSTILE].shape, generator=torch.Generator().manual_seed(1)),
}
EPOCHS = 400
SIZES = (32, 32, 32, 32)


def trained(attack=None, sizes=SIZES, epochs=EPOCHS, weight=None):
    made = Training(sizes)
    made.weight = weight
    for _ in range(epochs):
        made.epoch(range(len(sizes)), attack)
    return made


@pytest.fixture(scope="module")
def calm():
    made = trained()
    assert made.loss() < 0.5 * Training(SIZES).loss()
    assert (made.scaled, made.left_out) == ([], [])
    return made.loss()


@pytest.mark.parametrize("weight", [None, MOST_TARGETS * sum(SIZES)], ids=["its samples", "the most that one may have"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_poison_of_one_of_four_leaves_the_loss_within_5_percent(calm, attack, weight):
    poisoned = trained(ATTACKS[attack], weight=weight)
    assert poisoned.loss() < 1.05 * calm
    assert set(poisoned.left_out) == {HOSTILE}


def test_in_500_rounds_of_unequal_pausing_peers_nobody_honest_is_touched():
    chance = random.Random(5)
    made = Training((16, 1, 2, 8, 32))
    for _ in range(500):
        made.epoch([OWN, *(peer for peer in range(1, 5) if chance.random() < 0.8)])
    assert (made.scaled, made.left_out) == ([], [])
    assert made.nearest < 0.5


def test_a_peer_that_agrees_again_is_admitted_again():
    made = Training(SIZES)
    for _ in range(20):
        made.epoch(range(4), ATTACKS["sign-flipped"])
    assert HOSTILE in made.left_out
    rounds = 0
    while made.combination._conduct(HOSTILE).left_out:
        made.epoch(range(4))
        rounds += 1
        assert rounds < 150


def test_what_is_remembered_of_peers_is_bounded():
    combination = RobustMean(OWN)
    for round_ in range(200):
        combination.begin()
        combination.combine(0, [Part(f"{round_}-{peer}", torch.ones(1024), 1.0) for peer in range(4)])
    combination.begin()
    assert len(combination._conducts) <= 256


def test_the_mean_of_no_weight_is_no_number():
    assert torch.isnan(mean(parts(1, 2, weights=[0.0, 0.0]))).all()
