"""The programs of docs/train-your-own-script.md run as they stand: two peers of each, which confirm each other."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from families import lives
from skep.training import PostLocalSGD, Swarm, TrainingError, communicate
from training_scripts import PATIENCE

PAGE = Path(__file__).parents[2] / "docs" / "train-your-own-script.md"
PROGRAMS = dict(
    zip(
        ("plain", "lightning", "devices", "local"),
        re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL),
        strict=True,
    )
)
CONFIRMED = re.compile(r"samples confirmed [1-9]\d*")
PEERS = re.compile(r"INITIAL_PEERS=(\S+) in the environment")


class Program:
    """A running program; `until` reads what it prints."""

    def __init__(self, path, environment):
        self.process = subprocess.Popen(
            [sys.executable, "-u", path],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=path.parent,
            env=os.environ | environment,
            start_new_session=True,
        )
        self.said, self._lines = [], queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def until(self, pattern):
        deadline = time.monotonic() + PATIENCE
        while True:
            line = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            assert line is not None, "".join(self.said[-30:])
            self.said.append(line)
            if found := pattern.search(line):
                return found

    def close(self):
        family = [psutil.Process(self.process.pid)] if self.process.poll() is None else []
        family += family[0].children(recursive=True) if family else []
        if family:
            self.process.send_signal(signal.SIGINT)
            with_end = time.monotonic() + PATIENCE
            while any(map(lives, family)) and time.monotonic() < with_end:
                self.process.poll()
                time.sleep(0.02)
        self._reader.join(PATIENCE)
        self.process.wait(PATIENCE)
        self.process.stdout.close()


@contextmanager
def started(path, **environment):
    program = Program(path, environment)
    try:
        yield program
    finally:
        program.close()


def test_devices_without_a_swarm_drift_apart_and_are_averaged_as_the_page_says(tmp_path):
    path = tmp_path / "local.py"
    path.write_text(PROGRAMS["local"])
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    found = {}
    for step, device, number in re.findall(r"step (\d+), device ([01]): (-?\d+\.\d{6})", done.stdout):
        found.setdefault(int(step), {})[device] = number
    equal = [step for step, numbers in sorted(found.items()) if numbers["0"] == numbers["1"]]
    assert len(found) == 9
    assert [later - step for step, later in pairwise(equal)] == [4] * (len(equal) - 1)
    assert len(equal) in (2, 3)


def test_options_of_communication_that_cannot_be_used_are_refused_in_a_sentence():
    with pytest.raises(TrainingError, match=r"^\S.+\.$"):
        communicate(None, PostLocalSGD(start_localSGD_iter=10, period=1))


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "local"])
def test_two_peers_with_the_program_of_the_page_confirm_each_other(tmp_path, name):
    if name != "plain":
        pytest.importorskip("lightning")
    path = tmp_path / "sums.py"
    path.write_text(PROGRAMS[name])
    with started(path) as first:
        peers = first.until(PEERS)[1]
        with started(path, INITIAL_PEERS=peers) as second:
            second.until(CONFIRMED)
            first.until(CONFIRMED)


def test_devices_of_a_script_in_a_swarm_cannot_drift_apart(monkeypatch):
    monkeypatch.setattr(Swarm, "_present", object())
    with pytest.raises(TrainingError, match="one optimizer steps for all"):
        communicate(None, PostLocalSGD(start_localSGD_iter=10, period=4))
