"""Real settings and pauses and their fakes pass the same contract tests."""

import pytest

from contracts.store_contracts import PausesContract, SettingsContract
from fakes import FakePauses, FakeSettings
from skep.adapters.storage.settings_file import PauseFile, SettingsFile


@pytest.fixture(params=["file", "fake"])
def settings(request, home):
    return SettingsFile(home.settings_file) if request.param == "file" else FakeSettings()


@pytest.fixture(params=["file", "fake"])
def pauses(request, home):
    return PauseFile(home.pause_file) if request.param == "file" else FakePauses()


class TestSettings(SettingsContract):
    pass


class TestPauses(PausesContract):
    pass
