"""Fixtures of every suite: current message catalogues, a home, a stand-in card, and the check for what tests leave."""

import asyncio
import importlib.util
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

import leftovers
import nvml_card
from leftovers import nothing_left_behind, nothing_left_behind_by_the_run  # noqa: F401 - fixtures of every test
from skep.adapters.storage.paths import Home

pytest.register_assert_rewrite("contracts")

# a time limit for single examples would depend on the machine's other work
settings.register_profile("skep", deadline=None)
settings.load_profile("skep")

TESTS = Path(__file__).resolve().parent


def pytest_configure():
    os.environ["LC_ALL"] = "C.UTF-8"  # tests compare English words; child processes inherit this
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):  # or the app throttles when somebody uses this computer
        os.environ.pop(name, None)
    # as in the worker, before hivemind is imported: torch would start a torch_shm_manager, and abort if that ends first
    os.environ["HIVEMIND_MEMORY_SHARING_STRATEGY"] = "file_descriptor"
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a run in the background, whose children would ignore it too
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _compile_catalogues()
    leftovers.pytest_configure()


def _compile_catalogues():
    """Compile catalogues that are older than their sources."""
    spec = importlib.util.spec_from_file_location("catalogues", TESTS.parent / "assets" / "catalogues.py")
    catalogues = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(catalogues)
    catalogues.compile_stale()


def pytest_collection_modifyitems(items):
    """Only the app has a Qt event loop; elsewhere an exception in a thread is unrelated to Qt and may be intended."""
    for item in items:
        if item.path.relative_to(TESTS).parts[0] != "gui":
            item.add_marker("qt_no_exception_capture")


@pytest.fixture(scope="module", autouse=True)
def loop_of_this_thread():
    """Close the event loop of this thread: before CPython 3.14, hivemind's futures create one if there is none."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


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
    """An NVIDIA card that only this process sees; the test controls it."""
    with nvml_card.plugged_in(library_folder, tmp_path, monkeypatch) as made:
        yield made
