"""Settings of the network."""

from __future__ import annotations

from typing import Final

from skep.core.settings.setting import Kind, Setting
from skep.core.text import Text

SETTINGS: Final = (
    Setting(
        "network.metered_pause",
        Text("setting.leave_metered_connections"),
        Text("setting.leave_swarm_while_connection_metered"),
        Kind.YES_NO,
        default=True,
    ),
    Setting(
        "network.port",
        Text("setting.port_label"),
        Text("setting.tcp_port_other_peers_reach"),
        Kind.WHOLE,
        0,
        minimum=1024,
        maximum=65_535,
        zero="automatic",
    ),
    Setting(
        "network.client_mode",
        Text("setting.client_mode"),
        Text("setting.only_make_connections_accept_none"),
        Kind.CHOICE,
        "automatic",
        choices=("automatic", "on", "off"),
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
)
