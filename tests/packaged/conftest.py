"""The packaging scripts as modules, and what they have built."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))


@pytest.fixture(scope="session")
def frozen():
    """The folder with the programs."""
    folder = ROOT / "dist" / "skep"
    assert (folder / "skep").is_file(), "make package builds it"
    return folder
