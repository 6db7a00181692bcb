"""A volunteer behind a firewall joins: the shortest case of `make test-faults PART=link`."""

import pytest
from faults import link
from faults.volunteer import START_SECONDS

from network_namespaces import why_not
from terminals import is_event

ROW = {"fault": link.FIREWALL, "down": 0.0, "back": 30.0, "dialled": False}
UNHARMED = {"lost": 0, "doubled": 0, "same_identity": True}
CLOCK = {"fault": "clock off", "down": 70.0, "back": 100.0, "said": ["This computer's clock is 10 s behind."]}


def missed(row):
    return [each.name for each in link.judged([row | UNHARMED]) if each.missed]


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_a_volunteer_behind_a_firewall_joins_and_has_a_contribution_confirmed_within_the_bound():
    if reason := why_not():
        pytest.skip(reason)
    with link.network(target_batch_size=256) as net, net.computer("home") as other:
        other.volunteer.running.wait_for(is_event("joined"), START_SECONDS)
        row = link.behind_a_firewall(net, other, 0)
    assert missed(row) == [], row


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (ROW, []),
        (ROW | {"back": 121.0}, ["behind a firewall: not training 120 s later"]),
        (ROW | {"back": None}, ["behind a firewall: not training 120 s later"]),
        (ROW | {"dialled": True}, ["behind a firewall: taken for one that can be dialled"]),
        (CLOCK, []),
        (CLOCK | {"back": 131.0}, ["clock off: not training 60 s later"]),
        (CLOCK | {"said": []}, ["clock off: not said in words"]),
        ({"fault": "another address", "down": 0.0, "back": 53.2}, []),
    ],
)
def test_a_peer_that_is_late_or_not_told_misses_its_bound(row, named):
    assert missed(row) == named
