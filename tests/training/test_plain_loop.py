"""Two scripts with plain PyTorch loops train in one swarm, as processes of their own, and end without a trace."""

import math
import os
import signal
import subprocess
import sys

import pytest

from training_scripts import PATIENCE, equal_epoch, running

STOP_SECONDS = 2.0
NEARLY = 1e-3
"""Adam takes steps of 1e-2; the parameters of peers that share each round differ by rounding only."""


def test_two_scripts_train_together_and_confirm_each_other(tmp_path):
    with running(tmp_path, "plain_script.py", seed=1) as first:
        joined = first.event("joined")
        assert all("/p2p/" in address for address in joined["addresses"])
        told = [line["line"] for line in first.seen if line["event"] == "said"]
        assert any(joined["addresses"][0] in line and "INITIAL_PEERS" in line for line in told)
        with running(tmp_path, "plain_script.py", seed=2, peers=",".join(joined["addresses"])) as second:
            second.event("joined")
            ours, theirs = equal_epoch(first, second)
            assert ours["peers"] == theirs["peers"] == 1
            apart = max(abs(a - b) for a, b in zip(ours["values"], theirs["values"], strict=True))
            assert apart < NEARLY
            assert second.took_to_leave() < STOP_SECONDS
            left = second.event("left")
            assert left["confirmed"] >= theirs["confirmed"]
            assert math.isfinite(left["after"])  # its model is usable after leaving
            moved = max(abs(a - b) for a, b in zip(theirs["values"], joined["values"], strict=True))
            assert moved > apart
            assert first.took_to_leave() < STOP_SECONDS


@pytest.mark.parametrize("way", ["interrupt", "terminate", "kill"])
def test_a_script_that_is_ended_leaves_no_process(tmp_path, way):
    with running(tmp_path, "plain_script.py", target=64) as script:
        script.event("epoch")
        number = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}[way]
        assert script.end(lambda each: os.kill(each.process.pid, number)) < STOP_SECONDS
        # SIGTERM is an exit of the script, whose own cleaning up is done
        assert script.process.wait(PATIENCE) == (128 + number if way == "terminate" else -number)


def test_a_script_that_does_not_leave_ends_as_quickly(tmp_path):
    with running(tmp_path, "plain_script.py", end="none") as script:
        script.event("joined")
        assert script.end(lambda _: None) < STOP_SECONDS


@pytest.mark.parametrize(("package", "name"), [("skep.training", "join"), ("skep.lightning", "HivemindStrategy")])
def test_it_needs_neither_qt_nor_the_app(package, name):
    if package == "skep.lightning":
        pytest.importorskip("lightning")
    blocked = f"""
import sys
class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {{"PySide6", "skep_gui"}}:
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
from {package} import {name}
assert not {{"skep.bootstrap", "skep.engine", "skep.cli", "skep.host"}} & set(sys.modules), sorted(sys.modules)
print({name}.__name__)
"""
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (f"{name}\n", 0), done.stderr
