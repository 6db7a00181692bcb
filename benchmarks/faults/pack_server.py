"""A local repository of compute packs on a web server that knows what the client has, and counts what it fetches twice."""

from __future__ import annotations

import contextlib
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from skep.adapters.packs.laying import read_record

PORT = 28917
ADDRESS = f"http://127.0.0.1:{PORT}"
"""The address of updates that the build must have."""
WHEEL = "targets/wheels/"
BYTES_PER_SECOND = 20e6
CHUNK = 64 * 1024


@dataclass
class Asked:
    """A request for a wheel of `size` bytes from byte `start`, and the bytes `sent`.

    When it came, the client had `had` bytes of a partial download, or the whole verified wheel.
    """

    sha256: str
    size: int
    start: int
    had: int
    verified: bool
    sent: int = 0

    @property
    def again(self) -> int:
        """Bytes asked for although they had come."""
        return max(0, (self.size if self.verified else self.had) - self.start)


def on_disk(packs: Path, sha256: str) -> tuple[int, bool]:
    """Bytes of the partial download of a wheel, and whether the wheel is there whole, or laid down."""
    name = f"{sha256}.whl"
    laid = (read_record(folder) for folder in (packs / "laid").glob("*") if not folder.name.startswith(".incoming"))
    whole = (packs / "fetched" / name).exists() or any(record and sha256 in record.wheels for record in laid)
    with contextlib.suppress(OSError):
        return (packs / "fetched" / f"{name}.part").stat().st_size, whole
    return 0, whole


@dataclass
class PackServer:
    """Serves the repository in `folder` at `address`. `packs` is the client's folder of packs, another one in each run."""

    folder: Path
    address: str = ADDRESS
    packs: Path = Path("/nonexistent")
    rate: float = BYTES_PER_SECOND
    asked: list[Asked] = field(default_factory=list)

    def note(self, path: str, size: int, start: int) -> Asked:
        sha256 = path.removeprefix(WHEEL).removesuffix(".whl")
        one = Asked(sha256, size, start, *on_disk(self.packs, sha256))
        if path.startswith(WHEEL):
            self.asked.append(one)
        return one

    def handler(self) -> Callable[..., http.server.BaseHTTPRequestHandler]:
        served = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def do_GET(self) -> None:
                file = (served.folder / self.path.lstrip("/")).resolve()
                if not file.is_relative_to(served.folder.resolve()) or not file.is_file():
                    self.send_error(404)
                    return
                size, asked = file.stat().st_size, self.headers.get("Range")
                start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
                one = served.note(self.path.lstrip("/"), size, start)
                self.send_response(206 if asked else 200)
                self.send_header("Content-Length", str(size - start))
                if asked:
                    self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
                self.end_headers()
                with contextlib.suppress(OSError), file.open("rb") as opened:  # the client may be gone
                    opened.seek(start)
                    while chunk := opened.read(CHUNK):
                        self.wfile.write(chunk)
                        one.sent += len(chunk)
                        time.sleep(len(chunk) / served.rate)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False


@contextlib.contextmanager
def pack_server(folder: Path, port: int = PORT) -> Iterator[PackServer]:
    made = PackServer(folder)
    with _Server(("127.0.0.1", port), made.handler()) as server:
        made.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
