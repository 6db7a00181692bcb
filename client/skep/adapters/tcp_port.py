"""Whether a TCP port of this computer can be listened on. It must not keep it: the worker's p2pd listens later."""

from __future__ import annotations

import socket

from skep.core.errors import BadInput


def check_free(host: str, port: int) -> None:
    """Raise BadInput when `port` on the IPv4 address `host` is taken; 0, which means any, never is."""
    if port == 0:
        return
    with socket.socket() as probe:
        # as p2pd itself does: connections that linger from its last run do not count
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise BadInput(
                f"Port {port} on this computer cannot be used: {error.strerror or error}.",
                "Choose another in the setting network.port, where 0 takes any free one.",
                remedy="setting:network.port",
            ) from None
