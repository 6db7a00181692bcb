"""What the operator's child processes write is in rotated logs, whole, before their failure is told."""

import os
import re

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
