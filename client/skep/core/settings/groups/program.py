"""The network, the disk, and the app itself."""

from __future__ import annotations

from typing import Final

from skep.core.settings.setting import Kind, Setting, choice, number, whole, yes_no
from skep.core.text import Text

SETTINGS: Final = (
    Setting(
        "network.metered_pause",
        Text("setting.leave_metered_connections"),
        Text("setting.leave_swarm_while_connection_metered"),
        **yes_no(default=True),
    ),
    Setting(
        "network.port",
        Text("setting.port_label"),
        Text("setting.tcp_port_other_peers_reach"),
        **whole(0, "", 1024, 65_535, zero="automatic"),
    ),
    Setting(
        "network.client_mode",
        Text("setting.client_mode"),
        Text("setting.only_make_connections_accept_none"),
        **choice(("automatic", "on", "off")),
    ),
    Setting(
        "network.proxy",
        Text("setting.proxy_label"),
        Text("setting.proxy_downloads"),
        Kind.TEXT,
        "",
        empty="none",
        pattern=r"https?://[^\s/]+/?",
        form=Text("setting.address_such_http_proxy_example"),
    ),
    Setting(
        "disk.cache_gb",
        Text("setting.cache_limit"),
        Text("setting.how_much_disk_downloaded_training"),
        **number(10.0, "GB", 0.1, 10_000),
    ),
    Setting(
        "disk.keep_free_gb",
        Text("setting.keep_free"),
        Text("setting.how_much_disk_downloads_always"),
        **number(5.0, "GB", 0.1, 10_000),
    ),
    Setting(
        "app.start_at_login",
        Text("setting.start_login"),
        Text("setting.start_skep_tray_when_you"),
        **yes_no(default=False),
    ),
    Setting(
        "app.start_minimised",
        Text("setting.start_minimised"),
        Text("setting.start_tray_without_opening_window"),
        **yes_no(default=False),
    ),
    Setting(
        "app.notifications",
        Text("setting.notifications_label"),
        Text("setting.what_skep_tells_you_about"),
        **choice(("problems", "all", "none")),
    ),
    Setting(
        "app.check_updates",
        Text("setting.check_updates"),
        Text("setting.look_new_version_skep_when"),
        **yes_no(default=True),
    ),
    Setting(
        "app.language",
        Text("setting.language_label"),
        Text("setting.language_window_tray"),
        **choice(("system", "en", "de")),
    ),
    Setting(
        "app.theme", Text("setting.theme_label"), Text("setting.colours_window"), **choice(("system", "light", "dark"))
    ),
)
