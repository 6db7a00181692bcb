"""What the file of peers that were met in rounds is taken to hold."""

import json

import pytest

from manifests import PEER
from skep.core.project.met_peers import MOST, OLDEST, file_name, met

NOW = 1_700_000_000.0


def file(*peers: tuple[str, float]) -> bytes:
    return json.dumps([{"address": address, "met": when} for address, when in peers]).encode()


def test_peers_are_listed_with_the_one_met_last_first_and_at_most_a_few() -> None:
    found = met(file(*((PEER, NOW - ago) for ago in range(MOST + 2, 0, -1))), NOW)
    assert [NOW - each.met for each in found] == list(range(1, MOST + 1))
    assert found[0].peer == PEER.rpartition("/")[2]


@pytest.mark.parametrize("when", [NOW - OLDEST - 1, NOW + OLDEST + 1, -NOW])
def test_a_peer_that_was_met_long_ago_is_forgotten(when: float) -> None:
    assert met(file((PEER, when)), NOW) == []


@pytest.mark.parametrize("raw", [b"", b"[{", b'{"address": 1}', file(("no address", NOW))])
def test_a_damaged_file_holds_nothing(raw: bytes) -> None:
    assert met(raw, NOW) == []


def test_each_run_has_a_file_of_its_own() -> None:
    assert file_name("tiny.0123") != file_name("tiny.4567")
