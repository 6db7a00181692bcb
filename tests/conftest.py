"""What every suite shares: the words as they stand now, a home, a stand-in card, and the watch for what tests leave behind."""

import importlib.util
import os
from pathlib import Path

import pytest
from hypothesis import settings

import leftovers
import nvml_card
from leftovers import nothing_left_behind, nothing_left_behind_by_the_run  # noqa: F401 - fixtures of every test
from skep.adapters.storage.paths import Home

pytest.register_assert_rewrite("contracts")

# a time limit for single examples measures the machine's other work, not ours
settings.register_profile("skep", deadline=None)
settings.load_profile("skep")

TESTS = Path(__file__).resolve().parent


def pytest_configure():
    os.environ["LC_ALL"] = "C.UTF-8"  # tests compare English words; what is started inherits this
    _compile_catalogues()
    leftovers.pytest_configure()


def _compile_catalogues():
    """The words as they stand in the sources now."""
    spec = importlib.util.spec_from_file_location("catalogues", TESTS.parent / "assets" / "catalogues.py")
    catalogues = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(catalogues)
    catalogues.compile_stale()


def pytest_collection_modifyitems(items):
    """Only the app has a Qt event loop; elsewhere an exception in a thread is not Qt's, and not always a fault."""
    for item in items:
        if item.path.relative_to(TESTS).parts[0] != "gui":
            item.add_marker("qt_no_exception_capture")


@pytest.fixture
def home(tmp_path):
    made = Home(tmp_path / "home")
    made.create()
    return made


@pytest.fixture(scope="session")
def library_folder(tmp_path_factory):
    return nvml_card.build_library(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def card(library_folder, tmp_path, monkeypatch):
    """An NVIDIA card in this computer, for this process alone, which the test conducts."""
    with nvml_card.plugged_in(library_folder, tmp_path, monkeypatch) as made:
        yield made
