"""A relay is waited for only where one could be, and watched."""

from concurrent.futures import Future

import pytest
from hivemind.p2p import P2PDaemonError

from manifests import PEER
from skep.core.errors import SwarmError
from skep.core.text import NOTHING, verbatim
from skep.worker.connection.relays import (
    DATA_LIMIT,
    NO_BOOTSTRAP,
    RELAYED_STARTS,
    STARTS,
    becomes_relayed,
    part,
    start_relayed,
    start_relaying,
)

PEER_ID = PEER.rpartition("/")[2]


class Daemon:
    """A stand-in for the DHT: p2pd has the address of a relay from the `after`-th question on."""

    def __init__(self, after, *hosts):
        self.asked, self._after = 0, after
        self.initial_peers = [f"/{kind}/{host}/tcp/4001/p2p/{PEER_ID}" for kind, host in hosts]

    def run_coroutine(self, _coroutine, *, return_future):
        assert return_future
        self.asked += 1
        answer = Future()
        answer.set_result(self.asked >= self._after)
        return answer


PUBLIC, NAMED, NEAR = ("ip4", "8.8.8.8"), ("dns4", "seed.example.org"), ("ip4", "192.168.1.2")


@pytest.mark.parametrize("host", [PUBLIC, NAMED])
def test_a_relay_that_comes_is_waited_for(host):
    assert becomes_relayed(Daemon(3, NEAR, host))


def test_one_that_does_not_come_is_not_waited_for_long():
    daemon = Daemon(10**9, PUBLIC)
    assert not becomes_relayed(daemon, 0.2)
    assert daemon.asked > 1


def test_there_is_none_in_a_private_network():
    daemon = Daemon(2, NEAR)
    assert not becomes_relayed(daemon)
    assert daemon.asked == 1


def test_the_watch_hears_that_the_relay_is_gone():
    daemon = Daemon(2)
    watched = part(daemon)
    with pytest.raises(ConnectionError):
        watched.ask(1.0)
    watched.ask(1.0)
    assert not watched.ended()


class Seed:
    """A stand-in for a seed's DHT, whose p2pd relays at most `limit` bytes for each connection."""

    def __init__(self, limit):
        self.limit, self.is_down = limit, False

    def shutdown(self):
        self.is_down = True


def limit_of(seed):
    if seed.limit is None:
        raise TimeoutError
    return seed.limit


def started(*limits):
    """The seeds that were started with these limits, and the one that was kept."""
    made, coming = [], iter(limits)

    def make(options):
        assert options["force_reachability"]
        made.append(Seed(next(coming)))
        return made[-1]

    return start_relaying(make, limit_of), made


def test_a_seed_is_started_again_until_our_limits_count():
    kept, made = started(1 << 17, 1 << 17, DATA_LIMIT)
    assert [each.is_down for each in made] == [True, True, False]
    assert kept is made[-1]


@pytest.mark.parametrize("limits", [[None], [1 << 17] * (STARTS + 1)])
def test_a_seed_that_relays_little_or_does_not_say_is_better_than_none(limits):
    kept, made = started(*limits)
    assert kept is made[-1]
    assert not kept.is_down
    assert len(made) == len(limits)


class Starts:
    """Starts of a peer behind a relay: those in `fail` raise what p2pd says, or an error of ours because of it."""

    def __init__(self, *fail):
        self.number, self._fail = 0, fail

    def make(self):
        self.number += 1
        if self.number > len(self._fail):
            return self.number
        cause = P2PDaemonError(f"Daemon failed to start: 2026/11/25 13:54:24 {self._fail[self.number - 1]}")
        if self.number % 2:
            raise cause
        raise SwarmError(verbatim("not joined"), NOTHING) from cause


def test_a_peer_whose_p2pd_ended_because_two_dials_met_is_started_again():
    assert start_relayed(Starts(NO_BOOTSTRAP, NO_BOOTSTRAP).make) == 3


def test_no_start_follows_one_that_failed_for_another_reason():
    starts = Starts("address already in use")
    with pytest.raises(P2PDaemonError):
        start_relayed(starts.make)
    assert starts.number == 1


def test_without_an_answer_a_relayed_peer_is_started_a_limited_number_of_times():
    starts = Starts(*[NO_BOOTSTRAP] * 100)
    with pytest.raises((P2PDaemonError, SwarmError)):
        start_relayed(starts.make)
    assert starts.number == RELAYED_STARTS
