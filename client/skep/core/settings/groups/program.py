"""Settings for the network, the disk, and the app."""

from __future__ import annotations

from typing import Final

from skep.core.settings.setting import Kind, Setting, choice, number, whole, yes_no
from skep.core.text import Text

SETTINGS: Final = (
    Setting("network.metered_pause", **yes_no(default=True)),
    Setting("network.port", **whole(0, "", 1024, 65_535, zero="automatic")),
    Setting("network.map_port", **yes_no(default=False)),
    Setting("network.client_mode", **choice(("automatic", "on", "off"))),
    Setting("network.upload_mbit", **number(0.0, "Mbit/s", 1, 100_000, zero="unlimited")),
    Setting("network.download_mbit", **number(0.0, "Mbit/s", 1, 100_000, zero="unlimited")),
    Setting(
        "network.proxy",
        Kind.TEXT,
        "",
        empty="none",
        pattern=r"https?://[^\s/]+/?",
        form=Text("setting.address_such_http_proxy_example"),
    ),
    Setting("disk.cache_gb", **number(10.0, "GB", 0.1, 10_000)),
    Setting("disk.keep_free_gb", **number(5.0, "GB", 0.1, 10_000)),
    Setting("disk.snapshots_gb_per_day", **number(20.0, "GB", 0.1, 10_000)),
    Setting("app.start_at_login", **yes_no(default=False)),
    Setting("app.start_minimised", **yes_no(default=False)),
    Setting("app.notifications", **choice(("problems", "all", "none"))),
    Setting("app.check_updates", **yes_no(default=True)),
    Setting("app.language", **choice(("system", "en", "de"))),
    Setting("app.theme", **choice(("system", "light", "dark"))),
)
