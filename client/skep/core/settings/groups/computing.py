"""What computes, how much and when, and what is left to other programs."""

from __future__ import annotations

from typing import Final

from skep.core.settings.hours import FORM, FULL_WEEK, PATTERN
from skep.core.settings.setting import Kind, Setting, number, percent, whole, yes_no
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
        **percent(1.0, 0.05, 1.0),
    ),
    Setting(
        "compute.share_using",
        Text("setting.share_while_you_use_computer"),
        Text("setting.how_much_time_device_computes_2"),
        **percent(0.2, 0.0, 1.0, zero="pause"),
    ),
    Setting(
        "compute.idle_minutes",
        Text("setting.away_after"),
        Text("setting.how_long_without_any_input"),
        **number(3.0, "min", 0.5, 60),
    ),
    Setting(
        "compute.threads",
        Text("setting.processor_threads"),
        Text("setting.how_many_processor_threads_training"),
        **whole(0, "", 1, 512, zero="automatic"),
    ),
    Setting(
        "compute.ramp_seconds",
        Text("setting.ramp_seconds_label"),
        Text("setting.how_long_share_takes_rise"),
        **number(10.0, "s", 0, 120),
    ),
    Setting(
        "memory.leave_gpu_gb",
        Text("setting.leave_free_gpu"),
        Text("setting.memory_other_programs_always_find"),
        **number(1.0, "GB", 0, 256),
    ),
    Setting(
        "memory.leave_ram_gb",
        Text("setting.leave_free_ram"),
        Text("setting.memory_other_programs_always_find_2"),
        **number(2.0, "GB", 0, 1024),
    ),
    Setting(
        "memory.free_gpu_seconds",
        Text("setting.free_gpu_memory_after"),
        Text("setting.how_long_pause_lasts_until"),
        **whole(60, "s", 5, 3600),
    ),
    Setting(
        "memory.leave_swarm_minutes",
        Text("setting.leave_swarm_after"),
        Text("setting.how_long_pause_lasts_until_2"),
        **number(10.0, "min", 1, 240),
    ),
    Setting(
        "heat.cap_celsius",
        Text("rule.temperature_cap"),
        Text("setting.share_falls_so_device_stays"),
        **whole(80, "°C", 50, 95),
    ),
    Setting(
        "heat.power_cap_watts",
        Text("rule.power_cap"),
        Text("setting.most_power_gpu_may_draw"),
        **whole(0, "W", 20, 1500, zero="off"),
    ),
    Setting(
        "when.battery_pause",
        Text("setting.pause_battery"),
        Text("setting.stop_computing_while_computer_runs"),
        **yes_no(default=True),
    ),
    Setting(
        "when.schedule",
        Text("rule.schedule"),
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
        **percent(0.0, 0.05, 1.0, zero="as while using"),
    ),
    Setting(
        "when.gentle_using",
        Text("setting.share_gentle_hours_while_you"),
        Text("setting.most_computed_gentle_hours_schedule_2"),
        **percent(0.0, 0.05, 1.0, zero="as while using"),
    ),
    Setting(
        "when.full_screen_pause",
        Text("setting.pause_full_screen_programs"),
        Text("setting.stop_computing_while_another_program"),
        **yes_no(default=True),
    ),
    Setting(
        "when.call_pause",
        Text("setting.pause_calls_films"),
        Text("setting.stop_computing_while_another_program_2"),
        **yes_no(default=True),
    ),
    Setting(
        "when.busy_gpu_pause",
        Text("setting.pause_while_gpu_busy"),
        Text("setting.stop_computing_while_another_program_3"),
        **yes_no(default=True),
    ),
    Setting(
        "when.calm_seconds",
        Text("setting.calm_time"),
        Text("setting.how_long_other_programs_must"),
        **number(15.0, "s", 1, 600),
    ),
    Setting(
        "when.mains_calm_seconds",
        Text("setting.calm_time_mains_network"),
        Text("setting.how_long_computer_must_have"),
        **number(5.0, "s", 1, 600),
    ),
)
