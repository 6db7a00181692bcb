"""Settings of what is left to other programs, and when memory is given back."""

from __future__ import annotations

from typing import Final

from skep.core.settings.setting import Kind, Setting
from skep.core.text import Text

SETTINGS: Final = (
    Setting(
        "memory.leave_gpu_gb",
        Text("setting.leave_free_gpu"),
        Text("setting.memory_other_programs_always_find"),
        Kind.NUMBER,
        1.0,
        unit="GB",
        minimum=0,
        maximum=256,
    ),
    Setting(
        "memory.leave_ram_gb",
        Text("setting.leave_free_ram"),
        Text("setting.memory_other_programs_always_find_2"),
        Kind.NUMBER,
        2.0,
        unit="GB",
        minimum=0,
        maximum=1024,
    ),
    Setting(
        "memory.free_gpu_seconds",
        Text("setting.free_gpu_memory_after"),
        Text("setting.how_long_pause_lasts_until"),
        Kind.WHOLE,
        60,
        unit="s",
        minimum=5,
        maximum=3600,
    ),
    Setting(
        "memory.leave_swarm_minutes",
        Text("setting.leave_swarm_after"),
        Text("setting.how_long_pause_lasts_until_2"),
        Kind.NUMBER,
        10.0,
        unit="min",
        minimum=1,
        maximum=240,
    ),
)
