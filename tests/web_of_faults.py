"""A web server on loopback with scripted faults, for tests of downloads."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable
from typing import Self


class Handler(http.server.BaseHTTPRequestHandler):
    server: FaultyServer
    timeout = 20

    def do_GET(self) -> None:
        name = self.path.removeprefix("/")
        with self.server.lock:
            self.server.asked.append((name, self.headers.get("Range")))
            self.server.headers_seen.append(dict(self.headers))
            script = self.server.scripts.get(name, [])
            act = script.pop(0) if len(script) > 1 else script[0] if script else missing
        act(self)

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass

    def head(self, status: int, **headers: object) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()


Act = Callable[[Handler], None]


class FaultyServer(http.server.ThreadingHTTPServer):
    """`scripts` has for each name the action at the first, second … request; the last one is repeated."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.scripts: dict[str, list[Act]] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.headers_seen: list[dict[str, str]] = []
        self.lock = threading.Lock()
        self.released = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


def missing(handler: Handler) -> None:
    handler.head(404, Content_Length=0)


def status(code: int, **headers: object) -> Act:
    return lambda handler: handler.head(code, **({"Content_Length": 0} | headers))


def whole(body: bytes) -> Act:
    """Ignores Range, as some servers do."""

    def act(handler: Handler) -> None:
        handler.head(200, Content_Length=len(body))
        handler.wfile.write(body)

    return act


def ranged(body: bytes, send_at_most: int | None = None) -> Act:
    """Supports Range; closes the connection after `send_at_most` bytes."""

    def act(handler: Handler) -> None:
        asked = handler.headers.get("Range")
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        part = body[start:]
        if asked and not part:
            handler.head(416, Content_Range=f"bytes */{len(body)}", Content_Length=0)
            return
        extra = {"Content_Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if asked else {}
        handler.head(206 if asked else 200, Content_Length=len(part), **extra)
        handler.wfile.write(part[:send_at_most])

    return act


def trickle(body: bytes, pieces: int, seconds: float) -> Act:
    """Sends the body in pieces, with a pause after each."""

    def act(handler: Handler) -> None:
        handler.head(200, Content_Length=len(body))
        step = -(-len(body) // pieces)
        for start in range(0, len(body), step):
            handler.wfile.write(body[start : start + step])
            if handler.server.released.wait(seconds):
                return

    return act


def endless(handler: Handler) -> None:
    """Sends a body without a length and without an end."""
    handler.head(200)
    while not handler.server.released.is_set():
        handler.wfile.write(bytes(64 * 1024))


def silent(handler: Handler) -> None:
    """Accepts the request and never answers."""
    handler.server.released.wait(20)


def half_then_silent(body: bytes) -> Act:
    def act(handler: Handler) -> None:
        handler.head(200, Content_Length=len(body))
        handler.wfile.write(body[: len(body) // 2])
        handler.server.released.wait(20)

    return act
