"""Settings of what computes, and how much."""

from __future__ import annotations

from typing import Final

from skep.core.settings.setting import Kind, Setting
from skep.core.text import Text

SETTINGS: Final = (
    Setting(
        "compute.device",
        Text("setting.device_label"),
        Text("setting.what_computes_without_choice_best"),
        Kind.TEXT,
        "",
        empty="best",
        pattern=r"cpu|mps|cuda(:\d{1,2})?",
        form=Text("setting.device_cpu_cuda_0_first"),
    ),
    Setting(
        "compute.share_away",
        Text("setting.share_while_away"),
        Text("setting.how_much_time_device_computes"),
        Kind.PERCENT,
        1.0,
        unit="%",
        minimum=0.05,
        maximum=1.0,
    ),
    Setting(
        "compute.share_using",
        Text("setting.share_while_you_use_computer"),
        Text("setting.how_much_time_device_computes_2"),
        Kind.PERCENT,
        0.2,
        unit="%",
        minimum=0.0,
        maximum=1.0,
        zero="pause",
    ),
    Setting(
        "compute.idle_minutes",
        Text("setting.away_after"),
        Text("setting.how_long_without_any_input"),
        Kind.NUMBER,
        3.0,
        unit="min",
        minimum=0.5,
        maximum=60,
    ),
    Setting(
        "compute.threads",
        Text("setting.processor_threads"),
        Text("setting.how_many_processor_threads_training"),
        Kind.WHOLE,
        0,
        minimum=1,
        maximum=512,
        zero="automatic",
    ),
    Setting(
        "compute.ramp_seconds",
        Text("setting.ramp_seconds_label"),
        Text("setting.how_long_share_takes_rise"),
        Kind.NUMBER,
        10.0,
        unit="s",
        minimum=0,
        maximum=120,
    ),
)
