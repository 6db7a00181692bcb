"""A volunteer loses its link, changes its address, or is behind a firewall: short cases of `make test-faults PART=link`."""

from functools import partial

import pytest
from faults import link
from faults.kill import LEFT
from faults.volunteer import START_SECONDS

from network_namespaces import why_not
from terminals import is_event

ROW = {
    "fault": link.FIREWALL, "down": 0.0, "back": 30.0, "dialled": False,
    "lost": 0, "doubled": 0, "left": [], "same_identity": True,
}  # fmt: skip
MOVED = ROW | {"fault": "another address", "back": 53.2}
CLOCK = ROW | {"fault": "clock off", "down": 70.0, "back": 100.0, "said": ["This computer's clock is 10 s behind."]}


def missed(row):
    return [each.name for each in link.judged([row]) if each.missed]


@pytest.fixture(scope="module")
def net():
    """A network, and a volunteer on a computer of it."""
    if reason := why_not():
        pytest.skip(reason)
    with link.network(target_batch_size=256) as made, made.computer("home") as home:
        home.volunteer.running.wait_for(is_event("joined"), START_SECONDS)
        yield made, home


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_a_volunteer_behind_a_firewall_joins_and_has_a_contribution_confirmed_within_the_bound(net):
    row = link.behind_a_firewall(*net, 0)
    assert missed(row) == [], row


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_a_volunteer_whose_link_was_down_or_whose_address_changes_trains_again_within_the_bound(net):
    shared, home = net
    with shared.computer("other") as other:
        other.volunteer.wait_until_training()
        home.volunteer.wait_until_training()
        for fault in (partial(link.cut, link.DOWN[0]), link.moved):
            row = fault(shared, other, 0)
            assert missed(row) == [], row


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (ROW, []),
        (ROW | {"back": 121.0}, ["behind a firewall: not training 120 s later"]),
        (ROW | {"back": None}, ["behind a firewall: not training 120 s later"]),
        (ROW | {"dialled": True}, ["behind a firewall: taken for one that can be dialled"]),
        (MOVED, []),
        (MOVED | {"lost": 1}, ["contributions lost"]),
        (MOVED | {"left": ["p2pd running"]}, [LEFT]),
        (CLOCK, []),
        (CLOCK | {"back": 131.0}, ["clock off: not training 60 s later"]),
        (CLOCK | {"said": []}, ["clock off: not said in words"]),
    ],
)
def test_a_peer_that_is_late_or_not_told_misses_its_bound(row, named):
    assert missed(row) == named
