"""A small web server for the files of one folder, or for a list of files.

In a practice swarm it listens on loopback; a host may open it to others, and then it serves only listed files. It has
no directory listings, subfolders or links, a limited number of connections, and a deadline for each request and answer.
"""

from __future__ import annotations

import errno
import http.server
import os
import re
import socket
import socketserver
import stat
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO, Final

from skep.core.errors import BadInput, SkepError
from skep.core.text import Text

HOST: Final = "127.0.0.1"

_NAME: Final = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,200}")
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
REQUEST_SECONDS: Final = 60.0
"""Until a request is complete, since the connection was made or the answer before was sent."""
LEAST_RATE: Final = 1024
"""Bytes per second at which an answer has to be taken, after REQUEST_SECONDS."""
_CHUNK: Final = 64 * 1024
MOST_CONNECTIONS: Final = 128
"""Simultaneous connections, each with a thread. Further ones are closed immediately; downloads retry automatically."""
MOST_OF_ONE: Final = 32
"""Those of one address. A volunteer has four; several may come through one router."""

Place = Path | Mapping[str, Path]
"""The served files: a folder, or each file by its name in requests."""


@contextmanager
def serving(
    place: Place,
    port: int = 0,
    host: str = HOST,
    *,
    request_seconds: float = REQUEST_SECONDS,
    least_rate: float = LEAST_RATE,
) -> Iterator[str]:
    """A context that serves `place` in threads; yields its address without a trailing slash. Connections end with it.

    Port 0 takes any free one. `host` is the IPv4 address of this computer to listen on. `request_seconds` and
    `least_rate` as REQUEST_SECONDS and LEAST_RATE. Raises BadInput when the port is taken or not allowed.
    """
    try:
        server = _Server(place, (host, port), request_seconds, least_rate)
    except (OSError, OverflowError) as error:
        raise _no_port(port, error) from None
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="files", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        server.end_connections()


def _no_port(port: int, error: OSError | OverflowError) -> SkepError:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return BadInput(Text("file_server.port_use_computer", port=port), Text("file_server.choose_another_port_0_any"))
    if isinstance(error, PermissionError):
        return BadInput(
            Text("file_server.port_may_not_used_you", port=port), Text("file_server.choose_port_from_1024_0")
        )
    if isinstance(error, OverflowError):
        return BadInput(Text("file_server.not_port", port=port), Text("file_server.choose_port_from_1024_65535"))
    return SkepError(
        Text("file_server.port_cannot_listened", port=port, reason=str(error.strerror or error)),
        Text("file_server.choose_another_port"),
    )


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, place: Place, at: tuple[str, int], request_seconds: float, least_rate: float) -> None:
        self.place = place
        self._request_seconds, self._least_rate = request_seconds, least_rate
        self._lock = threading.Lock()
        self._connections: dict[socket.socket, tuple[str, float]] = {}
        """The address of each, and when it is ended, in monotonic seconds."""
        super().__init__(at, _Handler)

    def server_bind(self) -> None:
        # http.server would look up the host's name, which can take seconds without a network
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            address = str(client_address[0])
            of_one = Counter(each for each, _ in self._connections.values())[address]
            taken = len(self._connections) < MOST_CONNECTIONS and of_one < MOST_OF_ONE
            if taken:
                self._connections[request] = address, time.monotonic() + self._request_seconds
        if not taken:
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def expect(self, request: socket.socket, answer: int = 0) -> None:
        """The next request, or that an answer of so many bytes is taken: until then the connection has its time."""
        seconds = self._request_seconds + answer / self._least_rate
        with self._lock:
            if request in self._connections:
                self._connections[request] = self._connections[request][0], time.monotonic() + seconds

    def service_actions(self) -> None:
        """Called by serve_forever several times a second."""
        now = time.monotonic()
        with self._lock:
            self._end([each for each, (_, deadline) in self._connections.items() if now > deadline])

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        with self._lock:
            self._end(self._connections)

    def _end(self, connections: Iterable[socket.socket]) -> None:
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Does nothing: clients often disconnect."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def handle_one_request(self) -> None:
        self.server.expect(self.connection)
        super().handle_one_request()

    def log_message(self, *_: object) -> None:
        """Does nothing: the terminal belongs to the calling program."""

    def version_string(self) -> str:
        return "skep"

    def do_GET(self) -> None:
        try:
            file = _open_file(self.server.place, self.path)
        except OSError:
            self._send_head(HTTPStatus.NOT_FOUND, 0)
            return
        with file:
            self._send_file(file, os.fstat(file.fileno()).st_size)

    do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

    def _send_file(self, file: BinaryIO, size: int) -> None:
        wanted = _parse_range(self.headers.get("Range"), size)
        if wanted is None:
            self._send_head(HTTPStatus.OK, size)
            wanted = range(size)
        elif not wanted:
            self._send_head(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, 0, f"bytes */{size}")
        else:
            said = f"bytes {wanted.start}-{wanted.stop - 1}/{size}"
            self._send_head(HTTPStatus.PARTIAL_CONTENT, len(wanted), said)
        if self.command == "GET":
            self._send_body(file, wanted)

    def _send_head(self, status: HTTPStatus, length: int, content_range: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Accept-Ranges", "bytes")
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()

    def _send_body(self, file: BinaryIO, wanted: range) -> None:
        file.seek(wanted.start)
        self.server.expect(self.connection, len(wanted))
        left = len(wanted)
        while left and (chunk := file.read(min(left, _CHUNK))):
            self.wfile.write(chunk)
            left -= len(chunk)


def _open_file(place: Place, target: str) -> BinaryIO:
    """The regular file of this name in `place`. Raises OSError for anything else."""
    name = target.partition("?")[0].removeprefix("/")
    if not _NAME.fullmatch(name):
        raise FileNotFoundError(target)
    path = place / name if isinstance(place, Path) else place.get(name)
    if path is None:
        raise FileNotFoundError(target)
    # O_NONBLOCK: opening a named pipe would block before its type is checked
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(target)
    return os.fdopen(descriptor, "rb")


def _parse_range(header: str | None, size: int) -> range | None:
    """The requested bytes; None for the whole file, empty if the range is outside of the file."""
    match = _RANGE.fullmatch(header or "")
    if not match or not (match[1] or match[2]):
        return None
    if not match[1]:
        return range(max(0, size - int(match[2])), size)
    first = int(match[1])
    last = int(match[2]) if match[2] else size - 1
    if match[2] and last < first:
        return None
    return range(first, min(last + 1, size))
