"""A peer of a small swarm is killed: the shortest case of `make test-faults PART=stall`."""

import pytest
from faults.places import own_folder
from faults.small_swarm import small_swarm
from faults.stall import RATE, Case, one


@pytest.mark.timeout(600)
def test_the_two_survivors_of_a_killed_peer_have_contributions_confirmed_again():
    case = Case(3, "kill", moment=0.5, calm=1, after=3, seconds=6.0)
    with own_folder() as folder, small_swarm(folder / "s", "skep", case.target, RATE) as swarm:
        found = one(swarm, case)
    assert min(found["confirmed"]) >= 1, found
