"""`make test-faults PART=soak` for a minute instead of two hours."""

from contextlib import closing

import pytest
from faults import soak

FAMILY = 6
"""Processes of a front end and its worker at least."""


def settled(row):
    return row["confirmed"] + row["lost"]


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_ten_epochs_with_two_failing_rounds_are_two_rows_of_what_the_volunteer_used():
    with closing(soak.measure(range(2), epochs=5)) as measured:
        first, second = rows = list(measured)
    assert (first["number"], second["number"]) == (0, 1)
    assert first["run"] == second["run"]
    assert 5 <= first["epoch"] <= second["epoch"] - 5
    for row in rows:
        assert row["processes"] >= FAMILY, row
        assert 100 < row["memory"] < 2000, row
        assert FAMILY <= row["threads"] < 500, row
        assert 20 < row["descriptors"] < 2000, row
    assert 1 <= first["confirmed"] <= second["confirmed"], rows
    assert settled(first) < settled(second), rows
    assert second["lost"] >= 1, rows
    judged = {each.name: each.missed for each in soak.judged(rows)}  # too few for a line through them
    assert judged == {"contributions lost": False, "restarts of the worker": False}, rows
