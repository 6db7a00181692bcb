"""Where the control socket lies and how it is found: a file in the home names the socket and holds the key.

It must not talk through the socket; that is control_socket.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skep.adapters.atomic import atomic_write

LONGEST_PATH: Final = 103
"""Bytes in a unix socket's path, on macOS, which permits the least."""

BACKLOG: Final = 128
"""Clients that may wait to be accepted; one more is turned away at once."""


@dataclass(frozen=True)
class Door:
    """What the control file says. `key` is secret."""

    socket_file: str
    key: bytes

    def write(self, control_file: Path) -> None:
        """For this user only. Raises OSError."""
        body = {"socket": self.socket_file, "key": base64.b64encode(self.key).decode(), "pid": os.getpid()}
        atomic_write(control_file, json.dumps(body).encode(), mode=0o600)

    @classmethod
    def read(cls, control_file: Path) -> Door:
        """Raises OSError; a damaged file leads nowhere and counts as missing."""
        try:
            body = json.loads(control_file.read_bytes())
            return cls(str(body["socket"]), base64.b64decode(body["key"], validate=True))
        except (ValueError, TypeError, KeyError, RecursionError):
            raise FileNotFoundError(f"{control_file} is damaged") from None


def listen(socket_file: Path) -> socket.socket:
    """A listening socket that never blocks, at a path for this user only. Raises OSError."""
    if len(os.fsencode(socket_file)) > LONGEST_PATH:
        raise OSError(f"the path {socket_file} is too long for a socket")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(socket_file))
        socket_file.chmod(0o600)
        listening.listen(BACKLOG)
        # a client may be gone between our waiting and accepting; then accept must not wait for the next one
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return listening


def remove_stale(control_file: Path) -> None:
    """Remove what a killed holder of this home left: the file, and the socket with its folder."""
    with contextlib.suppress(OSError):
        socket_file = Path(Door.read(control_file).socket_file)
        if socket_file.is_socket():
            remove_socket(socket_file)
        control_file.unlink()


def remove(control_file: Path, socket_file: Path) -> None:
    """Remove our own; a control file that names another socket is a successor's and stays."""
    with contextlib.suppress(OSError):
        if Door.read(control_file).socket_file == str(socket_file):
            control_file.unlink()
    remove_socket(socket_file)


def remove_socket(socket_file: Path) -> None:
    with contextlib.suppress(OSError):
        socket_file.unlink(missing_ok=True)
        socket_file.parent.rmdir()  # only when nothing else is in it
