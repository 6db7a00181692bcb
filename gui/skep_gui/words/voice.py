"""All that the app says, each page's words in the language that is set."""

from __future__ import annotations

from dataclasses import dataclass

from skep_gui.words.day import Day
from skep_gui.words.devices import Devices
from skep_gui.words.joining import Joining
from skep_gui.words.now import Now
from skep_gui.words.pauses import Pauses
from skep_gui.words.problems import Problems
from skep_gui.words.projects import Projects
from skep_gui.words.settings_form import SettingsForm
from skep_gui.words.speaker import Tongue
from skep_gui.words.stats import Stats
from skep_gui.words.tester import RuleWords
from skep_gui.words.updates import UpdateWords


@dataclass(frozen=True)
class Voice:
    """All that is said, in one language."""

    now: Now
    joining: Joining
    pauses: Pauses
    projects: Projects
    stats: Stats
    day: Day
    settings: SettingsForm
    devices: Devices
    problems: Problems
    tester: RuleWords
    updates: UpdateWords

    @classmethod
    def of(cls, tongue: Tongue) -> Voice:
        kinds = (Now, Joining, Pauses, Projects, Stats, Day, SettingsForm, Devices, Problems, RuleWords, UpdateWords)
        return cls(*(kind(tongue) for kind in kinds))  # type: ignore[arg-type]
