"""The scripts in packaging and benchmarks as modules, and the frozen build."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "packaging"), str(ROOT / "benchmarks")]


@pytest.fixture(scope="session")
def frozen():
    """The folder with the frozen programs."""
    folder = ROOT / "dist" / "skep"
    assert (folder / "skep").is_file(), "make package builds it"
    return folder
