"""The table of `make newcomer-test`, without running a row: the result from a run's output, and Debian's source."""

import newcomer
import pytest

DEMO, SUITES = newcomer.ROWS[0], newcomer.ROWS[3]
SUMMARIES = "1196 passed in 42.03s\n741 passed, 42 skipped in 30.96s\n{worker} in 181.57s (0:03:01)\n"
TAUGHT = "Held-out loss  5.402 → 4.031 (0.75 of the first)\nConfirmed      5 epochs (4 026 samples)\n"


@pytest.mark.parametrize(
    ("row", "said", "code", "result"),
    [
        (DEMO, TAUGHT, 0, "held-out loss 5.402 → 4.031 (0.75 of the first), confirmed 5 epochs (4 026 samples)"),
        (DEMO, "make: *** [setup] Error 1\n\n", 2, "**failed**: make: *** [setup] Error 1"),
        (DEMO, "", 0, "**failed**: it said nothing"),
        (
            SUITES,
            SUMMARIES.format(worker="667 passed, 1 skipped"),
            0,
            "core 1196 passed; adapters 741 passed, 42 skipped; worker 667 passed, 1 skipped",
        ),
        (
            SUITES,
            SUMMARIES.format(worker="2 failed, 665 passed, 1 skipped"),
            1,
            "**failed**: core 1196 passed; adapters 741 passed, 42 skipped; worker 2 failed, 665 passed, 1 skipped",
        ),
        (SUITES, "1196 passed in 42.03s\nKilled\n", 137, "**failed**: core 1196 passed"),
    ],
)
def test_the_result_of_a_row_is_what_its_run_printed(row, said, code, result):
    assert newcomer.outcome(row, said, code) == result


def test_the_mirror_can_be_named(monkeypatch):
    monkeypatch.setenv("SKEP_DEBIAN_MIRROR", "http://127.0.0.1/debian")
    assert newcomer.mirror() == "http://127.0.0.1/debian"


def test_a_python_that_is_not_here_is_named():
    with pytest.raises(newcomer.CannotRun, match=r"There is no Python 9\.9 on this computer"):
        newcomer.found_python("9.9")
