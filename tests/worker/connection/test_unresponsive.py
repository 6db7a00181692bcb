"""The list of DHT nodes that do not answer."""

import asyncio
from functools import partial
from itertools import repeat

from skep.worker.connection.unresponsive import KEPT, Unresponsive

NO_PAUSES = partial(repeat, 0.0)


class Protocol:
    """Answers pings in the order of `answers`; None is no answer."""

    def __init__(self, *answers):
        self.answers = list(answers)

    async def call_ping(self, _peer):
        return self.answers.pop(0)


def test_a_node_is_left_out_until_it_answers_a_question_of_the_background():
    async def scene():
        protocol = Protocol(None, None, "node id")
        known = Unresponsive(protocol, NO_PAUSES)
        known.register_failure("hanging")
        assert "hanging" in known
        assert "other" not in known
        while protocol.answers:
            assert "hanging" in known
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert "hanging" not in known

    asyncio.run(scene())


def test_a_success_ends_the_questions():
    async def scene():
        protocol = Protocol("node id")
        known = Unresponsive(protocol, NO_PAUSES)
        known.register_failure("slow")
        known.register_success("slow")
        known.register_success("never failed")
        assert "slow" not in known
        await asyncio.sleep(0.01)
        assert protocol.answers == ["node id"]  # it was not asked

    asyncio.run(scene())


def test_the_number_is_bounded():
    async def scene():
        known = Unresponsive(Protocol(), NO_PAUSES)
        for number in range(2 * KEPT):
            known.register_failure(number)
        assert sum(number in known for number in range(2 * KEPT)) == KEPT
        assert 2 * KEPT - 1 in known
        known.clear()
        assert 2 * KEPT - 1 not in known

    asyncio.run(scene())
