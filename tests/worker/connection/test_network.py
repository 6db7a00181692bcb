import socket
import time
from types import SimpleNamespace

import pytest
from hivemind.dht.protocol import ValidationError

from english import in_english, raises
from manifests import PEER
from skep.core.errors import SwarmError
from skep.core.project.data import ShardIndex, TextLayout
from skep.core.session.messages import WorkerOptions
from skep.dialling import dial_one, endpoint
from skep.worker.connection import network
from skep.worker.connection.network import dial

PEER_ID = PEER.rpartition("/")[2]


def address(port, host="127.0.0.1", kind="ip4"):
    return f"/{kind}/{host}/tcp/{port}/p2p/{PEER_ID}"


@pytest.fixture
def open_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening
        yield taken.getsockname()[1]


@pytest.fixture
def silent_port():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]  # fill the queue of unaccepted connections
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        yield port
        for each in waiting:
            each.close()


def test_a_seed_that_answers_has_no_failure(open_port):
    assert not dial_one(address(open_port))


def test_a_seed_that_refuses_is_told_so(closed_port):
    assert in_english(dial_one(address(closed_port))) == "refuses the connection"


def test_a_seed_that_is_silent_is_given_up_in_time(silent_port):
    begun = time.monotonic()
    assert in_english(dial_one(address(silent_port), within=1.0)) == "did not answer within 1 s"
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize("host", ["nowhere.invalid", "a" * 70 + ".invalid"])
def test_a_name_nobody_knows_is_told_so(host):
    assert in_english(dial_one(address(1, host, "dns4"))) == "is a name that could not be found"


@pytest.mark.parametrize(("peer", "said"), [(90.0, "10 s ahead of"), (110.5, "10 s behind")])
def test_a_clock_that_is_off_is_said_in_words(peer, said):
    with raises(SwarmError, match=f"This computer's clock is {said}"), network._as_swarm_error(["/ip4/1.2.3.4/tcp/1"]):
        raise ValidationError(
            f"local time must be within 3 seconds  of others(local: {100.0:.5f}, peer: {peer:.5f})",
        )


def test_what_is_not_tcp_cannot_be_tried_and_counts_as_reachable():
    assert not dial_one(f"/ip4/127.0.0.1/udp/1/quic/p2p/{PEER_ID}")


def test_seeds_are_tried_at_once_and_answered_in_order(open_port, closed_port, silent_port):
    addresses = [address(silent_port), address(open_port), address(closed_port), address(silent_port, "localhost")]
    begun = time.monotonic()
    tried = dial(addresses, within=4.0)
    assert time.monotonic() - begun < 7.9
    assert list(tried) == addresses
    assert [bool(in_english(failure)) for failure in tried.values()] == [True, False, True, True]


def test_no_seeds_at_all_is_no_error():
    assert dial([]) == {}


def test_words_for_an_address():
    assert endpoint(address(5)) == "127.0.0.1:5"
    assert endpoint("nonsense") == "nonsense"


def test_when_no_seed_answers_each_is_named_with_what_happened(closed_port, tmp_path):
    start = WorkerOptions(
        manifest="",
        index=ShardIndex(TextLayout(1, 2), ()),
        identity_path=str(tmp_path / "id"),
        run_folder=str(tmp_path),
        seeds=(address(1, "nowhere.invalid", "dns4"),),
    )
    with pytest.raises(SwarmError) as raised:
        network.reach(start, [address(closed_port)])
    assert in_english(raised.value.title) == (
        f"None of the project's seed peers answers: 127.0.0.1:{closed_port} refuses the connection; "
        "nowhere.invalid:1 is a name that could not be found."
    )
    assert "SKEP_PEERS" in in_english(raised.value.hint)


class Connections:
    """A stand-in for the network: records which DHTs were started; `found` is the result of dialling back."""

    def __init__(self, found=None):
        self.modes, self.asked, self.ended, self.answering = [], 0, [], []
        self._found = found

    def connect(self, *, client_mode, relayed=False, meanwhile=bool):
        meanwhile()
        mode = "relayed" if relayed else client_mode
        self.modes.append(mode)
        return SimpleNamespace(client_mode=client_mode, shutdown=lambda: self.ended.append(mode))

    def find_out(self, _dht):
        self.asked += 1
        return self._found


def start(tmp_path, mode, listen_host):
    return WorkerOptions(
        manifest="",
        index=ShardIndex(TextLayout(8, 256), ()),
        identity_path=str(tmp_path / "id"),
        run_folder=str(tmp_path),
        listen_host=listen_host,
        client_mode=mode,
    )


ANYWHERE = "0.0.0.0"


@pytest.mark.parametrize(
    ("mode", "listen", "found", "relay", "modes", "asked"),
    [
        ("automatic", ANYWHERE, True, True, [False], 1),
        ("automatic", ANYWHERE, False, True, [False, "relayed"], 1),
        ("automatic", ANYWHERE, False, False, [False, "relayed", True], 1),
        # no peer could check: a listener is more useful
        ("automatic", ANYWHERE, None, True, [False], 1),
        ("on", ANYWHERE, True, True, [True], 0),
        ("off", ANYWHERE, False, True, [False], 0),
        # a peer on loopback need not be reachable from outside: no peer is asked to dial back
        ("automatic", "127.0.0.1", False, True, [False], 0),
        ("on", "127.0.0.1", True, True, [True], 0),
    ],
)
def test_how_others_reach_us_is_chosen_by_setting_or_by_whether_they_can_dial_us(
    tmp_path, mode, listen, found, relay, modes, asked
):
    made = Connections(found)
    options = start(tmp_path, mode, listen)
    dht = network.connect_as_needed(
        options,
        made.connect,
        bool,
        find_out=made.find_out,
        answer_others=made.answering.append,
        becomes_relayed=lambda _dht: relay,
    )
    assert made.modes == modes
    assert made.asked == asked
    assert dht.client_mode == (modes[-1] is True)
    assert made.ended == modes[:-1]
    assert bool(made.answering) == (listen == ANYWHERE and modes[-1] is not True)
