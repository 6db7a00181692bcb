"""Settings for the device, the shares and schedule, and the resources left to other programs."""

from __future__ import annotations

from typing import Final

from skep.core.device import CHOICE
from skep.core.settings import device_limits
from skep.core.settings.hours import FORM, FULL_WEEK, PATTERN
from skep.core.settings.setting import Kind, Setting, number, percent, whole, yes_no
from skep.core.text import Text

SETTINGS: Final = (
    Setting(
        "compute.device",
        Kind.TEXT,
        "",
        empty="best",
        pattern=CHOICE,
        form=Text("setting.device_cpu_cuda_0_first"),
    ),
    Setting(
        "compute.device_limits", Kind.TEXT, "", empty="none", pattern=device_limits.PATTERN, form=device_limits.FORM
    ),
    Setting("compute.share_away", **percent(1.0, 0.05, 1.0)),
    Setting("compute.share_using", **percent(0.2, 0.0, 1.0, zero="pause")),
    Setting("compute.idle_minutes", **number(3.0, "min", 0.5, 60)),
    Setting("compute.threads", **whole(0, "", 1, 512, zero="automatic")),
    Setting("compute.nccl_min_channels", **whole(0, "", 1, 64, zero="automatic")),
    Setting("compute.nccl_socket_threads", **whole(0, "", 1, 16, zero="automatic")),
    Setting("compute.nccl_sockets_per_thread", **whole(0, "", 1, 16, zero="automatic")),
    Setting("compute.ramp_seconds", **number(10.0, "s", 0, 120)),
    Setting("memory.leave_gpu_gb", **number(1.0, "GB", 0, 256)),
    Setting("memory.leave_ram_gb", **number(2.0, "GB", 0, 1024)),
    Setting("memory.free_gpu_seconds", **whole(60, "s", 5, 3600)),
    Setting("memory.leave_swarm_minutes", **number(10.0, "min", 1, 240)),
    Setting("heat.cap_celsius", **whole(80, "°C", 50, 95), label=Text("rule.temperature_cap")),
    Setting("heat.power_cap_watts", **whole(0, "W", 20, 1500, zero="off"), label=Text("rule.power_cap")),
    Setting("when.battery_pause", **yes_no(default=True)),
    Setting("when.schedule", Kind.TEXT, FULL_WEEK, pattern=PATTERN, form=FORM, label=Text("rule.schedule")),
    Setting("when.gentle_away", **percent(0.0, 0.05, 1.0, zero="as while using")),
    Setting("when.gentle_using", **percent(0.0, 0.05, 1.0, zero="as while using")),
    Setting("when.full_screen_pause", **yes_no(default=True)),
    Setting("when.call_pause", **yes_no(default=True)),
    Setting("when.busy_gpu_pause", **yes_no(default=True)),
    Setting("when.calm_seconds", **number(15.0, "s", 1, 600)),
    Setting("when.mains_calm_seconds", **number(5.0, "s", 1, 600)),
)
