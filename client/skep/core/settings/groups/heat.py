"""Settings of temperature and power."""

from __future__ import annotations

from typing import Final

from skep.core.settings.setting import Kind, Setting
from skep.core.text import Text

SETTINGS: Final = (
    Setting(
        "heat.cap_celsius",
        Text("rule.temperature_cap"),
        Text("setting.share_falls_so_device_stays"),
        Kind.WHOLE,
        80,
        unit="°C",
        minimum=50,
        maximum=95,
    ),
    Setting(
        "heat.power_cap_watts",
        Text("rule.power_cap"),
        Text("setting.most_power_gpu_may_draw"),
        Kind.WHOLE,
        0,
        unit="W",
        minimum=20,
        maximum=1500,
        zero="off",
    ),
)
