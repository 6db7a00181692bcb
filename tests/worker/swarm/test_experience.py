"""Which progress records of other peers are believed, and for how much they count."""

import math
from dataclasses import replace
from statistics import median

import pytest

from skep.worker.swarm.claims import Believed, Claim
from skep.worker.swarm.deliveries import ABSENT_ROUNDS
from skep.worker.swarm.experience import Experience
from skep.worker.swarm.met_peers import MET_ROUNDS
from skep.worker.swarm.possible_epochs import FASTER, LATE, LOADS_COMPARED

OWN = Claim("own", 100, 40, 4.0)
ANN, BOB = Claim("ann", 100, 60, 6.0), Claim("bob", 100, 30, 3.0)
EPOCH_SECONDS = 20.0
NOW = 1000.0


def epochs(believed):
    return {key: claim.epoch for key, claim in believed.claims.items()}


@pytest.fixture
def experience():
    """Five rounds with Ann and Bob, of which the last has just ended epoch 99."""
    made = Experience()
    for number in range(5):
        made.averaged(95 + number, ("ann", "bob"), NOW - (4 - number) * EPOCH_SECONDS)
    return made


@pytest.mark.parametrize("claims", [{}, {1: ANN}, {1: ANN, 2: Claim("liar", 10**9, 2**62, 1e30)}])
def test_a_newcomer_believes_all(claims):
    made = Experience()
    assert made.believed(claims, OWN, NOW).claims == claims
    assert made.possible(NOW) == math.inf


@pytest.mark.parametrize(
    ("claimed", "seconds", "believed"),
    [
        (101, 0, True),  # others end an epoch a little earlier than we do
        (102, 0, False),
        (102, EPOCH_SECONDS - 1, False),
        (102, EPOCH_SECONDS + 1, True),
        (103, EPOCH_SECONDS + 1, False),
        (103, LATE * EPOCH_SECONDS - 1, True),
        (104, LATE * EPOCH_SECONDS - 1, False),
        (101 + 500, LATE * EPOCH_SECONDS + 500, True),  # as for a computer that slept
        (10**9, 3600, False),
        (10**9, -3600, False),  # the clock was set back
    ],
)
def test_one_peers_epoch_is_believed_if_the_swarm_may_have_reached_it(experience, claimed, seconds, believed):
    found = experience.believed({1: ANN, 2: BOB, 3: Claim("liar", claimed, 0, 0.0)}, OWN, NOW + seconds)
    assert (3 in found.claims) == believed
    assert {1, 2} <= found.claims.keys()


def test_what_half_of_the_met_peers_say_is_believed(experience):
    far = {1: Claim("ann", 150, 0, 0.0), 2: Claim("bob", 150, 0, 0.0), 3: Claim("new", 151, 0, 0.0)}
    assert epochs(experience.believed(far, OWN, NOW)) == {1: 150, 2: 150}
    one_behind = far | {2: Claim("bob", 100, 0, 0.0)}
    assert epochs(experience.believed(one_behind, OWN, NOW)) == {2: 100}


def test_any_number_of_strangers_is_not_believed_beside_one_that_we_have_met(experience):
    claims = {number: Claim(f"liar {number}", 10**9, 0, 0.0) for number in range(50)} | {-1: ANN}
    assert epochs(experience.believed(claims, OWN, NOW)) == {-1: 100}


def test_any_number_of_strangers_is_not_believed_while_those_that_we_have_met_are_away(experience):
    claims = {number: Claim(f"liar {number}", 150, 0, 0.0) for number in range(50)}
    assert experience.believed(claims, OWN, NOW) == Believed({})
    assert experience.believed(claims, OWN, NOW + LATE * EPOCH_SECONDS + 50).claims == claims  # it may be true by now


def test_nor_is_it_of_a_newcomer_that_has_loaded_a_state():
    made = Experience()
    made.loaded(100, NOW)
    claims = {number: Claim(f"liar {number}", 10**9, 0, 0.0) for number in range(50)} | {-1: ANN}
    assert epochs(made.believed(claims, OWN, NOW)) == {-1: 100}


def test_the_epoch_that_others_have_reached_is_known_of_those_that_we_have_met(experience):
    ahead = {1: replace(ANN, epoch=102), 2: replace(BOB, epoch=101), 3: Claim("new", 100, 0, 0.0)}
    assert experience.believed(ahead, OWN, NOW).at_least == 101
    assert experience.believed({3: Claim("new", 101, 0, 0.0)}, OWN, NOW).at_least == 0
    assert Experience().believed(ahead, OWN, NOW).at_least == 0


def test_a_state_that_was_loaded_says_where_the_swarm_is():
    made = Experience()
    made.loaded(100, NOW)
    assert made.possible(NOW) == 101
    assert made.possible(NOW + 30) == 131
    made.loaded(90, NOW + 30)
    assert made.possible(NOW + 30) == 131
    claims = {1: ANN, 2: Claim("liar", 10**9, 0, 0.0)}
    assert epochs(made.believed(claims, OWN, NOW + 1)) == {1: 100}


@pytest.mark.parametrize("pauses", [[600.0] * LOADS_COMPARED, [600.0, 28_800.0, 600.0], [900.0, 600.0, 1200.0]])
def test_states_that_were_loaded_from_time_to_time_say_how_long_an_epoch_lasts_at_least(pauses):
    made, at, epoch = Experience(), NOW, 100
    made.loaded(epoch, at)
    for pause in pauses:
        assert made.possible(at + 600) == epoch + 1 + 600  # too little is known
        at, epoch = at + pause, epoch + 10
        made.loaded(epoch, at)
    assert made.possible(at + 30) == epoch + 1 + 30
    assert made.possible(at + 600) == epoch + 1 + 600 // (60 / FASTER)
    assert made.possible(at + 1200) == epoch + 1 + 1200 // (60 / FASTER)
    assert made.possible(at + LATE * median(pauses)) == epoch + 1 + LATE * median(pauses)


def test_so_they_do_if_each_time_includes_a_night_without_peers():
    made, night = Experience(), 26 * 3600.0
    for number in range(LOADS_COMPARED + 1):
        made.loaded(100 + 10 * number, NOW + number * night)
    loaded, at = 100 + 10 * LOADS_COMPARED, NOW + LOADS_COMPARED * night
    assert made.possible(at + 3 * 600) == loaded + 1 + FASTER * 10  # it may have gone on by 3 epochs
    assert made.possible(at + night) == loaded + 1 + FASTER * 10


def test_what_a_computer_has_kept_says_nothing_about_that():
    made = Experience()
    made.had_reached(100, NOW - 1e6)
    for number in range(LOADS_COMPARED):
        made.loaded(110 + 10 * number, NOW + 600 * number)
    assert made.possible(NOW + 600 * LOADS_COMPARED) == 100 + 10 * LOADS_COMPARED + 1 + 600


def test_strangers_count_for_no_more_than_we_and_those_that_we_have_met(experience):
    claims = {1: ANN, 2: BOB, 3: Claim("new", 100, 1000, 100.0), 4: Claim("newer", 100, 300, 30.0)}
    found = experience.believed(claims, OWN, NOW).claims
    assert (found[1], found[2]) == (ANN, BOB)
    assert found[3].samples + found[4].samples == pytest.approx(130, abs=2)
    assert found[3].rate + found[4].rate == pytest.approx(13.0)
    assert found[3].rate == pytest.approx(10.0)


def test_strangers_that_claim_less_are_counted_in_full(experience):
    claims = {1: ANN, 3: Claim("new", 100, 90, 9.0)}
    assert experience.believed(claims, OWN, NOW).claims == claims


def test_a_peer_met_a_few_rounds_ago_is_a_stranger_again(experience):
    resting = Claim("bob", 100, 0, 1000.0)
    for number in range(MET_ROUNDS):
        assert experience.believed({1: ANN, 2: resting}, OWN, NOW).claims[2] == resting
        experience.averaged(100 + number, ("ann",), NOW + number)
    assert experience.believed({1: ANN, 2: resting}, OWN, NOW).claims[2].rate == OWN.rate + ANN.rate


def test_another_record_under_the_id_of_a_peer_makes_both_strangers(experience):
    claims = {1: ANN, 2: BOB, 3: Claim("bob", 10**9, 1000, 0.0), 4: Claim("bob", 100, 1000, 0.0)}
    found = experience.believed(claims, OWN, NOW).claims
    assert found.keys() == {1, 2, 4}
    assert found[1] == ANN
    assert found[2].samples + found[4].samples <= 100


def test_unless_there_was_only_one_when_we_averaged_with_that_peer():
    made = Experience()
    made.believed({1: ANN, 2: BOB}, OWN, NOW)
    made.averaged(99, ("ann", "bob"), NOW)
    claims = {1: ANN, 2: BOB, 3: Claim("bob", 10**9, 0, 0.0), 4: Claim("ann", 10**9, 0, 0.0)}
    assert made.believed(claims, OWN, NOW) == Believed({1: ANN, 2: BOB}, 100, 100)
    made.averaged(100, ("ann", "bob"), NOW)  # as for as long as we average with it
    assert made.believed(claims, OWN, NOW) == Believed({1: ANN, 2: BOB}, 100, 100)
    restarted = {1: ANN, 5: BOB}  # with another key
    assert made.believed(restarted, OWN, NOW).at_least == 100
    made.averaged(101, ("bob",), NOW)
    assert made.believed(restarted | {3: claims[3]}, OWN, NOW) == Believed({1: ANN, 5: BOB}, 100, 100)


def test_samples_that_come_into_no_round_count_for_nothing_until_they_do(experience):
    for number in range(ABSENT_ROUNDS):
        found = experience.believed({1: ANN, 3: Claim("new", 100 + number, 5, 1.0)}, OWN, NOW)
        assert found.claims[3].samples == 5
        experience.averaged(100 + number, ("ann",), NOW + number)
    own = replace(OWN, epoch=100 + ABSENT_ROUNDS)
    later = {1: ANN, 3: Claim("new", own.epoch, 5, 1.0)}
    assert experience.believed(later, own, NOW).claims[3] == Claim("new", own.epoch, 0, 0.0)
    assert experience.believed({3: later[3]}, own, NOW).claims == {3: later[3]}  # no other peer has a record
    experience.averaged(own.epoch, ("ann", "new"), NOW + ABSENT_ROUNDS)
    assert experience.believed(later, own, NOW + ABSENT_ROUNDS).claims == later


def test_an_epoch_beyond_ours_is_no_longer_believed_of_a_peer_that_comes_into_no_round(experience):
    for number in range(ABSENT_ROUNDS + 1):
        claims = {1: ANN, 3: Claim("liar", 101 + number, 0, 0.0)}
        found = experience.believed(claims, replace(OWN, epoch=100 + number), NOW + number)
        assert (3 in found.claims) == (number < ABSENT_ROUNDS)
        experience.averaged(100 + number, ("ann",), NOW + number)


def test_samples_of_an_earlier_epoch_and_peers_at_rest_are_not_missed_in_a_round(experience):
    for number in range(2 * ABSENT_ROUNDS):
        late, resting = Claim("late", 99 + number, 5, 1.0), Claim("resting", 100 + number, 0, 0.0)
        found = experience.believed({1: ANN, 3: late, 4: resting}, replace(OWN, epoch=100 + number), NOW + number)
        experience.averaged(100 + number, ("ann",), NOW + number)
    assert found.claims[3] == late


@pytest.mark.parametrize(
    ("epochs", "usual"), [([], 0), ([60], 0), ([60, 60], 60), ([60, 61], 60), ([79, 60, 60], 60), ([79, 79, 60], 79)]
)
def test_where_most_of_the_others_are(epochs, usual):
    claims = {number: Claim(f"peer {number}", epoch, 0, 0.0) for number, epoch in enumerate(epochs)}
    assert Experience().believed(claims, OWN, NOW).usual == usual


def test_several_records_of_one_peer_are_no_majority():
    assert Experience().believed({number: Claim("ann", 60, 0, 0.0) for number in range(3)}, OWN, NOW).usual == 0


def test_nor_are_peers_that_nobody_answers_for(experience):
    claims = {number: Claim(f"invented {number}", 60, 0, 0.0) for number in range(9)} | {-1: ANN}
    assert experience.believed(claims, OWN, NOW, there=of_those()).usual == 0
    assert experience.believed(claims, OWN, NOW).usual == 60


# --- peers that nobody has met


def of_those(*there):
    return lambda peers: {peer: float(peer in there) for peer in peers}


def test_a_peer_that_nobody_has_met_counts_if_somebody_answers_under_its_id(experience):
    claims = {1: ANN, 3: Claim("new", 100, 30, 3.0), 4: Claim("invented", 100, 50, 5.0)}
    found = experience.believed(claims, OWN, NOW, there=of_those("new")).claims
    assert found == {1: ANN, 3: claims[3], 4: Claim("invented", 100, 0, 0.0)}


def test_where_that_is_not_known_it_counts_for_a_part_of_no_more_than_the_largest_of_those_that_we_have_met(experience):
    claims = {1: ANN, 2: Claim("new", 100, 90, 9.0), 3: Claim("perhaps", 100, 10**12, 1e12)}
    found = experience.believed(claims, OWN, NOW, there=lambda _peers: {"new": 1.0, "perhaps": 0.1}).claims
    assert found == claims | {3: Claim("perhaps", 100, 6, pytest.approx(0.6))}


def test_so_it_is_for_one_that_has_met_nobody_yet():
    claims = {number: Claim(f"invented {number}", 100, 50, 5.0) for number in range(50)} | {-1: ANN}
    found = Experience().believed(claims, OWN, NOW, there=of_those("ann")).claims
    assert (sum(claim.samples for claim in found.values()), sum(claim.rate for claim in found.values())) == (60, 6.0)


def test_who_has_been_met_is_not_asked_for(experience):
    asked = []
    experience.believed(
        {1: ANN, 3: Claim("new", 100, 30, 3.0)},
        OWN,
        NOW,
        there=lambda peers: asked.extend(peers) or dict.fromkeys(peers, 1.0),
    )
    assert asked == ["new"]


def test_several_records_under_the_id_of_a_peer_that_is_there_count_as_one():
    claims = {number: Claim("new", 100, 40, 4.0) for number in range(4)}
    found = Experience().believed(claims, OWN, NOW, there=of_those("new")).claims
    assert sum(claim.samples for claim in found.values()) == 40


# --- what is claimed, and what is delivered


def rounds_with(made, delivered, claimed=100, rate=0.0, age=0.0, peer="bob", first=100):
    """Rounds in which Bob claims `claimed` and delivers `delivered`; returns what counts of his next claim."""
    for number, samples in enumerate(delivered):
        own = replace(OWN, epoch=first + number)
        made.believed({1: replace(ANN, epoch=own.epoch), 2: Claim(peer, own.epoch, claimed, rate, age)}, own, NOW)
        made.averaged(own.epoch, ("ann", peer), NOW + number, {"ann": 60.0, peer: samples})
    own = replace(OWN, epoch=first + len(delivered))
    return made.believed({2: Claim(peer, own.epoch, 1000, 100.0)}, own, NOW).claims[2]


@pytest.mark.parametrize(
    ("delivered", "counts"),
    [
        ([100], 1000),
        ([400], 1000),  # it went on after it had told
        ([85], 1000),
        ([40], 500),
        ([1], 12),
        ([100, 1, 100], 1000),  # one round that went wrong
        ([1, 1, 100], 12),
        ([1, 1, 100, 100], 1000),
    ],
)
def test_a_peer_counts_for_the_part_of_its_claims_that_it_delivers(experience, delivered, counts):
    found = rounds_with(experience, delivered)
    assert (found.samples, found.rate) == (counts, pytest.approx(counts / 10, rel=0.05))


def test_a_rate_is_a_claim_too(experience):
    assert rounds_with(experience, [10], claimed=10, rate=50.0, age=2.0).samples == pytest.approx(
        1000 * 1.25 / 11, abs=1
    )


def test_the_most_that_it_has_claimed_in_an_epoch_is_what_it_has_to_deliver(experience):
    experience.believed({2: Claim("bob", 100, 1000, 0.0)}, OWN, NOW)
    experience.believed({2: Claim("bob", 100, 10, 0.0)}, OWN, NOW)
    experience.averaged(100, ("bob",), NOW, {"bob": 10.0})
    assert experience.believed({2: Claim("bob", 101, 1000, 0.0)}, replace(OWN, epoch=101), NOW).claims[2].samples == 12


def test_a_round_that_ends_an_epoch_later_is_judged_as_well(experience):
    experience.believed({2: Claim("bob", 100, 1000, 0.0)}, OWN, NOW)
    experience.believed({2: Claim("bob", 101, 5, 0.0)}, replace(OWN, epoch=101), NOW)
    experience.averaged(100, ("bob",), NOW, {"bob": 10.0})
    assert experience.believed({2: Claim("bob", 101, 1000, 0.0)}, replace(OWN, epoch=101), NOW).claims[2].samples == 12


def test_of_a_peer_whose_deliveries_are_not_known_nothing_is_taken_away(experience):
    experience.believed({2: Claim("bob", 100, 1000, 0.0)}, OWN, NOW)
    experience.averaged(100, ("bob",), NOW)  # another peer reduces
    assert (
        experience.believed({2: Claim("bob", 101, 1000, 0.0)}, replace(OWN, epoch=101), NOW).claims[2].samples == 1000
    )


def test_a_peer_that_was_away_for_long_begins_anew(experience):
    rounds_with(experience, [1])
    for number in range(MET_ROUNDS):
        experience.averaged(101 + number, ("ann",), NOW + number)
    own = replace(OWN, epoch=102 + MET_ROUNDS)
    experience.believed({2: Claim("bob", own.epoch - 1, 10, 0.0)}, own, NOW)
    experience.averaged(101 + MET_ROUNDS, ("ann", "bob"), NOW + 9)
    assert experience.believed({2: Claim("bob", own.epoch, 1000, 0.0)}, own, NOW).claims[2].samples == 1000


# --- when the epoch has ended for others


@pytest.mark.parametrize(
    ("samples", "believed"),
    [(0, False), (30, False), (50, True), (1000, True)],
)
def test_one_peer_in_the_next_epoch_is_believed_once_most_samples_of_this_one_are_there(experience, samples, believed):
    third = Claim("cleo", 100, 0, 0.0)
    experience.averaged(99, ("ann", "bob", "cleo"), NOW)
    claims = {1: replace(ANN, samples=samples), 2: replace(BOB, epoch=101, samples=0), 3: third}
    found = experience.believed(claims, replace(OWN, samples=30, rate=0.0), NOW, target=100)
    assert (found.claims.get(2) is not None) == believed


def test_what_a_peer_had_before_it_went_on_counts(experience):
    experience.averaged(99, ("ann", "bob", "cleo"), NOW)
    claims = {1: replace(ANN, samples=0), 2: replace(BOB, samples=60), 3: Claim("cleo", 100, 0, 0.0)}
    own = replace(OWN, samples=30)
    experience.believed(claims, own, NOW, target=100)
    for _ in range(2):
        found = experience.believed(claims | {2: replace(BOB, epoch=101, samples=0)}, own, NOW, target=100)
        assert found.claims[2].epoch == 101


def test_half_of_the_met_peers_need_no_samples_for_it(experience):
    experience.averaged(99, ("ann", "bob", "cleo"), NOW)
    claims = {1: replace(ANN, epoch=101, samples=0), 2: replace(BOB, samples=0), 3: Claim("cleo", 101, 0, 0.0)}
    assert experience.believed(claims, replace(OWN, samples=0), NOW, target=100).claims[1].epoch == 101


@pytest.mark.parametrize("known_before", [True, False])
def test_false_records_under_the_id_of_a_peer_do_not_judge_it(experience, known_before):
    false = {number: Claim("bob", 100, 10**6, 0.0) for number in (8, 9)}
    if known_before:
        experience.believed({1: ANN, 2: BOB}, OWN, NOW)
        experience.averaged(99, ("ann", "bob"), NOW)
    for number in range(3):
        own = replace(OWN, epoch=100 + number)
        claims = {1: ANN, 2: BOB} | false
        experience.believed({key: replace(claim, epoch=own.epoch) for key, claim in claims.items()}, own, NOW)
        experience.averaged(own.epoch, ("ann", "bob"), NOW + number, {"ann": 60.0, "bob": 30.0})
    alone = experience.believed({2: replace(BOB, epoch=103)}, replace(OWN, epoch=103), NOW + 3)
    assert alone.claims[2].samples == 30


def test_a_met_peer_that_was_missing_in_the_last_round_counts_as_a_stranger(experience):
    claims = {1: ANN, 2: replace(BOB, samples=1000)}
    experience.believed(claims, OWN, NOW)
    experience.averaged(100, ("ann",), NOW)
    own = replace(OWN, epoch=101)
    later = {key: replace(claim, epoch=101) for key, claim in claims.items()}
    assert experience.believed(later, own, NOW).claims[2].samples == OWN.samples + ANN.samples
    experience.averaged(101, ("ann", "bob"), NOW, {"ann": 60.0, "bob": 1000.0})
    latest = {key: replace(claim, epoch=102) for key, claim in claims.items()}
    assert experience.believed(latest, replace(OWN, epoch=102), NOW).claims[2].samples == 1000


UVE, VIC = Claim("uve", 100, 50, 5.0), Claim("vic", 100, 50, 5.0)


def in_turn(experience, *rounds):
    """What counts of the samples of Ann and Bob after rounds with these peers."""
    for number, heard in enumerate((*rounds, ())):
        claims = {key: replace(claim, epoch=100 + number) for key, claim in ((1, ANN), (2, BOB), (3, UVE), (4, VIC))}
        found = experience.believed(claims, replace(OWN, epoch=100 + number), NOW + number).claims
        if heard:
            experience.averaged(100 + number, heard, NOW + number)
    return sum(found[key].samples for key in (1, 2))


TOGETHER, APART = ("ann", "bob"), ("uve",)


@pytest.mark.parametrize(
    ("rounds", "whole"),
    [
        ([APART], True),
        ([APART, TOGETHER, APART], True),
        ([APART, APART], False),
        ([APART, ("vic",)], False),
        ([TOGETHER, APART, APART], False),
    ],
)
def test_one_round_in_which_most_were_missing_says_only_that_we_were_in_another_group(experience, rounds, whole):
    assert (in_turn(experience, *rounds) == ANN.samples + BOB.samples) == whole


def test_a_later_epoch_of_a_peer_that_nobody_answers_for_is_not_believed(experience):
    claims = {1: ANN, 3: Claim("invented", 101, 0, 0.0)}
    assert epochs(experience.believed(claims, OWN, NOW, there=of_those())) == {1: 100}
    assert epochs(experience.believed(claims, OWN, NOW, there=of_those("invented"))) == {1: 100, 3: 101}
    alone = Experience()
    alone.loaded(100, NOW)
    assert alone.believed({3: claims[3]}, OWN, NOW, there=of_those()).claims == {}


# --- the epoch of a peer that has met nobody


def test_a_newcomer_believes_no_epoch_of_a_peer_that_nobody_answers_for():
    claims = {1: Claim("invented", 10**9, 0, 0.0), 2: Claim("ann", 100, 60, 6.0)}
    own = Claim("own", 0, 0, 0.0)
    assert Experience().believed(claims, own, NOW, there=of_those()).claims == {}
    assert epochs(Experience().believed(claims, own, NOW, there=of_those("ann"))) == {2: 100}


def test_nor_of_one_of_many_of_which_it_is_not_known_whether_they_are_there():
    claims = {1: Claim("asked", 100, 60, 6.0), 2: Claim("not asked yet", 10**9, 0, 0.0)}
    parts = {"asked": 1.0, "not asked yet": 0.9}
    found = Experience().believed(claims, Claim("own", 0, 0, 0.0), NOW, there=lambda _peers: parts)
    assert epochs(found) == {1: 100}


@pytest.mark.parametrize(
    ("claimed", "believed"),
    [
        ([("a", 500)], {500}),
        ([("a", 500), ("liar", 900)], {500}),
        ([("a", 500), ("b", 500), ("liar", 900)], {500}),
        ([("a", 500), ("b", 501), ("c", 500)], {500, 501}),
        ([("a", 500), ("behind", 3), ("behind, too", 4)], {500, 3, 4}),
        ([("a", 500), ("b", 500), ("a", 900), ("b", 900)], {500}),  # others' records under their ids
        ([("a", 100), ("liar", 900)], {100}),
    ],
)
def test_a_peer_that_begins_with_a_state_of_its_own_goes_on_where_most_are(claimed, believed):
    made = Experience()
    made.had_reached(100, 0.0)  # nobody knows how long ago
    claims = {number: Claim(peer, epoch, 1, 1.0) for number, (peer, epoch) in enumerate(claimed)}
    found = made.believed(claims, replace(OWN, samples=0), 1e9)
    assert set(epochs(found).values()) == believed


def test_one_that_computes_says_more_about_the_epoch_than_those_that_rest():
    made = Experience()
    made.had_reached(100, 0.0)
    claims = {1: Claim("rests", 400, 0, 0.0), 2: Claim("rests, too", 400, 0, 0.0), 3: Claim("ann", 500, 10, 1.0)}
    assert epochs(made.believed(claims, OWN, 1e9))[3] == 500
    assert set(epochs(made.believed({1: claims[1], 2: claims[2]}, OWN, 1e9)).values()) == {400}
