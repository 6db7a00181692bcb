"""The seed's process tree ends with it, also when the seed itself cannot end its p2pd."""

import psutil
import pytest

from families import alive, kill
from skep.adapters.storage.identity import FileIdentity
from skep.core.errors import SwarmError
from skep.host.server.peer_process import PeerProcess
from terminals import wait_until

SOON = 5.0
"""Seconds; without its seed, a p2pd ends by itself only much later."""


@pytest.fixture
def seed(tmp_path):
    """A running seed, and the psutil processes of its tree, the seed's first."""
    made = PeerProcess(["--identity", str(FileIdentity(tmp_path / "seed.id").path)], tmp_path / "seed.log")
    made.start()
    root = psutil.Process(made._process.pid)
    family = [root, *root.children(recursive=True)]
    assert any(each.name().startswith("p2pd") for each in family)
    yield made, family
    made.end()
    kill(family)


def test_a_seed_that_was_killed_leaves_no_p2pd(seed):
    made, family = seed
    family[0].kill()
    wait_until(lambda: family[0] not in alive(family), SOON)
    made.end()
    assert alive(family) == []


def test_a_seed_that_does_not_end_when_asked_is_killed_with_its_p2pd(seed):
    made, family = seed
    family[0].suspend()
    made.end()
    assert alive(family) == []


def test_a_seed_that_does_not_start_says_why(tmp_path):
    (tmp_path / "seed.id").write_bytes(b"no key")
    made = PeerProcess(["--identity", str(tmp_path / "seed.id")], tmp_path / "seed.log")
    with pytest.raises(SwarmError) as raised:
        made.start()
    assert "P2PDaemonError" in str(raised.value.title.args["reason"])
