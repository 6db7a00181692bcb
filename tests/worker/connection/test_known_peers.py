"""The file of peers that were met in rounds: what is kept, for how long, and what of it may be tried."""

import ipaddress
import json
import os
import threading

import pytest

from fakes import StillClock
from manifests import PEER
from skep.core.project.met_peers import MOST, OLDEST
from skep.dialling import own_networks
from skep.worker.connection.known_peers import KnownPeers

PEER_ID = PEER.rpartition("/")[2]
ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ"


def peer(number, host="8.8.8.8"):
    return f"/ip4/{host}/tcp/{4000 + number}/p2p/{PEER_ID[:-1]}{ALPHABET[number]}"


@pytest.fixture
def clock():
    return StillClock(1_700_000_000.0)


@pytest.fixture
def known(tmp_path, clock):
    return KnownPeers(tmp_path / "peers", "practice-1", clock, lambda: [ipaddress.ip_network("192.168.1.0/24")])


def test_nobody_is_known_before_the_first_round(known):
    assert known.addresses() == []


def test_the_latest_few_are_kept_for_the_next_worker(known, clock):
    for number in range(MOST + 3):
        clock.now += 1
        known.keep([peer(number)])
    newest_first = [peer(number) for number in reversed(range(3, MOST + 3))]
    assert KnownPeers(known.folder, known.run_id, clock).addresses() == newest_first
    assert known.file.stat().st_mode & 0o777 == 0o600
    assert list(known.folder.iterdir()) == [known.file]


def test_more_than_that_at_once_are_no_more(known):
    known.keep([peer(number) for number in range(MOST + 5)])
    assert len(json.loads(known.file.read_bytes())) == MOST


def test_a_peer_that_moved_is_kept_once_at_its_new_address(known, clock):
    known.keep([peer(1), peer(2)])
    clock.now += 1
    known.keep([peer(1, "9.9.9.9")])
    assert known.addresses() == [peer(1, "9.9.9.9"), peer(2)]


def test_another_run_has_its_own(known, clock):
    known.keep([peer(1)])
    assert KnownPeers(known.folder, "practice-2", clock).addresses() == []


def test_two_weeks_later_it_is_forgotten(known, clock):
    known.keep([peer(1)])
    clock.now += OLDEST - 1
    known.keep([peer(2)])
    assert known.addresses() == [peer(2), peer(1)]
    clock.now += 2
    assert known.addresses() == [peer(2)]


def test_a_time_of_a_clock_that_was_wrong_does_not_last_for_ever(known, clock):
    known.keep([peer(1)])
    clock.now -= 2 * OLDEST
    assert known.addresses() == []


def test_files_of_other_runs_are_removed_when_they_are_old(known, clock):
    known.keep([peer(1)])
    old, recent = known.folder / "old-1.json", known.folder / "recent-1.json"
    for file, age in ((old, OLDEST + 60), (recent, OLDEST - 60)):
        file.write_text("[]")
        os.utime(file, (clock.now - age, clock.now - age))
    known.addresses()
    assert sorted(known.folder.iterdir()) == [known.file, recent]


@pytest.mark.parametrize(
    "address",
    [
        "nonsense",
        f"/unix/tmp/socket/p2p/{PEER_ID}",
        "/ip4/8.8.8.8/tcp/4001",
        f"/ip4/8.8.8.8/tcp/4001/p2p/{PEER_ID}/p2p-circuit",
        f"/ip4/8.8.8.8/tcp/0/p2p/{PEER_ID}",
    ],
)
def test_only_complete_addresses_are_taken_and_read(known, clock, address):
    known.keep([address, peer(1)])
    assert known.addresses() == [peer(1)]
    known.file.write_text(json.dumps([{"address": address, "met": clock.now}]))
    assert known.addresses() == []


@pytest.mark.parametrize(
    "content",
    [b"", b"[", b"{}", b'[{"address": 1, "met": 2}]', b'[{"address": "\xff"}]', b"[null]", b"\0" * 200_000],
)
def test_a_damaged_file_counts_as_none_and_is_replaced(known, content):
    known.folder.mkdir()
    known.file.write_bytes(content)
    assert known.addresses() == []
    known.keep([peer(1)])
    assert known.addresses() == [peer(1)]


def test_a_private_address_is_tried_only_in_its_own_network(known):
    near, elsewhere, loopback = (peer(n, h) for n, h in enumerate(("192.168.1.7", "10.0.0.7", "127.0.0.1")))
    known.keep([near, elsewhere, loopback, peer(4)])
    assert sorted(known.addresses()) == sorted([near, peer(4)])
    known.networks = own_networks
    assert loopback in known.addresses()
    assert ipaddress.ip_network("127.0.0.0/8") in own_networks()


def test_what_cannot_be_written_disturbs_nobody(known, clock):
    known.folder.write_text("no folder")
    with pytest.raises(OSError, match="exists"):
        known.keep([peer(1)])
    assert known.addresses() == []
    meet(known, [peer(1)])


def meet(known, addresses):
    """A round was confirmed; returns when the addresses were looked up and kept."""
    known.meet(["someone"], lambda _peers: addresses)
    known._looking.join(10)


def test_a_round_is_noted_in_the_background_and_not_after_every_round(known):
    asked, go = [], threading.Event()

    def where(peers):
        go.wait(10)
        asked.append(peers)
        return [peer(1)]

    known.meet(["a"], where)
    known.meet(["b"], where)
    go.set()
    known._looking.join(10)
    known.meet(["c"], where)
    assert asked == [["a"]]
    assert known.addresses() == [peer(1)]


def test_peers_that_cannot_be_asked_disturb_nobody(known):
    def where(_peers):
        raise TimeoutError

    known.meet(["a"], where)
    known._looking.join(10)
    assert known.addresses() == []
