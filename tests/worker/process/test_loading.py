import gc

import pytest

from skep.worker.process.memory import without_collecting


class Cycle:
    def __init__(self):
        self.me = self


@pytest.fixture(autouse=True)
def thawed():
    yield
    gc.unfreeze()


def test_nothing_is_collected_while_it_loads_and_what_it_made_is_left_alone_afterwards():
    before = gc.get_freeze_count()
    with without_collecting():
        assert not gc.isenabled()
        kept = [Cycle() for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(kept)


def test_collecting_goes_on_after_a_failure():
    with pytest.raises(ImportError), without_collecting():
        raise ImportError
    assert gc.isenabled()
