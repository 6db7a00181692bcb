import pytest
from hypothesis import given
from hypothesis import strategies as st

from skep.core.project.manifest import Schedule, factor


@pytest.mark.parametrize(
    ("kind", "epoch", "expected"),
    [
        ("constant", 0, 0.2),
        ("constant", 3, 0.8),
        ("constant", 4, 1.0),
        ("constant", 10_000, 1.0),
        ("linear", 4, 1.0),
        ("linear", 52, 0.5),
        ("linear", 100, 0.0),
        ("linear", 200, 0.0),
        ("cosine", 4, 1.0),
        ("cosine", 28, 0.853553),
        ("cosine", 52, 0.5),
        ("cosine", 100, 0.0),
        ("exponential", 3, 0.8),
        ("exponential", 4, 1.0),
        ("exponential", 5, 0.01 ** (1 / 96)),
        ("exponential", 52, 0.1),
        ("exponential", 100, 0.01),
        ("exponential", 200, 0.01),
    ],
)
def test_the_factor_of_an_epoch(kind, epoch, expected):
    assert factor(Schedule(kind, 4, 100), epoch) == pytest.approx(expected, abs=1e-6)


@given(
    st.sampled_from(["constant", "linear", "cosine", "exponential"]),
    st.integers(0, 50),
    st.integers(51, 500),
    st.integers(0, 600),
)
def test_it_rises_in_the_warm_up_and_never_after(kind, warmup, total, epoch):
    schedule = Schedule(kind, warmup, total)
    here, following = factor(schedule, epoch), factor(schedule, epoch + 1)
    assert 0.0 <= here <= 1.0
    assert (following > here) if epoch < warmup else (following <= here)
