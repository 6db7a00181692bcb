"""A practice swarm for all tests of a file."""

import pytest

from terminals import SHORT_EPOCHS, practice_swarm


@pytest.fixture(scope="module")
def practice(tmp_path_factory):
    """The link that joins it. It has one peer, since each takes seconds of processor time to start."""
    with practice_swarm(tmp_path_factory.mktemp("practice"), SHORT_EPOCHS, peers=1) as link:
        yield link
