"""Trying whether the TCP address in a multiaddress answers, for the worker and for the connection doctor."""

from __future__ import annotations

import socket
from typing import Final

from skep.core.text import NOTHING, Text

DIAL_SECONDS: Final = 5.0


def dial_one(address: str, within: float = DIAL_SECONDS) -> Text:
    """Why the TCP address in a multiaddress does not answer, for the user; empty when it does or is not TCP."""
    match address.split("/"):
        case [_, _, host, "tcp", port, *_]:
            pass
        case _:
            return NOTHING
    try:
        with socket.create_connection((host, int(port)), within):
            return NOTHING
    except ConnectionRefusedError:
        return Text("swarm.refuses_connection")
    except TimeoutError:
        return Text("swarm.did_not_answer_within_s", dial_seconds=within)
    except (socket.gaierror, UnicodeError):  # the latter for a label that is too long for any name
        return Text("swarm.name_could_not_found")
    except OSError as error:
        return Text("swarm.cannot_reached", reason=str(error.strerror or error))


def endpoint(address: str) -> str:
    """host:port of a multiaddress, for messages."""
    match address.split("/"):
        case [_, _, host, _, port, *_]:
            return f"{host}:{port}"
        case _:
            return address
