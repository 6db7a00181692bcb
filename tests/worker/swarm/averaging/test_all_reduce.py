"""What is read from a finished all-reduce: who was heard, and whether every part was averaged with another's data."""

from types import SimpleNamespace

import pytest

from skep.worker.swarm.averaging.all_reduce import Used, all_of, examine

PARTS = 4


WEIGHTS = {"b": 8.0, "c": 8.0}


def finished(received, *, weights=None, banned=(), failed_size=0, left_out=()):
    """The all-reduce of peer "a" with the peers of `received`, the parts that each sent for what "a" reduces."""
    peers = ["a", *received]
    return SimpleNamespace(
        peer_id="a",
        ordered_peer_ids=peers,
        sender_peer_ids=peers,
        banned_senders=set(banned),
        weights=WEIGHTS if weights is None else weights,
        epochs={"b": 5},
        peer_fractions=[1 / len(peers)] * len(peers),
        tensor_part_reducer=SimpleNamespace(
            num_parts=PARTS, num_parts_received=[PARTS, *received.values()], left_out=set(left_out)
        ),
        tensor_part_container=SimpleNamespace(failed_size=failed_size),
    )


def without_sender(runner, peer):
    """The same all-reduce if `peer` sends nothing for it, as helpers do."""
    place = runner.sender_peer_ids.index(peer)
    runner.sender_peer_ids = [each for each in runner.sender_peer_ids if each != peer]
    del runner.tensor_part_reducer.num_parts_received[place]
    return runner


@pytest.mark.parametrize(
    ("runner", "heard", "missing", "complete"),
    [
        (finished({"b": PARTS, "c": PARTS}), ("b", "c"), (), True),
        # c was lost with its data on the way; b's is in every part that we reduce, and every other part came back
        (finished({"b": PARTS, "c": 1}, banned=["c"]), ("b",), ("c",), True),
        # c reduced some parts, which did not come back
        (finished({"b": PARTS, "c": PARTS}, failed_size=10), ("b", "c"), (), False),
        (finished({"b": PARTS, "c": 0}, banned=["c"], failed_size=10), ("b",), ("c",), False),
        # in our last parts there is only our own data
        (finished({"b": PARTS - 1, "c": 0}, banned=["b", "c"]), (), ("b", "c"), False),
        (finished({"b": 0}, banned=["b"]), (), ("b",), False),
        # c's data is in no part that we reduce, because it disagrees with the others'
        (finished({"b": PARTS, "c": PARTS}, left_out=["c"]), ("b",), ("c",), True),
        (finished({"b": PARTS}, left_out=["b"]), (), ("b",), False),
    ],
)
def test_who_was_heard_and_whether_every_part_has_anothers_data(runner, heard, missing, complete):
    facts = examine(runner, Used())
    assert (facts.heard, facts.missing, facts.complete) == (heard, missing, complete)


def test_a_peer_that_claimed_no_weight_completes_nothing():
    facts = examine(finished({"b": PARTS}, weights={"b": 0.0}), Used())
    assert (facts.heard, facts.complete) == ((), False)


@pytest.mark.parametrize(
    ("runner", "idle"),
    [
        (finished({"b": PARTS, "c": PARTS}, weights={"b": 0.0, "c": 0.0}), True),
        (finished({"b": PARTS, "c": PARTS}, weights={"b": 0.0, "c": 8.0}), False),
        (finished({"b": PARTS - 1}, weights={"b": 0.0}), False),
        (finished({"b": PARTS}, weights={}), False),
        (finished({"b": PARTS}, weights={"b": 0.0}, banned=["b"]), False),
        (finished({"b": PARTS}, weights={"b": 0.0}, left_out=["b"]), False),
        (finished({}, weights={}), False),
    ],
)
def test_the_others_are_idle_if_each_has_sent_all_with_weight_zero(runner, idle):
    assert examine(runner, Used()).idle is idle


def test_a_helper_that_sends_nothing_is_not_idle():
    runner = without_sender(finished({"helper": 0}, weights={}), "helper")
    assert not examine(runner, Used(), helpers={"helper"}).idle
    runner = without_sender(finished({"b": PARTS, "helper": 0}, weights={"b": 0.0}), "helper")
    assert examine(runner, Used(), helpers={"helper"}).idle


def test_a_round_of_several_all_reduces_is_idle_if_each_is():
    idle, heard = (examine(finished({"b": PARTS}, weights={"b": weight}), Used()) for weight in (0.0, 8.0))
    assert all_of([idle, idle]).idle
    assert not all_of([idle, heard]).idle
    assert all_of([idle, heard]).epochs == {"b": 5}


def test_a_peer_that_reduces_nothing_is_judged_by_what_came_back():
    runner = finished({"b": 0, "c": 0})
    runner.tensor_part_reducer = SimpleNamespace(num_parts=0, num_parts_received=[])
    assert examine(runner, Used(moved=True)).complete
    assert not examine(runner, Used(moved=False)).complete
    runner.tensor_part_container.failed_size = 10
    assert not examine(runner, Used(moved=True)).complete
