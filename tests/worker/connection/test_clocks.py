"""The watch over this computer's clock, with differences that the test decides."""

import asyncio
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from english import in_english
from skep.worker.connection import clocks
from skep.worker.connection.clocks import ClockWatch


class Watched:
    def __init__(self):
        self.ahead, self.told = [], []
        self.watch = ClockWatch(lambda: self.ahead, self.told.append)

    def look(self, *ahead):
        """What the watch says when our clock is `ahead` of those of the peers that answer, by so many seconds."""
        self.ahead, self.told[:] = list(ahead), []
        self.watch.look()
        return [in_english(each.problem.title) for each in self.told]


@pytest.fixture
def watched():
    return Watched()


@pytest.mark.parametrize(("ahead", "said"), [(10.0, "10 s ahead of"), (-10.0, "10 s behind")])
def test_a_clock_that_is_off_is_told_once(watched, ahead, said):
    assert watched.look(ahead) == [f"This computer's clock is {said} other peers' clocks."]
    assert watched.look(ahead + 1) == []


def test_a_clock_that_agrees_again_is_told_once_with_what_is_over(watched):
    watched.look(10.0)
    (noticed,) = watched.told
    assert watched.look(0.2) == ["This computer's clock agrees with other peers' clocks again."]
    assert watched.told[0].over == noticed.problem
    assert watched.look(0.1) == []


def test_a_clock_at_the_limit_is_not_told_again_and_again(watched):
    watched.look(3.1)
    assert watched.look(2.9) == watched.look(3.1) == []


def test_a_single_peer_whose_clock_is_off_says_nothing_of_ours(watched):
    assert watched.look(-600.0, 0.1, -0.1) == []


def test_no_answer_is_no_agreement(watched):
    watched.look(10.0)
    assert watched.look() == []
    assert watched.look(0.0) != []


class AskedDHT:
    """A DHT in this process that knows one peer, which answers with its time."""

    def __init__(self, their_time):
        async def rpc_ping(_request, **_options):
            return SimpleNamespace(dht_time=their_time)

        protocol = SimpleNamespace(
            node_info=None,
            routing_table=SimpleNamespace(uid_to_peer_id={"one": "peer"}),
            get_stub=lambda _peer: SimpleNamespace(rpc_ping=rpc_ping),
        )
        self.node = SimpleNamespace(protocol=protocol)

    def run_coroutine(self, coroutine, *, return_future):
        assert return_future
        answer = Future()
        answer.set_result(asyncio.run(coroutine(self, self.node)))
        return answer


@pytest.mark.parametrize(
    ("asked", "answered", "ahead"), [(100.0, 160.0, 0.0), (110.0, 110.5, 10.0), (90.0, 90.5, -9.5)]
)
def test_a_sleep_between_question_and_answer_makes_no_difference(monkeypatch, asked, answered, ahead):
    monkeypatch.setattr(clocks, "time", SimpleNamespace(time=iter([asked, answered]).__next__))
    assert clocks.asking(AskedDHT(100.0))() == [pytest.approx(ahead)]
