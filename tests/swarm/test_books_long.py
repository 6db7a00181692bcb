"""Three real peers, one of them paused or slowed to a fifth: the others' epochs stay full.

`tests/worker/swarm/test_books.py` has the short tests.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "swarm_books.py"


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", ["pause", "slow"])
def test_the_others_epochs_stay_full(tmp_path, case):
    results = run(tmp_path, case, "skep")
    assert abs(results["first_off"]) <= 0.1, results
    assert abs(results["mean_off"]) <= 0.05, results
    assert results["epoch_seconds"] >= 20


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_stock_peers_end_their_epochs_too_early_after_a_pause(tmp_path):
    results = run(tmp_path, "pause", "stock")
    assert results["first_off"] < -0.1, results


def run(folder, case, kind):
    arguments = ["--cases", case, "--kinds", kind, "--out", folder]
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)
    found = folder / "swarm-books.json"
    assert found.exists(), (done.stdout + done.stderr)[-3000:]
    return json.loads(found.read_text())["results"][f"{kind} {case}"]
