"""The real ledger and the fake of the engine's tests pass the same contract tests."""

import pytest

from contracts.ledger_contract import LedgerContract
from fakes import FakeLedger
from skep.adapters.storage.ledger_sqlite import SqliteLedger


@pytest.fixture(params=["sqlite", "fake"])
def ledger(request, home):
    made = SqliteLedger(home.ledger_file) if request.param == "sqlite" else FakeLedger()
    yield made
    made.close()


class TestLedger(LedgerContract):
    pass


class TestReopenedLedger(LedgerContract):
    """The same, with a ledger that is opened again for each call."""

    @pytest.fixture
    def ledger(self, home):
        made = Reopening(home.ledger_file)
        yield made
        made.close()


class Reopening:
    """A ledger that is closed and opened again before each call."""

    def __init__(self, path):
        self._path, self._ledger = path, SqliteLedger(path)

    def __getattr__(self, name):
        self._ledger.close()
        self._ledger = SqliteLedger(self._path)
        return getattr(self._ledger, name)
