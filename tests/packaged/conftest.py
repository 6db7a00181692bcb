"""The scripts in packaging and benchmarks as modules, and the frozen build."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "packaging"), str(ROOT / "benchmarks")]


@pytest.fixture(scope="session")
def frozen():
    """The folder with the frozen programs and the training stack."""
    return built("skep")


@pytest.fixture(scope="session")
def app_alone():
    """The folder with the frozen programs only."""
    return built("skep-app")


@pytest.fixture(scope="session", params=["skep", "skep-app"])
def either(request):
    """Each of both folders."""
    return built(request.param)


def built(name):
    folder = ROOT / "dist" / name
    assert (folder / "skep").is_file(), "make package builds it"
    return folder
