"""A process of a volunteer that trains is killed or hangs: single cases of `make test-faults`."""

import psutil
import pytest
from faults.family import Role
from faults.recovery import inflict
from faults.volunteer import Entry, damage, volunteer

RECOVERY_SECONDS = 150
"""Seconds within which a busy computer notices the fault, joins again and has a contribution confirmed."""
NOT_WATCHED = pytest.mark.xfail(reason="the watch of the network's processes", strict=True)


@pytest.fixture
def trained(practice, tmp_path):
    with volunteer(tmp_path / "home", practice) as made:
        made.wait_until_training()
        yield made


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "role",
    [
        Role.FRONT_END,
        pytest.param(Role.DHT, marks=NOT_WATCHED),
        pytest.param(Role.P2PD, marks=NOT_WATCHED),
        pytest.param(Role.GRADIENTS, marks=NOT_WATCHED),
    ],
)
def test_a_killed_process_costs_no_acknowledged_contribution_and_training_goes_on(trained, role):
    seen = inflict(trained, role, psutil.Process.kill, RECOVERY_SECONDS)
    assert seen.back is not None, seen
    assert (seen.lost, seen.doubled, seen.left, seen.same_identity) == (0, 0, [], True)


@pytest.mark.timeout(600)
@NOT_WATCHED
def test_a_stopped_p2pd_is_noticed_and_training_goes_on(trained):
    seen = inflict(trained, Role.P2PD, psutil.Process.suspend, RECOVERY_SECONDS)
    assert seen.back is not None, seen
    assert (seen.lost, seen.doubled, seen.left, seen.same_identity) == (0, 0, [], True)


BEFORE = {"a": Entry(1, 64, "confirmed", 10.0, 12.0), "b": Entry(2, 64, "pending", 13.0, 0.0)}
SETTLED = BEFORE | {"b": Entry(2, 64, "confirmed", 13.0, 15.0)}


def test_a_ledger_that_goes_on_is_not_damaged():
    lost = SETTLED | {"b": Entry(2, 64, "lost", 13.0, 15.0), "c": Entry(3, 64, "confirmed", 16.0, 17.0)}
    assert damage(BEFORE, SETTLED, {"a"}) == (0, 0)
    assert damage(BEFORE, lost, {"a"}) == (0, 0)


@pytest.mark.parametrize(
    "after",
    [
        {"b": SETTLED["b"]},
        SETTLED | {"a": Entry(1, 64, "lost", 10.0, 12.0)},
        SETTLED | {"a": Entry(1, 32, "confirmed", 10.0, 12.0)},
    ],
)
def test_a_confirmed_contribution_that_is_gone_or_changed_is_lost(after):
    assert damage(BEFORE, after, {"b"}) == (1, 0)


def test_what_a_front_end_has_shown_as_confirmed_must_be_in_the_ledger():
    assert damage({}, BEFORE, {"a", "b"}) == (1, 0)
    assert damage({}, BEFORE, {"a", "z"}) == (1, 0)


def test_two_confirmed_contributions_of_one_epoch_are_counted_twice():
    again = SETTLED | {"c": Entry(2, 64, "confirmed", 16.0, 17.0)}
    assert damage(BEFORE, again, {"a", "b", "c"}) == (0, 1)
    assert damage(again, again | {"d": Entry(3, 64, "confirmed", 18.0, 19.0)}, set()) == (0, 0)
