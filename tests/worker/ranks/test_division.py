import pytest

from skep.worker.ranks.division import Division


def measured(*speeds):
    division = Division(len(speeds))
    for rank, speed in enumerate(speeds):
        division.took(rank, 10, 10 / speed)
    return division


@pytest.mark.parametrize(
    ("speeds", "samples", "sizes"),
    [
        ((1.0, 1.0), 8, [4, 4]),
        ((3.0, 1.0), 8, [6, 2]),
        ((1.0, 3.0), 9, [2, 7]),
        ((100.0, 1.0), 8, [7, 1]),  # the slow one is measured further
        ((1.0, 2.0, 1.0), 16, [4, 8, 4]),
        ((1.0, 2.0), 1, [0, 1]),
        ((1.0, 1.0, 1.0), 2, [1, 1, 0]),
    ],
)
def test_each_rank_gets_samples_by_its_speed(speeds, samples, sizes):
    assert measured(*speeds).sizes(samples) == sizes


@pytest.mark.parametrize("samples", range(1, 40))
def test_all_samples_are_given_to_somebody(samples):
    for speeds in ((1.0, 1.0), (7.0, 1.0, 3.0), (0.1, 0.2, 0.3, 10.0)):
        sizes = measured(*speeds).sizes(samples)
        assert sum(sizes) == samples
        assert min(sizes) >= (samples >= len(speeds))


def test_until_all_are_measured_they_count_as_equal():
    division = Division(2)
    division.took(0, 10, 0.001)
    assert division.sizes(8) == [4, 4]


def test_a_rank_that_has_become_slow_gets_less():
    division = measured(1.0, 1.0)
    for _ in range(30):
        division.took(1, 10, 30.0)
    assert division.sizes(8) == [6, 2]


def over_time(division, samples, parts, times=400):
    sums = [0] * len(parts)
    for _ in range(times):
        sizes = division.sizes(samples, parts)
        assert sum(sizes) == samples
        assert min(sizes) >= 0
        sums = [sum(both) for both in zip(sums, sizes, strict=True)]
    return [each / sum(sums) for each in sums]


@pytest.mark.parametrize("samples", [1, 2, 5, 64])
@pytest.mark.parametrize(
    ("speeds", "parts", "shares"),
    [
        ((1.0, 1.0), (1.0, 0.5), (2 / 3, 1 / 3)),
        ((1.0, 4.0), (1.0, 0.25), (0.5, 0.5)),
        ((1.0, 1.0), (0.05, 1.0), (1 / 21, 20 / 21)),
        ((1.0, 1.0, 1.0), (1.0, 0.0, 0.5), (2 / 3, 0.0, 1 / 3)),
    ],
)
def test_a_limited_rank_computes_its_part_of_the_time_however_small_micro_batches_are(samples, speeds, parts, shares):
    assert over_time(measured(*speeds), samples, parts) == pytest.approx(shares, abs=0.01)


def test_a_rank_that_may_compute_nothing_gets_nothing():
    assert measured(1.0, 1.0).sizes(8, (1.0, 0.0)) == [8, 0]


def test_where_none_may_compute_all_do_until_the_whole_group_is_paused():
    assert measured(1.0, 1.0).sizes(8, (0.0, 0.0)) == [4, 4]


def test_limits_that_change_abruptly_leave_no_sample_over():
    division = measured(1.0, 1.0)
    for number in range(200):
        parts = [(1.0, 0.05), (0.05, 1.0), (1.0, 0.0), (0.0, 1.0)][number % 7 % 4]
        assert sum(division.sizes(1 + number % 3, parts)) == 1 + number % 3


def test_how_busy_a_rank_is_is_measured_against_the_time_of_the_group():
    division = Division(3)
    assert division.busy == [1.0, 1.0, 1.0]
    for _ in range(10):
        division.passed([0.2, 0.1, 0.0])
    assert division.busy == pytest.approx([1.0, 0.5, 0.0])
    taking_turns = Division(2)
    for number in range(300):
        taking_turns.passed([0.0, 0.2] if number % 3 == 0 else [0.2, 0.0])
    assert taking_turns.busy == pytest.approx([2 / 3, 1 / 3], abs=0.05)


def test_a_rank_that_may_compute_nothing_is_not_waited_for_to_divide_by_speed():
    division = Division(3)
    division.took(0, 10, 10)
    division.took(1, 90, 10)
    assert division.sizes(30, (1.0, 1.0, 0.0)) == [3, 27, 0]
