"""Settings of when this computer computes."""

from __future__ import annotations

from typing import Final

from skep.core.settings.hours import FORM, FULL_WEEK, PATTERN
from skep.core.settings.setting import Kind, Setting
from skep.core.text import Text

SETTINGS: Final = (
    Setting(
        "when.battery_pause",
        Text("setting.pause_battery"),
        Text("setting.stop_computing_while_computer_runs"),
        Kind.YES_NO,
        default=True,
    ),
    Setting(
        "when.schedule",
        Text("setting.schedule_label"),
        Text("setting.hours_week_skep_computes_fully"),
        Kind.TEXT,
        FULL_WEEK,
        pattern=PATTERN,
        form=FORM,
    ),
    Setting(
        "when.gentle_away",
        Text("setting.share_gentle_hours_while_away"),
        Text("setting.most_computed_gentle_hours_schedule"),
        Kind.PERCENT,
        0.0,
        unit="%",
        minimum=0.05,
        maximum=1.0,
        zero="as while using",
    ),
    Setting(
        "when.gentle_using",
        Text("setting.share_gentle_hours_while_you"),
        Text("setting.most_computed_gentle_hours_schedule_2"),
        Kind.PERCENT,
        0.0,
        unit="%",
        minimum=0.05,
        maximum=1.0,
        zero="as while using",
    ),
    Setting(
        "when.full_screen_pause",
        Text("setting.pause_full_screen_programs"),
        Text("setting.stop_computing_while_another_program"),
        Kind.YES_NO,
        default=True,
    ),
    Setting(
        "when.call_pause",
        Text("setting.pause_calls_films"),
        Text("setting.stop_computing_while_another_program_2"),
        Kind.YES_NO,
        default=True,
    ),
    Setting(
        "when.busy_gpu_pause",
        Text("setting.pause_while_gpu_busy"),
        Text("setting.stop_computing_while_another_program_3"),
        Kind.YES_NO,
        default=True,
    ),
    Setting(
        "when.calm_seconds",
        Text("setting.calm_time"),
        Text("setting.how_long_other_programs_must"),
        Kind.NUMBER,
        15.0,
        unit="s",
        minimum=1,
        maximum=600,
    ),
    Setting(
        "when.mains_calm_seconds",
        Text("setting.calm_time_mains_network"),
        Text("setting.how_long_computer_must_have"),
        Kind.NUMBER,
        5.0,
        unit="s",
        minimum=1,
        maximum=600,
    ),
)
