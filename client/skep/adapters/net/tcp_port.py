"""Whether a TCP port of this computer can be listened on. The port is not kept: p2pd listens later."""

from __future__ import annotations

import socket

from skep.core.errors import BadInput
from skep.core.text import Text


def check_free(host: str, port: int) -> None:
    """Raise BadInput when `port` on the IPv4 address `host` is taken; 0, which means any, never is."""
    try:
        _bind(host, port)
    except OSError as error:
        raise BadInput(
            Text("tcp_port.port_computer_cannot_used", port=port, reason=str(error.strerror or error)),
            Text("tcp_port.choose_another_setting_where_0", setting="network.port"),
            remedy="setting:network.port",
        ) from None


def check_seed_port(host: str, port: int, hint: Text) -> None:
    """Raise BadInput when `port` on the IPv4 address `host` is taken, or may not be used."""
    try:
        _bind(host, port)
    except PermissionError:
        raise BadInput(Text("peer_process.port_computer_may_not_used", port=port), hint) from None
    except OSError:
        raise BadInput(Text("peer_process.port_computer_use_another_program", port=port), hint) from None


def _bind(host: str, port: int) -> None:
    """Raises OSError."""
    if port:
        with socket.socket() as probe:
            # as p2pd itself does: connections that linger from its last run do not count
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
