import pytest

from skep.worker.connection.reachability import Verdict, _ports, _seen_at, reachable

NO, YES = Verdict(0), Verdict.ANSWERED
OUTSIDE_NO, OUTSIDE_YES = Verdict.FROM_OUTSIDE, Verdict.ANSWERED | Verdict.FROM_OUTSIDE


@pytest.mark.parametrize(
    ("verdicts", "answer"),
    [
        ([], None),
        ([NO], False),
        ([YES], True),
        ([NO, YES], True),
        ([OUTSIDE_NO], False),
        # a peer in our own network needs no router to reach us
        ([OUTSIDE_NO, YES], False),
        ([OUTSIDE_YES, NO], True),
    ],
)
def test_who_sees_us_from_outside_knows_better(verdicts, answer):
    assert reachable(verdicts) is answer


def test_only_the_one_who_asks_is_dialled():
    assert _seen_at("/ip4/203.0.113.7/tcp/4001") == "203.0.113.7"
    assert _seen_at("/ip6/2001:db8::1/udp/4001/quic") == "2001:db8::1"
    assert _seen_at("/ip4/203.0.113.7/tcp/4001/p2p/Qm/p2p-circuit") is None
    assert _seen_at("/unix/tmp/x") is None


def test_the_ports_asked_about_are_those_of_tcp_each_once_and_few():
    addresses = [f"/ip4/10.0.0.{n}/tcp/{port}" for n, port in enumerate((5, 5, 6, 7, 8, 9))]
    assert _ports(["/ip4/10.0.0.1/udp/3/quic", *addresses]) == [5, 6, 7, 8]
