"""When a run ends by itself."""

from typing import Any

from skep.cli.verbs.join import PATIENCE, Course, Ending, Goal


def contribution(name: str, state: str, peers: int = 1) -> dict[str, Any]:
    return {"event": "contribution", "id": name, "state": state, "peers": peers}


def finished(course: Course, name: str, state: str = "confirmed", peers: int = 1) -> None:
    course.see(contribution(name, "pending"), 1.0)
    course.see(contribution(name, state, peers), 2.0)


def test_without_a_limit_it_never_ends() -> None:
    course = Course(Ending(), 0.0)
    course.see({"event": "joined"}, 1.0)
    assert not course.over(1e9)


def test_the_time_counts_from_joining() -> None:
    course = Course(Ending(seconds=60), 0.0)
    course.see({"event": "joined"}, 50.0)
    course.see({"event": "joined"}, 100.0)  # the worker has restarted; the time continues
    assert not course.over(109.9)
    assert course.over(110.0)


def test_a_short_run_that_never_joins_has_patience_and_then_ends() -> None:
    course = Course(Ending(seconds=5), 0.0)
    assert not course.over(PATIENCE - 1)
    assert course.over(PATIENCE)


def test_epochs_count_both_confirmed_and_lost_but_not_pending() -> None:
    course = Course(Ending(epochs=2), 0.0)
    finished(course, "a", "lost")
    course.see(contribution("b", "pending"), 3.0)
    assert not course.over(3.0)
    course.see(contribution("b", "confirmed"), 4.0)
    assert course.over(4.0)


def test_what_an_earlier_run_left_pending_is_no_epoch_of_this_one() -> None:
    course = Course(Ending(epochs=1), 0.0)
    course.see(contribution("old", "lost"), 1.0)
    assert not course.over(1.0)


def test_a_goal_needs_confirmed_epochs_and_a_fallen_loss() -> None:
    goal = Goal(confirmed=2, loss_ratio=0.8)
    course = Course(Ending(goal=goal), 0.0)
    for name, peers in (("a", 1), ("b", 3)):
        finished(course, name, peers=peers)
    assert not course.over(5.0)
    for loss in (5.0, 4.5, 4.0):
        course.see({"event": "evaluation", "loss": loss}, 5.0)
    assert course.over(5.0)
    assert (course.loss_ratio, course.peers) == (0.8, 3)


def test_a_run_of_months_keeps_two_losses_and_what_is_pending() -> None:
    course = Course(Ending(), 0.0)
    for number in range(100):
        finished(course, str(number))
        course.see({"event": "evaluation", "loss": float(number)}, 3.0)
    course.see(contribution("next", "pending"), 4.0)
    assert course.losses == (0.0, 99.0)
    assert course.ended == 100
    assert course._open == {"next"}


def test_the_whole_time_counts_whether_joined_or_not() -> None:
    course = Course(Ending(goal=Goal(5, 0.8), total_seconds=210), 10.0)
    assert not course.over(219.0)
    assert course.over(220.0)


def test_an_evaluation_that_is_no_number_is_left_out() -> None:
    course = Course(Ending(), 0.0)
    course.see({"event": "evaluation", "loss": None}, 1.0)
    assert course.losses == ()


def test_it_can_end_with_so_many_confirmed_epochs_however_many_were_lost() -> None:
    course = Course(Ending(confirmed=1), 0.0)
    finished(course, "a", "lost")
    assert not course.over(3.0)
    finished(course, "b")
    assert course.over(3.0)
