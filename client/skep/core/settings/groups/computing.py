"""Settings for the device, the shares and schedule, and the resources left to other programs."""

from __future__ import annotations

from typing import Final

from skep.core.settings.hours import FORM, FULL_WEEK, PATTERN
from skep.core.settings.setting import Kind, Setting, number, percent, whole, yes_no
from skep.core.text import Text

SETTINGS: Final = (
    Setting(
        "compute.device",
        Text("setting.compute_device_label"),
        Text("setting.compute_device_help"),
        Kind.TEXT,
        "",
        empty="best",
        pattern=r"cpu|mps|cuda(:\d{1,2})?",
        form=Text("setting.device_cpu_cuda_0_first"),
    ),
    Setting(
        "compute.share_away",
        Text("setting.compute_share_away_label"),
        Text("setting.compute_share_away_help"),
        **percent(1.0, 0.05, 1.0),
    ),
    Setting(
        "compute.share_using",
        Text("setting.compute_share_using_label"),
        Text("setting.compute_share_using_help"),
        **percent(0.2, 0.0, 1.0, zero="pause"),
    ),
    Setting(
        "compute.idle_minutes",
        Text("setting.compute_idle_minutes_label"),
        Text("setting.compute_idle_minutes_help"),
        **number(3.0, "min", 0.5, 60),
    ),
    Setting(
        "compute.threads",
        Text("setting.compute_threads_label"),
        Text("setting.compute_threads_help"),
        **whole(0, "", 1, 512, zero="automatic"),
    ),
    Setting(
        "compute.ramp_seconds",
        Text("setting.compute_ramp_seconds_label"),
        Text("setting.compute_ramp_seconds_help"),
        **number(10.0, "s", 0, 120),
    ),
    Setting(
        "memory.leave_gpu_gb",
        Text("setting.memory_leave_gpu_gb_label"),
        Text("setting.memory_leave_gpu_gb_help"),
        **number(1.0, "GB", 0, 256),
    ),
    Setting(
        "memory.leave_ram_gb",
        Text("setting.memory_leave_ram_gb_label"),
        Text("setting.memory_leave_ram_gb_help"),
        **number(2.0, "GB", 0, 1024),
    ),
    Setting(
        "memory.free_gpu_seconds",
        Text("setting.memory_free_gpu_seconds_label"),
        Text("setting.memory_free_gpu_seconds_help"),
        **whole(60, "s", 5, 3600),
    ),
    Setting(
        "memory.leave_swarm_minutes",
        Text("setting.memory_leave_swarm_minutes_label"),
        Text("setting.memory_leave_swarm_minutes_help"),
        **number(10.0, "min", 1, 240),
    ),
    Setting(
        "heat.cap_celsius",
        Text("rule.temperature_cap"),
        Text("setting.heat_cap_celsius_help"),
        **whole(80, "°C", 50, 95),
    ),
    Setting(
        "heat.power_cap_watts",
        Text("rule.power_cap"),
        Text("setting.heat_power_cap_watts_help"),
        **whole(0, "W", 20, 1500, zero="off"),
    ),
    Setting(
        "when.battery_pause",
        Text("setting.when_battery_pause_label"),
        Text("setting.when_battery_pause_help"),
        **yes_no(default=True),
    ),
    Setting(
        "when.schedule",
        Text("rule.schedule"),
        Text("setting.when_schedule_help"),
        Kind.TEXT,
        FULL_WEEK,
        pattern=PATTERN,
        form=FORM,
    ),
    Setting(
        "when.gentle_away",
        Text("setting.when_gentle_away_label"),
        Text("setting.when_gentle_away_help"),
        **percent(0.0, 0.05, 1.0, zero="as while using"),
    ),
    Setting(
        "when.gentle_using",
        Text("setting.when_gentle_using_label"),
        Text("setting.when_gentle_using_help"),
        **percent(0.0, 0.05, 1.0, zero="as while using"),
    ),
    Setting(
        "when.full_screen_pause",
        Text("setting.when_full_screen_pause_label"),
        Text("setting.when_full_screen_pause_help"),
        **yes_no(default=True),
    ),
    Setting(
        "when.call_pause",
        Text("setting.when_call_pause_label"),
        Text("setting.when_call_pause_help"),
        **yes_no(default=True),
    ),
    Setting(
        "when.busy_gpu_pause",
        Text("setting.when_busy_gpu_pause_label"),
        Text("setting.when_busy_gpu_pause_help"),
        **yes_no(default=True),
    ),
    Setting(
        "when.calm_seconds",
        Text("setting.when_calm_seconds_label"),
        Text("setting.when_calm_seconds_help"),
        **number(15.0, "s", 1, 600),
    ),
    Setting(
        "when.mains_calm_seconds",
        Text("setting.when_mains_calm_seconds_label"),
        Text("setting.when_mains_calm_seconds_help"),
        **number(5.0, "s", 1, 600),
    ),
)
