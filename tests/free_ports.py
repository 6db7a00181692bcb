"""TCP ports at which nothing listens, for what a test will start there."""

import random
import socket
from contextlib import suppress

PORTS = range(20_000, 32_000)
"""Below Linux's range for connections and for port 0: a process that names no port gets none of these."""
_given = set()


def free_port():
    """A port that this process has not been given before."""
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            if port not in _given:
                _given.add(port)
                return port
    raise AssertionError("no port is free")
