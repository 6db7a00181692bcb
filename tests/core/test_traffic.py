import pytest
from hypothesis import given
from hypothesis import strategies as st

from skep.core.traffic import BURST_SECONDS, MBIT, PIECE_BYTES, Caps, caps_of, due


@given(
    st.floats(1_000, 1e8),
    st.lists(st.tuples(st.floats(0, 5), st.integers(1, PIECE_BYTES)), min_size=1, max_size=60),
)
def test_no_time_sees_more_than_the_rate_a_burst_and_a_piece(rate, pieces):
    now = free_at = 1000.0
    moved = []
    for pause, size in pieces:
        now += pause
        free_at = due(free_at, now, size, rate)
        now = max(now, free_at)
        moved.append((now, size))
    for number, (begin, _) in enumerate(moved):
        for end, _ in moved[number:]:
            inside = sum(size for at, size in moved if begin <= at <= end)
            assert inside <= (end - begin + BURST_SECONDS) * rate * (1 + 1e-9) + PIECE_BYTES + 1


def test_a_queue_moves_at_the_rate_exactly():
    free_at, now = 0.0, 50.0
    for _ in range(100):
        free_at = due(free_at, now, 1000, 10_000.0)
    assert free_at == pytest.approx(50.0 - BURST_SECONDS + 100 * 1000 / 10_000.0)


def test_limits_are_megabits_in_the_settings_and_none_where_they_are_0():
    assert caps_of({"network.upload_mbit": 8.0, "network.download_mbit": 0.0}) == Caps(8 * MBIT, 0.0)
    assert caps_of({}) == Caps()
    assert MBIT * 8 == 1_000_000
