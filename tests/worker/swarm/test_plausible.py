import math

import pytest
import torch

from skep.worker.swarm.plausible import (
    LARGEST_CHANGE,
    LARGEST_GRADIENT,
    finite,
    plausible_changes,
    plausible_norm,
    size_of,
)


@pytest.mark.parametrize(
    ("norm", "usable"), [(0.0, True), (1e6, True), (2 * LARGEST_GRADIENT, False), (math.inf, False), (math.nan, False)]
)
def test_gradients_are_used_up_to_a_bound(norm, usable):
    assert plausible_norm(torch.tensor(norm)) is usable


def test_the_size_of_a_tensor_is_its_root_mean_square():
    assert size_of(torch.tensor([3.0, -3.0, 3.0])) == pytest.approx(3.0)
    assert size_of(torch.tensor(-2.0)) == 2.0
    assert size_of(torch.zeros(0)) == 0.0
    assert not math.isfinite(size_of(torch.tensor([1.0, math.nan])))


@pytest.mark.parametrize(
    ("change", "size", "usable"),
    [
        (0.9 * LARGEST_CHANGE, 0.0, True),  # a bias that began at zero
        (0.9 * LARGEST_CHANGE * 50, 50.0, True),
        (1.1 * LARGEST_CHANGE * 50, 50.0, False),
        (1.1 * LARGEST_CHANGE, 0.02, False),
        (math.inf, 1.0, False),
        (math.nan, 1.0, False),
    ],
)
def test_an_average_may_change_a_tensor_up_to_a_multiple_of_its_size(change, size, usable):
    assert plausible_changes([torch.zeros(3), torch.full((3,), change)], [1.0, size]) is usable


def test_one_value_that_is_not_finite_is_found():
    assert finite([torch.zeros(2), torch.ones(3)])
    assert not finite([torch.zeros(2), torch.tensor([1.0, math.inf])])
