"""Every setting there is, declared once as data: words, unit, bounds, default, group.

It must hold no behaviour; checking, parsing and showing are in `settings`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from skep.core.hours import FORM, FULL_WEEK, PATTERN

Value = bool | int | float | str


class Kind(StrEnum):
    YES_NO = "yes or no"
    WHOLE = "a whole number"
    NUMBER = "a number"
    PERCENT = "a percentage"
    CHOICE = "one of a few words"
    TEXT = "a text"


@dataclass(frozen=True)
class Setting:
    """One setting with everything that a form, a file and a terminal need.

    `default`, `minimum` and `maximum` are in `unit`, but fractions 0..1 for percentages. `zero` is the word for a
    value of 0 ("automatic"), which is allowed then even below the minimum; `empty` the word for an empty text.
    `form` describes a text that must match `pattern`.
    """

    key: str
    label: str
    help: str
    kind: Kind
    default: Value
    unit: str = ""
    minimum: float = -math.inf
    maximum: float = math.inf
    zero: str = ""
    empty: str = ""
    choices: tuple[str, ...] = ()
    pattern: str = ""
    form: str = ""

    @property
    def group(self) -> str:
        return self.key.partition(".")[0]


GROUPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "compute": "Compute",
        "memory": "Memory",
        "heat": "Heat and power",
        "when": "When",
        "network": "Network",
        "disk": "Disk",
        "app": "App",
    }
)
"""Titles of the groups, in the order in which they are shown."""

_DECLARED: Final = (
    Setting(
        "compute.device",
        "Device",
        "What computes. Without a choice the best one that works is taken.",
        Kind.TEXT,
        "",
        empty="best",
        pattern=r"cpu|mps|cuda(:\d{1,2})?",
        form="a device: cpu, cuda:0 for the first GPU, or mps on a Mac",
    ),
    Setting(
        "compute.share_away",
        "Share while away",
        "How much of the time the device computes while nobody uses this computer.",
        Kind.PERCENT,
        1.0,
        unit="%",
        minimum=0.05,
        maximum=1.0,
    ),
    Setting(
        "compute.share_using",
        "Share while you use this computer",
        "How much of the time the device computes while somebody uses this computer; 0 pauses.",
        Kind.PERCENT,
        0.2,
        unit="%",
        minimum=0.0,
        maximum=1.0,
        zero="pause",
    ),
    Setting(
        "compute.idle_minutes",
        "Away after",
        "How long without any input until nobody counts as using this computer.",
        Kind.NUMBER,
        3.0,
        unit="min",
        minimum=0.5,
        maximum=60,
    ),
    Setting(
        "compute.threads",
        "Processor threads",
        "How many processor threads the training may use; automatic takes fewer while you use this computer.",
        Kind.WHOLE,
        0,
        minimum=1,
        maximum=512,
        zero="automatic",
    ),
    Setting(
        "compute.ramp_seconds",
        "Ramp",
        "How long the share takes to rise again.",
        Kind.NUMBER,
        10.0,
        unit="s",
        minimum=0,
        maximum=120,
    ),
    Setting(
        "memory.leave_gpu_gb",
        "Leave free on the GPU",
        "Memory that other programs always find free on the GPU.",
        Kind.NUMBER,
        1.0,
        unit="GB",
        minimum=0,
        maximum=256,
    ),
    Setting(
        "memory.leave_ram_gb",
        "Leave free in RAM",
        "Memory that other programs always find free in this computer.",
        Kind.NUMBER,
        2.0,
        unit="GB",
        minimum=0,
        maximum=1024,
    ),
    Setting(
        "memory.free_gpu_seconds",
        "Free GPU memory after",
        "How long a pause lasts until the model leaves the GPU's memory.",
        Kind.WHOLE,
        60,
        unit="s",
        minimum=5,
        maximum=3600,
    ),
    Setting(
        "memory.leave_swarm_minutes",
        "Leave the swarm after",
        "How long a pause lasts until this computer leaves the swarm.",
        Kind.NUMBER,
        10.0,
        unit="min",
        minimum=1,
        maximum=240,
    ),
    Setting(
        "heat.cap_celsius",
        "Temperature cap",
        "The share falls so that the device stays below this temperature.",
        Kind.WHOLE,
        80,
        unit="°C",
        minimum=50,
        maximum=95,
    ),
    Setting(
        "heat.power_cap_watts",
        "Power cap",
        "The most power the GPU may draw, where the system permits setting it.",
        Kind.WHOLE,
        0,
        unit="W",
        minimum=20,
        maximum=1500,
        zero="off",
    ),
    Setting(
        "when.battery_pause",
        "Pause on battery",
        "Stop computing while this computer runs on its battery.",
        Kind.YES_NO,
        default=True,
    ),
    Setting(
        "when.schedule",
        "Schedule",
        "The hours of the week in which skep computes fully, gently or not at all; the last one that fits an hour counts.",
        Kind.TEXT,
        FULL_WEEK,
        pattern=PATTERN,
        form=FORM,
    ),
    Setting(
        "when.gentle_away",
        "Share in gentle hours while away",
        "The most that is computed in gentle hours of the schedule while nobody uses this computer.",
        Kind.PERCENT,
        0.0,
        unit="%",
        minimum=0.05,
        maximum=1.0,
        zero="as while using",
    ),
    Setting(
        "when.gentle_using",
        "Share in gentle hours while you use this computer",
        "The most that is computed in gentle hours of the schedule while somebody uses this computer.",
        Kind.PERCENT,
        0.0,
        unit="%",
        minimum=0.05,
        maximum=1.0,
        zero="as while using",
    ),
    Setting(
        "when.full_screen_pause",
        "Pause for full-screen programs",
        "Stop computing while another program fills the screen.",
        Kind.YES_NO,
        default=True,
    ),
    Setting(
        "when.call_pause",
        "Pause for calls and films",
        "Stop computing while another program keeps the screen on, as a call or a film does.",
        Kind.YES_NO,
        default=True,
    ),
    Setting(
        "when.busy_gpu_pause",
        "Pause while the GPU is busy",
        "Stop computing while another program uses the GPU.",
        Kind.YES_NO,
        default=True,
    ),
    Setting(
        "when.calm_seconds",
        "Calm time",
        "How long other programs must have been quiet before computing goes on.",
        Kind.NUMBER,
        15.0,
        unit="s",
        minimum=1,
        maximum=600,
    ),
    Setting(
        "when.mains_calm_seconds",
        "Calm time of mains and network",
        "How long this computer must have been on mains, or off a metered connection, before computing goes on.",
        Kind.NUMBER,
        5.0,
        unit="s",
        minimum=1,
        maximum=600,
    ),
    Setting(
        "network.metered_pause",
        "Leave on metered connections",
        "Leave the swarm while the connection is metered.",
        Kind.YES_NO,
        default=True,
    ),
    Setting(
        "network.port",
        "Port",
        "The TCP port on which other peers reach this computer.",
        Kind.WHOLE,
        0,
        minimum=1024,
        maximum=65_535,
        zero="automatic",
    ),
    Setting(
        "network.client_mode",
        "Client mode",
        "Only make connections and accept none; automatic finds out whether others can reach this computer.",
        Kind.CHOICE,
        "automatic",
        choices=("automatic", "on", "off"),
    ),
    Setting(
        "network.proxy",
        "Proxy",
        "The proxy for downloads.",
        Kind.TEXT,
        "",
        empty="none",
        pattern=r"https?://[^\s/]+/?",
        form="an address such as http://proxy.example.org:3128",
    ),
    Setting(
        "disk.cache_gb",
        "Cache limit",
        "How much disk the downloaded training data may take.",
        Kind.NUMBER,
        10.0,
        unit="GB",
        minimum=0.1,
        maximum=10_000,
    ),
    Setting(
        "disk.keep_free_gb",
        "Keep free",
        "How much of the disk downloads always leave free.",
        Kind.NUMBER,
        5.0,
        unit="GB",
        minimum=0.1,
        maximum=10_000,
    ),
    Setting(
        "app.start_at_login",
        "Start at login",
        "Start skep in the tray when you log in.",
        Kind.YES_NO,
        default=False,
    ),
    Setting(
        "app.start_minimised",
        "Start minimised",
        "Start in the tray, without opening the window.",
        Kind.YES_NO,
        default=False,
    ),
    Setting(
        "app.notifications",
        "Notifications",
        "What skep tells you about unasked.",
        Kind.CHOICE,
        "problems",
        choices=("problems", "all", "none"),
    ),
    Setting(
        "app.check_updates",
        "Check for updates",
        "Look for a new version of skep when it starts and once a day. Nothing is installed without you.",
        Kind.YES_NO,
        default=True,
    ),
    Setting(
        "app.language",
        "Language",
        "The language of the window and the tray.",
        Kind.CHOICE,
        "system",
        choices=("system", "en", "de"),
    ),
    Setting(
        "app.theme",
        "Theme",
        "The colours of the window.",
        Kind.CHOICE,
        "system",
        choices=("system", "light", "dark"),
    ),
)

SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType({setting.key: setting for setting in _DECLARED})
"""Every setting by its key, in the order in which they are shown."""

DEFAULTS: Final[Mapping[str, Value]] = MappingProxyType({setting.key: setting.default for setting in _DECLARED})
