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
