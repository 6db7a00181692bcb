"""The log messages of a training peer in the practice swarm."""

import time

from fakes import make_index
from skep.host.practice.swarm import PracticeFolder, Trainer

SOON = 120


def test_a_failure_stands_in_the_log_in_words(tmp_path, capsys):
    trainer = Trainer(PracticeFolder(tmp_path), 0, "no manifest", make_index())
    said, deadline = "", time.monotonic() + SOON
    try:
        trainer.start()
        while "peer0: " not in said and time.monotonic() < deadline:
            time.sleep(0.1)
            said += capsys.readouterr().err
    finally:
        trainer.close()
    assert "peer0: The manifest is not valid: it is not JSON" in said
