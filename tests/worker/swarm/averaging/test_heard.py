"""Who counts as heard by a client, which no peer sends to: never a host that only helps in the round."""

from types import SimpleNamespace

import pytest

from skep.worker.swarm.averaging.all_reduce import Used, examine


def facts(shares, *, helpers=(), moved=True, failed=0):
    """Of the client "me", in a group of peers that average these shares of the tensors."""
    runner = SimpleNamespace(
        ordered_peer_ids=["me", *shares],
        peer_fractions=(0.0, *shares.values()),
        peer_id="me",
        tensor_part_reducer=SimpleNamespace(num_parts=0),
        tensor_part_container=SimpleNamespace(failed_size=failed),
        banned_senders=set(),
        weights={},
        epochs={},
    )
    return examine(runner, Used(moved=moved), set(helpers))


@pytest.mark.parametrize(
    ("shares", "heard"),
    [
        ({"host": 1.0, "client": 0.0}, ("client",)),
        ({"host": 0.5, "peer": 0.5, "client": 0.0}, ("peer",)),
        ({"host": 1.0}, ()),
    ],
)
def test_a_helper_is_never_heard(shares, heard):
    assert facts(shares, helpers=["host"]).heard == heard


def test_without_a_helper_the_reducers_are():
    assert facts({"peer": 1.0, "client": 0.0}).heard == ("peer",)


def test_what_came_back_unchanged_is_nobodys():
    alone = facts({"host": 1.0, "client": 0.0}, helpers=["host"], moved=False)
    assert (alone.heard, alone.missing) == ((), ("client",))


def test_a_helper_that_did_not_return_all_parts_leaves_the_round_incomplete():
    broken = facts({"host": 1.0, "client": 0.0}, helpers=["host"], failed=3)
    assert (broken.heard, broken.complete) == ((), False)
