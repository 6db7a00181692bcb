"""What a worker that is not itself any more may say: only messages of ours, in our words, of moderate size and number."""

import json

import pytest

from fakes import FakeClock
from skep.adapters.process.heard import LONGEST_WORDS, MINUTE, MOST_A_MINUTE, Heard
from skep.core.session import messages as m
from skep.core.session.wire import WireError, encode
from skep.core.text import NOTHING, Problem, Text, sentences, verbatim

WANTED = encode(m.ShardWanted("a"))


def lost(reason):
    return m.ContributionLost("id", 1, 1, reason)


def joining(detail):
    return m.WorkerStage(m.Stage.DATA, 0.5, detail)


@pytest.mark.parametrize(
    "message",
    [
        lost(NOTHING),
        lost(Text("round.no_other_peer")),
        joining(verbatim("{x:>9} of another program")),
        m.WorkerFailed(Problem(sentences(verbatim("a"), Text("round.no_other_peer"))), retry=True),
    ],
)
def test_our_own_words_are_believed(message):
    assert Heard().message(encode(message)) == message


FOREIGN = [
    Text("{x:>1000000000}", x=1),
    Text("{x.__class__.__mro__}", x="a"),
    Text("Your computer is infected. Call 555."),
    Text("memory_watch.less_than_gb_computer_memory", other=1),
    Text("memory_watch.skep_tries_again_later_close", setting=3),
    verbatim("x" * (LONGEST_WORDS + 1)),
    sentences(verbatim("a"), Text("{x:>1000000000}", x=1)),
    sentences(sentences(Text("{}"))),
]


@pytest.mark.parametrize("foreign", FOREIGN, ids=[str(number) for number in range(len(FOREIGN))])
@pytest.mark.parametrize(
    "message",
    [
        lost,
        joining,
        lambda text: m.WorkerNoticed(Problem(verbatim("a")), over=Problem(verbatim("b"), text)),
        lambda text: m.WorkerFailed(Problem(text), retry=False),
    ],
    ids=["a loss", "a stage", "a notice", "a failure"],
)
def test_words_of_its_own_are_not(message, foreign):
    with pytest.raises(WireError, match="none of ours"):
        Heard().message(encode(message(foreign)))


def test_too_many_messages_in_a_minute_are_not():
    clock = FakeClock()
    heard = Heard(clock.monotonic)
    for _ in range(2):
        for _ in range(MOST_A_MINUTE):
            heard.message(WANTED)
        with pytest.raises(WireError, match="too many"):
            heard.message(WANTED)
        clock.advance(MINUTE)


def test_what_is_no_message_is_not():
    with pytest.raises(WireError):
        Heard().message(json.dumps({"type": "Quit"}).encode())
