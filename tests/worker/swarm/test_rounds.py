import threading
from dataclasses import replace

import pytest

from english import spoken
from skep.core.session.messages import ContributionConfirmed, ContributionLost, ContributionPending
from skep.core.text import verbatim
from skep.worker.swarm.rounds import RoundFacts, Rounds

GOOD = RoundFacts(group_size=3, heard=("a", "b"), missing=(), complete=True)
EMPTY = RoundFacts(group_size=2, heard=(), missing=("a",), complete=False)
IDLE = RoundFacts(group_size=2, heard=(), missing=(), complete=False, idle=True)
PARTIAL = RoundFacts(group_size=3, heard=("a",), missing=("b",), complete=False)


@pytest.fixture
def told():
    return []


@pytest.fixture
def rounds(told):
    return Rounds("s", told.append)


def opened(rounds, epoch, samples):
    rounds.grow(epoch, samples)
    return rounds.open(epoch)


def test_a_verified_round_that_the_optimizer_used_is_confirmed(rounds, told):
    round_ = opened(rounds, 7, 64)
    round_.settle(GOOD)
    rounds.close()
    assert told == [ContributionPending("s-0000", 7, 64), ContributionConfirmed("s-0000", 7, 64, 2)]
    assert rounds.last_peers == 2


def test_a_part_of_the_growing_contribution_is_lost_as_one_of_its_own(rounds, told):
    rounds.grow(7, 64)
    rounds.lose_part(24, verbatim("a device stopped"))
    assert [type(news) for news in told] == [ContributionPending, ContributionLost]
    assert [(news.id, news.samples) for news in told] == [("s-0000", 24)] * 2
    assert (rounds.grown, rounds.growing) == (40, "s-0001")
    round_ = rounds.open(7)
    round_.settle(GOOD)
    rounds.close()
    assert told[-1] == ContributionConfirmed("s-0001", 7, 40, 2)


def test_the_peers_of_confirmed_rounds_are_told(rounds):
    met = []
    rounds.met = met.append
    opened(rounds, 7, 64).settle(PARTIAL)
    rounds.close()
    opened(rounds, 8, 64).settle(GOOD)
    rounds.close()
    assert met == [GOOD.heard]


def test_an_epoch_alone_is_lost_though_the_optimizer_steps(rounds, told):
    round_ = opened(rounds, 0, 8)
    assert round_.usable
    rounds.close()
    assert spoken(told[-1]) == ContributionLost("s-0000", 0, 8, verbatim("no other peer"))


@pytest.mark.parametrize(
    ("facts", "usable", "reason", "peers"),
    [
        (EMPTY, False, "no other peer's data arrived", 0),
        (PARTIAL, True, "part of the round failed", 1),
        (IDLE, True, "the other peers had computed nothing", 0),
        (replace(IDLE, arrived=False), False, "no other peer's data arrived", 0),
        (replace(IDLE, refused=True), False, "no other peer's data arrived", 0),
    ],
)
def test_a_round_is_worth_what_was_received_not_the_size_of_its_group(rounds, told, facts, usable, reason, peers):
    round_ = opened(rounds, 1, 8)
    round_.settle(facts)
    assert round_.usable is usable
    rounds.close()
    assert spoken(told[-1]) == ContributionLost("s-0000", 1, 8, verbatim(reason), peers)


def test_a_round_in_which_nobody_has_computed_is_not_stepped_on(rounds):
    round_ = opened(rounds, 1, 0)
    round_.settle(IDLE)
    assert not round_.usable


def test_peers_share_the_average_of_a_round_in_which_only_one_had_computed():
    assert IDLE.equal
    assert not IDLE.shared
    assert not replace(IDLE, arrived=False).equal


def test_a_failed_round_forbids_the_step(rounds, told):
    round_ = opened(rounds, 1, 8)
    round_.fail(verbatim("the round took too long"))
    assert not round_.usable
    rounds.close(verbatim("the round failed"))
    assert spoken(told[-1]) == ContributionLost("s-0000", 1, 8, verbatim("the round took too long"))


def test_a_good_round_the_optimizer_refused_is_lost(rounds, told):
    opened(rounds, 1, 8).settle(GOOD)
    rounds.close(verbatim("the averaged gradients were not finite"))
    assert spoken(told[-1]) == ContributionLost("s-0000", 1, 8, verbatim("the averaged gradients were not finite"), 2)


def test_a_round_without_samples_of_ours_is_no_contribution(rounds, told):
    opened(rounds, 1, 0).settle(GOOD)
    rounds.close()
    assert told == []
    assert rounds.last_peers == 2


def test_opening_the_next_round_closes_one_the_optimizer_never_reached(rounds, told):
    opened(rounds, 1, 8).settle(GOOD)
    opened(rounds, 2, 8)
    assert spoken(told[1]) == ContributionLost("s-0000", 1, 8, verbatim("the optimizer did not use the result"), 2)
    assert told[2] == ContributionPending("s-0001", 2, 8)


def test_an_end_loses_the_round_in_flight_and_what_never_reached_one(rounds, told):
    opened(rounds, 3, 8)
    rounds.grow(4, 16)
    rounds.end(verbatim("left before the round"))
    assert spoken(told) == [
        ContributionPending("s-0000", 3, 8),
        ContributionLost("s-0000", 3, 8, verbatim("left before the round")),
        ContributionPending("s-0001", 4, 16),
        ContributionLost("s-0001", 4, 16, verbatim("left before the round")),
    ]


def test_after_the_end_a_thread_that_goes_on_is_not_heard(rounds, told):
    round_ = opened(rounds, 3, 8)
    rounds.end(verbatim("left before the round"))
    told.clear()
    round_.settle(GOOD)
    rounds.close()
    opened(rounds, 4, 8)
    rounds.lose(verbatim("gradients that were not finite"))
    rounds.end(verbatim("the training process stopped"))
    assert told == []
    assert rounds.grown == 0


def test_losing_twice_in_one_epoch_makes_two_contributions(rounds, told):
    for samples in (16, 8):
        rounds.grow(4, samples)
        rounds.lose(verbatim("gradients that were not finite"))
    assert [m.id for m in told if isinstance(m, ContributionLost)] == ["s-0000", "s-0001"]


def test_losing_nothing_is_no_contribution(rounds, told):
    rounds.lose(verbatim("gradients that were not finite"))
    assert told == []
    assert rounds.growing == "s-0000"


def test_what_went_into_a_round_does_not_grow_any_more(rounds, told):
    rounds.grow(1, 4)
    rounds.grow(1, 4)
    assert (rounds.growing, rounds.grown) == ("s-0000", 8)
    rounds.open(1)
    assert (rounds.growing, rounds.grown) == ("s-0001", 0)
    rounds.lose(verbatim("this computer was behind the swarm"))
    assert told == [ContributionPending("s-0000", 1, 8)]


THREADS = 4


def test_threads_that_grow_lose_and_end_at_once_account_for_each_sample_once(told):
    rounds = Rounds("s", told.append)
    begin = threading.Barrier(THREADS)

    def train():
        begin.wait()
        for epoch in range(200):
            opened(rounds, epoch, 1).settle(GOOD)
            rounds.close()

    def end():
        begin.wait()
        rounds.end(verbatim("left before the round"))

    threads = [threading.Thread(target=target) for target in (train, end, end, end)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [message.id for message in told if isinstance(message, ContributionPending)]
    settled = [message.id for message in told if not isinstance(message, ContributionPending)]
    assert len(set(ids)) == len(ids)
    assert settled == ids


def test_closing_with_nothing_open_is_harmless(rounds, told):
    rounds.close()
    assert told == []
