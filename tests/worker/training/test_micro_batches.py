import pytest

from skep.worker.training.resource_limits import (
    AWAY_ON_GPU,
    AWAY_ON_PROCESSOR,
    PRESENT_SECONDS,
    RETRY_SECONDS,
    DryRun,
    MicroBatches,
    Sizing,
    expected_of_twice,
)


def linear(per_sample, overhead=0.0, sizes=(1, 2, 4, 8, 16, 32, 64)):
    """A dry run, up to the first size over the bound, with this time per sample and per batch."""
    seconds = {}
    for size in sizes:
        seconds[size] = overhead + per_sample * size
        if seconds[size] > AWAY_ON_GPU:
            break
    return DryRun(seconds, sizes[-1])


def test_a_gpu_gets_larger_micro_batches_while_nobody_is_there():
    made = MicroBatches(linear(0.002, overhead=0.01))
    assert made.size(present=True) == 16  # 42 ms; 32 would take 74
    assert made.size(present=False) == 32


def test_where_a_larger_one_gains_nothing_the_smaller_is_taken():
    made = MicroBatches(linear(0.005))
    assert (made.size(present=True), made.size(present=False)) == (1, 1)
    made = MicroBatches(linear(0.005, overhead=0.0004))
    assert (made.size(present=True), made.size(present=False)) == (8, 8)  # 16 would gain less than 1 %
    assert DryRun({1: 0.04, 2: 0.0705, 4: 0.135}, 64, AWAY_ON_PROCESSOR).useful() == 4  # 4 % justify a larger size


def test_memory_limits_both():
    found = DryRun({1: 0.01, 2: 0.011, 4: 0.012}, 4)
    assert MicroBatches(found).size(present=False) == 4
    assert MicroBatches(DryRun({1: 0.01}, 1)).size(present=False) == 1


@pytest.mark.parametrize(("single", "heavy"), [(0.3, True), (0.051, True), (0.049, False), (0.01, False)])
def test_a_project_is_heavy_when_one_sample_takes_longer_than_a_micro_batch_may(single, heavy):
    made = MicroBatches(DryRun({1: single}, 8))
    assert made.heavy is heavy
    assert made.size(present=True) == 1


def test_heaviness_follows_what_single_samples_take_and_not_what_others_take_of_the_device():
    made = MicroBatches(DryRun({1: 0.04}, 1))
    for _ in range(5):
        made.took(1, wall=0.5, spent=0.045, present=True)
    assert not made.heavy
    for _ in range(5):
        made.took(1, wall=0.08, spent=0.08, present=True)
    assert made.heavy
    for _ in range(5):
        made.took(1, wall=0.03, spent=0.03, present=True)
    assert not made.heavy


def test_several_samples_within_the_bound_show_that_one_is():
    made = MicroBatches(linear(0.002, overhead=0.01))
    made._single = 0.2
    made.took(16, wall=0.042, spent=0.042, present=True)
    assert not made.heavy


def test_a_slower_machine_gets_smaller_pieces_and_a_quicker_one_larger():
    sizing = Sizing(8, limit=16, bound=PRESENT_SECONDS)
    for _ in range(3):
        sizing.took(8, 0.07)
    assert sizing.size == 4
    for _ in range(3):
        sizing.took(4, 0.01)
    assert sizing.size == 8
    for _ in range(6):
        sizing.took(sizing.size, 0.001)
    assert sizing.size == 16  # the limit


def test_one_slow_piece_is_an_accident():
    sizing = Sizing(8, limit=8, bound=PRESENT_SECONDS)
    for seconds in (0.04, 5.0, 0.04, 0.04, 5.0):
        sizing.took(8, seconds)
    assert sizing.size == 8


def test_a_size_is_not_doubled_where_it_would_be_halved_right_after():
    sizing = Sizing(8, limit=16, bound=PRESENT_SECONDS)
    for _ in range(10):
        sizing.took(8, 0.024)
    assert sizing.size == 8


def test_the_rest_of_a_step_batch_tells_nothing():
    sizing = Sizing(8, limit=16, bound=PRESENT_SECONDS)
    for _ in range(10):
        sizing.took(3, 0.001)
    assert sizing.size == 8


def test_a_single_sample_is_never_made_smaller():
    sizing = Sizing(1, limit=8, bound=PRESENT_SECONDS)
    for _ in range(10):
        sizing.took(1, 1.0)
    assert sizing.size == 1


def test_the_grades_are_measured_apart():
    made = MicroBatches(linear(0.002, overhead=0.01))
    for _ in range(3):
        made.took(16, wall=0.2, spent=0.042, present=True)
    assert (made.size(present=True), made.size(present=False)) == (8, 32)


def test_what_ran_out_of_memory_is_not_tried_again_before_it_may_suffice():
    made = MicroBatches(linear(0.002, overhead=0.01))
    made.ran_out(32)
    assert made.size(present=False) == 16
    made.ran_out(1)
    assert made.size(present=False) == 1
    made.try_again()
    assert made.size(present=False) == 32


def test_after_a_lack_of_memory_larger_sizes_are_tried_again_ever_less_often():
    clock = Hand()
    made = MicroBatches(linear(0.002, overhead=0.01), clock)
    waits = []
    for _ in range(8):
        made.ran_out(32)
        begun = clock.now
        while made.size(present=False) == 16 and clock.now < begun + 10_000:
            clock.now += 10.0
        assert made.size(present=False) == 32
        waits.append(clock.now - begun)
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    made.try_again()  # the user gave memory back
    made.ran_out(32)
    clock.now += RETRY_SECONDS
    assert made.size(present=False) == 32


def test_sizes_grow_back_one_by_one():
    clock = Hand()
    made = MicroBatches(linear(0.002, overhead=0.01), clock)
    made.ran_out(8)
    sizes = []
    for _ in range(6):
        clock.now += RETRY_SECONDS
        sizes.append(made.size(present=False))
    assert sizes == [8, 8, 16, 16, 32, 32]


class Hand:
    now = 100.0

    def __call__(self):
        return self.now


def test_on_the_processor_a_micro_batch_may_take_longer_while_nobody_is_there():
    seconds = {1: 0.075, 2: 0.11, 4: 0.176, 8: 0.34}
    assert MicroBatches(DryRun(seconds, 8)).size(present=False) == 1
    assert MicroBatches(DryRun(seconds, 8, AWAY_ON_PROCESSOR)).size(present=False) == 4
    assert MicroBatches(DryRun(seconds, 8, AWAY_ON_PROCESSOR)).size(present=True) == 1


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [({1: 0.02}, 0.02), ({1: 0.02, 2: 0.03}, 0.05), ({1: 0.02, 2: 0.02}, 0.02), ({1: 0.03, 2: 0.02}, 0.02)],
)
def test_a_batch_of_twice_the_size_is_expected_to_take_what_the_last_two_say(seconds, expected):
    assert expected_of_twice(seconds) == pytest.approx(expected)
