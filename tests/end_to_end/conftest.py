"""A practice swarm for all tests of a file."""

import pytest

from terminals import SHORT_EPOCHS, practice_swarm


@pytest.fixture(scope="module")
def practice(tmp_path_factory):
    with practice_swarm(tmp_path_factory.mktemp("practice"), SHORT_EPOCHS) as link:
        yield link
