"""An older skep asks the project's seeds for their version: real p2pd on loopback."""

import pytest

from english import raises
from skep.core.errors import DataError, DeviceError, SkepError, SwarmError
from skep.core.project.manifest import PROTOCOL
from skep.worker.connection.versions import answer_others, check, is_too_old


def test_a_skep_that_is_older_than_the_seed_is_told_to_update(make_dhts):
    seed, peer = make_dhts(2)
    seeds = [str(address) for address in seed.get_visible_maddrs()]
    check(peer, seeds)  # a stock seed does not answer
    answer_others(seed, PROTOCOL + 1)
    with raises(SkepError, match="Update skep to join") as caught:
        check(peer, seeds)
    assert not isinstance(caught.value, SwarmError | DataError | DeviceError)  # which would be tried again
    check(peer, seeds, PROTOCOL + 1)
    check(peer, seeds, PROTOCOL + 2)


@pytest.mark.parametrize("told", [[], [3, 2], [2], [1]])
def test_without_an_answer_or_with_a_seed_of_the_same_version_nothing_is_said(told):
    assert not is_too_old(2, told)
