"""hivemind's internals are replaced in the version that this was written for, and in no other."""

import tomllib
from pathlib import Path

import hivemind
import pytest
from hivemind.p2p import P2P

from english import raises
from skep.core.errors import BadInput
from skep.worker.connection import guards

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def stock(monkeypatch):
    """As before the first start of a DHT."""
    monkeypatch.setattr(P2P, "receive_raw_data", guards._stock_receive)


def test_another_version_is_refused_in_words_and_left_as_it_is(stock, monkeypatch):
    monkeypatch.setattr(hivemind, "__version__", "1.2.0")
    with raises(BadInput, match=r"hivemind 1\.2\.0 is installed, and skep .* with version 1\.1\.12 only"):
        guards.install()
    assert P2P.receive_raw_data is guards._stock_receive


def test_it_is_the_version_that_is_installed_with_skep():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert f"hivemind=={guards.WRITTEN_FOR}" in extras["train"]
    assert hivemind.__version__ == guards.WRITTEN_FOR
