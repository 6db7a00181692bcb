import threading
import time

import pytest

from skep.worker.training.pace import SLICE_SECONDS, WINDOW_SECONDS, Pace


class Hand:
    """A clock that the test and the waits of its condition advance."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def work(pace, stopwatch, seconds):
    with pace.computing():
        stopwatch.now += seconds


def once_it_waits(pace, call):
    """The thread in which `call` runs as soon as this one waits for a change: an earlier one is not waited for."""
    thread, wait_for = threading.Thread(target=call), pace._changed.wait_for

    def waiting(*arguments):
        pace._changed.wait_for = wait_for
        thread.start()  # and has the lock when this thread has given it up to wait
        return wait_for(*arguments)

    pace._changed.wait_for = waiting
    return thread


def nap_all(pace):
    while pace.nap():
        pass


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_naps_keep_the_asked_share(share):
    stopwatch = Hand()
    pace = Pace(share, stopwatch)
    for _ in range(20):
        work(pace, stopwatch, 0.01)
        nap_all(pace)
    # the last nap may have lasted too long on a busy computer; the next one is shorter by as much
    assert pace.nap_seconds + pace._owed == pytest.approx(0.2 * (1 - share) / share)
    assert pace.measured == pytest.approx(0.2 / (0.2 + pace.nap_seconds))


def test_full_share_never_naps():
    stopwatch = Hand()
    pace = Pace(1.0, stopwatch)
    work(pace, stopwatch, 5.0)
    assert not pace.nap()
    assert pace.measured == 1.0


def test_nothing_is_measured_before_anything_was_computed():
    assert Pace(0.5, Hand()).measured is None


def test_a_nap_comes_in_slices_so_that_the_swarm_can_be_looked_at():
    stopwatch = Hand()
    pace = Pace(0.1, stopwatch)
    work(pace, stopwatch, 5.0)  # 45 s of naps are owed
    took = []
    for _ in range(5):
        begun = time.monotonic()
        assert pace.nap()
        took.append(time.monotonic() - begun)
    assert SLICE_SECONDS <= min(took) < SLICE_SECONDS + 0.1


def test_a_change_of_share_ends_a_nap_at_once_and_forgives_what_was_owed():
    stopwatch = Hand()
    pace = Pace(0.01, stopwatch)
    work(pace, stopwatch, 1.0)
    timer = threading.Timer(0.02, pace.set_share, [1.0])
    timer.start()
    begun = time.monotonic()
    nap_all(pace)
    assert time.monotonic() - begun < 1.0
    timer.join()


@pytest.fixture
def told():
    return []


def test_a_change_while_nothing_is_computed_is_obeyed_at_once(told):
    pace = Pace(1.0, Hand(), Hand(), lambda *news: told.append(news))
    with pace.waiting():
        pace.set_share(0.0)
        assert told == [(0.0, 0.0, "")]
    with pace.computing() as allowed:
        assert not allowed  # the training thread checked before the pause was ordered
    assert told == [(0.0, 0.0, "")]
    assert pace.compute_seconds == 0.0


def test_a_change_while_something_is_computed_is_obeyed_after_it_and_reported_once(told):
    clock = Hand()
    pace = Pace(1.0, Hand(), clock, lambda *news: told.append(news))
    with pace.computing() as allowed:
        assert allowed
        pace.set_share(0.0)
        clock.now += 0.04
        assert told == []
    assert told == [(0.0, pytest.approx(0.04), "")]
    pace.set_share(0.5)
    assert told[1:] == [(0.5, 0.0, "")]


def test_of_two_changes_during_one_piece_the_last_is_obeyed(told):
    pace = Pace(1.0, Hand(), Hand(), lambda *news: told.append(news))
    with pace.computing():
        pace.set_share(0.0)
        pace.set_share(0.7)
    assert told == [(0.7, 0.0, "")]


def test_a_piece_that_fails_does_not_leave_the_pace_computing(told):
    pace = Pace(1.0, Hand(), Hand(), lambda *news: told.append(news))
    with pytest.raises(ValueError, match="bad"), pace.computing():
        raise ValueError("bad")
    pace.set_share(0.0)
    assert told


def test_asking_for_the_share_that_holds_is_no_change(told):
    pace = Pace(0.5, Hand(), Hand(), lambda *news: told.append(news))
    pace.set_share(0.5)
    assert told == []


def test_waiting_counts_neither_as_compute_nor_as_nap():
    clock, stopwatch = Hand(), Hand()
    pace = Pace(0.5, stopwatch, clock)
    with pace.waiting():
        clock.now += 7.0
    assert pace.waiting_seconds == 7.0
    assert (pace.compute_seconds, pace.nap_seconds) == (0.0, 0.0)


def test_the_measured_share_forgets_what_is_older_than_a_minute():
    clock, stopwatch = Hand(), Hand()
    pace = Pace(1.0, stopwatch, clock)
    work(pace, stopwatch, 1.0)
    clock.now += WINDOW_SECONDS + 1
    assert pace.measured is None


def test_a_paused_worker_is_woken_by_the_change():
    pace = Pace(0.0, Hand())
    change = once_it_waits(pace, lambda: pace.set_share(0.5))
    begun = time.monotonic()
    pace.wait_for_change(10.0)
    assert time.monotonic() - begun < 5.0
    change.join()


def test_a_change_that_comes_in_a_round_is_obeyed_after_it_and_named_so(told):
    clock = Hand()
    pace = Pace(1.0, Hand(), clock, lambda *news: told.append(news))
    with pace.in_swarm() as wait:
        pace.set_share(0.0)
        clock.now += 1.5
        assert told == []
        wait.behind = "round"
    assert told == [(0.0, pytest.approx(1.5), "round")]
    assert pace.waiting_seconds == pytest.approx(1.5)
    with pace.in_swarm():
        pass
    assert len(told) == 1


def test_a_nudge_ends_a_nap_and_a_wait_and_forgives_nothing():
    stopwatch = Hand()
    pace = Pace(0.01, stopwatch)
    work(pace, stopwatch, 1.0)
    nudge = once_it_waits(pace, pace.nudge)
    begun = time.monotonic()
    pace.wait_for_change(10.0)
    assert time.monotonic() - begun < 5.0
    assert pace.nap()  # a nap is still due
    nudge.join()


class Sleeper(Hand):
    """A clock that jumps at the next reading, as after the computer slept."""

    jump = 0.0

    def __call__(self):
        self.now, self.jump = self.now + self.jump, 0.0
        return self.now


def test_a_nap_in_which_the_computer_slept_is_as_long_as_it_was_meant():
    clock, stopwatch = Sleeper(), Hand()
    pace = Pace(0.5, stopwatch, clock)
    work(pace, stopwatch, 0.01)
    wait_for = pace._changed.wait_for
    pace._changed.wait_for = lambda *arguments: (wait_for(*arguments), setattr(clock, "jump", 60.0))
    pace.nap()
    assert pace.nap_seconds == pytest.approx(0.01)
    assert pace.measured == pytest.approx(0.5)


def test_a_piece_in_which_the_computer_slept_counts_as_one_of_its_like():
    stopwatch = Hand()
    pace = Pace(0.5, stopwatch)
    for _ in range(3):
        work(pace, stopwatch, 0.04)
        nap_all(pace)
    slept = iter((0.0, 59.9))
    pace.slept = lambda: next(slept)
    work(pace, stopwatch, 60.0)
    assert pace.spent == pytest.approx(0.04)
    assert pace.compute_seconds == pytest.approx(0.16)
    assert pace._owed < 0.1


@pytest.mark.parametrize("slept", [0.0, 60.0])
def test_a_stopwatch_that_stood_still_in_the_sleep_is_believed(slept):
    stopwatch = Hand()
    pace = Pace(0.5, stopwatch)
    work(pace, stopwatch, 0.5)
    so_far = iter((0.0, slept))
    pace.slept = lambda: next(so_far)
    work(pace, stopwatch, 0.04)
    assert pace.spent == pytest.approx(0.04)


def test_pieces_of_any_length_are_counted_whole():
    stopwatch = Hand()
    pace = Pace(1.0, stopwatch)
    for seconds in (0.01, 0.1, 1.0, 60.0):
        work(pace, stopwatch, seconds)
    assert pace.compute_seconds == pytest.approx(61.11)
