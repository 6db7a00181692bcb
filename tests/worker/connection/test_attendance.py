"""Which peers there are: what is asked, how often, and what counts meanwhile."""

import threading

import pytest
from hivemind.p2p import PeerID

from fakes import StillClock
from skep.worker.connection.attendance import ABSENT_SECONDS, DOUBT, MOST_ASKED, PRESENT_SECONDS, Attendance
from skep.worker.connection.stored import LONGEST_ID

SOON = 20.0


class House:
    """Peers that are there, and an attendance that asks for them."""

    def __init__(self, *there):
        self.there, self.asked, self.told = set(there), [], threading.Semaphore(0)
        self.connected = set()
        self.clock = StillClock(100.0)
        self.attendance = Attendance(self._ask, self.told.release, self.clock)

    def _ask(self, peers):
        others = [peer for peer in peers if peer not in self.connected][:MOST_ASKED]
        self.asked.append(sorted(others))
        return dict.fromkeys(self.connected.intersection(peers), True) | {peer: peer in self.there for peer in others}

    def settled(self, *peers):
        """What counts once the answers are there."""
        self.attendance.of(peers)
        assert self.attendance._asking.acquire(timeout=SOON)
        try:
            return self.attendance.of(peers)  # asks nobody now
        finally:
            self.attendance._asking.release()


def test_nobody_counts_before_answering_and_whoever_answers_does():
    house, go_on = House("ann"), threading.Event()
    ask = house.attendance._ask
    house.attendance._ask = lambda peers: ask(peers) if go_on.wait(SOON) else {}
    assert house.attendance.of(["ann", "bob"]) == {"ann": 0.0, "bob": 0.0}
    go_on.set()
    assert house.told.acquire(timeout=SOON)
    assert house.settled("ann", "bob") == {"ann": 1.0, "bob": 0.0}
    assert house.asked == [["ann", "bob"]]


@pytest.mark.parametrize(("seconds", "asked"), [(ABSENT_SECONDS, ["bob"]), (PRESENT_SECONDS, ["ann", "bob"])])
def test_peers_are_asked_again_those_that_did_not_answer_sooner(seconds, asked):
    house = House("ann")
    house.settled("ann", "bob")
    house.clock.now += seconds - 1
    house.settled("ann")
    assert len(house.asked) == 1
    house.there.add("bob")
    house.clock.now += 1
    assert house.settled("ann", "bob") == {"ann": 1.0, "bob": 1.0}
    assert house.asked[1:] == [asked]


def test_a_peer_that_is_asked_again_counts_meanwhile():
    house = House("ann")
    house.settled("ann")
    house.clock.now += PRESENT_SECONDS
    house.attendance._asking.acquire()
    assert house.attendance.of(["ann"]) == {"ann": 1.0}
    house.attendance._asking.release()
    house.there.clear()
    assert house.settled("ann") == {"ann": 0.0}


def test_of_many_peers_a_sample_is_asked_at_a_time_and_the_others_count_by_it():
    peers = [f"peer {number}" for number in range(10 * MOST_ASKED)]
    house = House(*peers[::2])
    found = house.settled(*peers)
    (asked,) = house.asked
    assert len(asked) == MOST_ASKED
    part = len(house.there.intersection(asked)) / (MOST_ASKED + DOUBT)
    assert {found[peer] for peer in peers if peer not in asked} == {part}
    for _ in range(20):
        found = house.settled(*peers)
    assert found == {peer: float(peer in house.there) for peer in peers}


def test_one_answer_does_not_speak_for_invented_peers_that_are_others_each_time():
    house = House()
    house.connected = {"ann"}
    for number in range(1, 6):
        invented = [f"{number} {each}" for each in range(2 * MOST_ASKED)]
        found = house.settled("ann", *invented)
        assert {found[peer] for peer in invented} == {0.0, 1 / (1 + number * MOST_ASKED + DOUBT)}


def test_among_many_those_with_a_connection_count_after_one_look_and_nobody_is_asked_twice_before_all_were():
    peers = [f"peer {number}" for number in range(10 * MOST_ASKED)]
    house = House()
    house.connected = set(peers[::40])
    found = house.settled(*peers)
    assert {found[peer] for peer in house.connected} == {1.0}
    for _ in range(9):
        house.settled(*peers)
    asked = [peer for look in house.asked for peer in look]
    assert len(asked) == len(set(asked)) == len(peers) - len(house.connected)


def test_an_id_that_is_too_long_is_not_asked_for_and_nobody_has_it():
    longest, longer = (str(PeerID(b"\xff" * length)) for length in (LONGEST_ID, LONGEST_ID + 1))
    peers = [f"peer {number}" for number in range(2 * MOST_ASKED)]
    house = House(longest, longer, *peers)
    assert house.settled(longest, longer) == {longest: 1.0, longer: 0.0}
    assert house.settled(*peers, longer)[longer] == 0.0
    assert not any(longer in asked for asked in house.asked)


def test_a_look_that_fails_changes_nothing_and_is_repeated():
    house = House("ann", "bob")
    house.settled("ann")
    house.clock.now += PRESENT_SECONDS
    ask, house.attendance._ask = house.attendance._ask, lambda _peers: 1 / 0
    assert house.settled("ann", "bob") == {"ann": 1.0, "bob": 0.0}
    house.attendance._ask = ask
    assert house.settled("ann", "bob") == {"ann": 1.0, "bob": 1.0}


def test_what_is_not_new_is_not_told():
    house = House("ann")
    house.settled("ann", "bob")
    assert house.told.acquire(timeout=SOON)
    house.clock.now += PRESENT_SECONDS
    house.settled("ann", "bob")
    assert not house.told.acquire(blocking=False)


def test_who_missed_one_question_may_be_asked_anew_at_once_but_not_where_somebody_has_answered():
    house = House()
    assert not house.attendance.ask_again()  # nobody was asked
    assert house.settled("ann", "bob") == {"ann": 0.0, "bob": 0.0}
    house.there.add("ann")
    assert house.attendance.ask_again()
    assert house.settled("ann", "bob") == {"ann": 1.0, "bob": 0.0}
    assert not house.attendance.ask_again()
    assert len(house.asked) == 2
