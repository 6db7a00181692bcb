"""Settings for the network, the disk, and the app."""

from __future__ import annotations

from typing import Final

from skep.core.settings.setting import Kind, Setting, choice, number, whole, yes_no
from skep.core.text import Text

SETTINGS: Final = (
    Setting(
        "network.metered_pause",
        Text("setting.network_metered_pause_label"),
        Text("setting.network_metered_pause_help"),
        **yes_no(default=True),
    ),
    Setting(
        "network.port",
        Text("setting.network_port_label"),
        Text("setting.network_port_help"),
        **whole(0, "", 1024, 65_535, zero="automatic"),
    ),
    Setting(
        "network.client_mode",
        Text("setting.network_client_mode_label"),
        Text("setting.network_client_mode_help"),
        **choice(("automatic", "on", "off")),
    ),
    Setting(
        "network.proxy",
        Text("setting.network_proxy_label"),
        Text("setting.network_proxy_help"),
        Kind.TEXT,
        "",
        empty="none",
        pattern=r"https?://[^\s/]+/?",
        form=Text("setting.address_such_http_proxy_example"),
    ),
    Setting(
        "disk.cache_gb",
        Text("setting.disk_cache_gb_label"),
        Text("setting.disk_cache_gb_help"),
        **number(10.0, "GB", 0.1, 10_000),
    ),
    Setting(
        "disk.keep_free_gb",
        Text("setting.disk_keep_free_gb_label"),
        Text("setting.disk_keep_free_gb_help"),
        **number(5.0, "GB", 0.1, 10_000),
    ),
    Setting(
        "app.start_at_login",
        Text("setting.app_start_at_login_label"),
        Text("setting.app_start_at_login_help"),
        **yes_no(default=False),
    ),
    Setting(
        "app.start_minimised",
        Text("setting.app_start_minimised_label"),
        Text("setting.app_start_minimised_help"),
        **yes_no(default=False),
    ),
    Setting(
        "app.notifications",
        Text("setting.app_notifications_label"),
        Text("setting.app_notifications_help"),
        **choice(("problems", "all", "none")),
    ),
    Setting(
        "app.check_updates",
        Text("setting.app_check_updates_label"),
        Text("setting.app_check_updates_help"),
        **yes_no(default=True),
    ),
    Setting(
        "app.language",
        Text("setting.app_language_label"),
        Text("setting.app_language_help"),
        **choice(("system", "en", "de")),
    ),
    Setting(
        "app.theme",
        Text("setting.app_theme_label"),
        Text("setting.app_theme_help"),
        **choice(("system", "light", "dark")),
    ),
)
