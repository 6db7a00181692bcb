"""What the operator's child processes write is in rotated logs, whole, before their failure is told."""

import os
import re
import tempfile
from pathlib import Path

import pytest

from english import in_english, raises
from skep.core.errors import SwarmError
from skep.host.practice.process import PracticeProcess
from skep.host.server.peer_process import PeerProcess

ENTRY = r"(?m)^[\d:.TZ-]+ INFO "


def test_what_a_seed_writes_is_logged(tmp_path):
    peer = PeerProcess([], tmp_path / "host.log")
    with raises(SwarmError, match="did not start"):
        peer.start()
    assert re.search(ENTRY + "host: seed.py: error: .*: --identity$", (tmp_path / "host.log").read_text())


def test_what_a_practice_swarm_writes_is_logged_and_its_last_words_are_told(tmp_path):
    # an interpreter that does not find its own library
    swarm = PracticeProcess(tmp_path / "home", tmp_path / "run", {**os.environ, "PYTHONHOME": str(tmp_path)})
    swarm.start()
    try:
        with raises(SwarmError) as caught:
            swarm.manifest(lambda: False)
    finally:
        swarm.end(2.0)
    said = "ModuleNotFoundError: No module named 'encodings'"
    assert said in in_english(caught.value.hint)
    assert re.search(ENTRY + f"practice: {said}$", (tmp_path / "run" / "practice.log").read_text())


@pytest.fixture
def short_folder():
    """One in which the paths of a swarm's sockets are short enough."""
    with tempfile.TemporaryDirectory(prefix="sp-") as folder:
        yield Path(folder)


def test_a_problem_of_a_practice_swarm_is_told_in_its_words(tmp_path, short_folder):
    key = tmp_path / "home" / "practice" / "publisher.key"
    key.parent.mkdir(mode=0o700, parents=True)
    key.write_text("no key")
    swarm = PracticeProcess(tmp_path / "home", short_folder / "run", os.environ)
    swarm.start()
    try:
        with raises(SwarmError, match="ended before it could be joined") as caught:
            swarm.manifest(lambda: False)
    finally:
        swarm.end(2.0)
    assert str(key) in in_english(caught.value.hint)
