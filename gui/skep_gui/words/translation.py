"""All texts of the app, each page's in the current language."""

from __future__ import annotations

from skep_gui.words.day import Day
from skep_gui.words.doctor import Doctor
from skep_gui.words.notices import Problems, UpdateWords
from skep_gui.words.now import Now
from skep_gui.words.packs import PackWords
from skep_gui.words.projects import Projects
from skep_gui.words.settings import Devices, RuleWords, SettingsForm
from skep_gui.words.speaker import Tongue
from skep_gui.words.stats import Stats


class Translation:
    """All texts of the app in one language."""

    def __init__(self, tongue: Tongue) -> None:
        self.tongue = tongue
        self.now = Now(tongue)
        self.projects = Projects(tongue)
        self.stats = Stats(tongue)
        self.day = Day(tongue)
        self.settings = SettingsForm(tongue)
        self.tester = RuleWords(tongue)
        self.devices = Devices(tongue)
        self.problems = Problems(tongue)
        self.doctor = Doctor(tongue)
        self.updates = UpdateWords(tongue)
        self.packs = PackWords(tongue)
