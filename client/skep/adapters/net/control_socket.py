"""The control socket, by which a terminal sends requests to the running skep: one JSON object each way.

A file in the home names the local socket.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge, wait
from multiprocessing.context import AuthenticationError
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from skep.adapters.storage.files import atomic_write, os_errors
from skep.adapters.storage.paths import make_run_folder
from skep.core.errors import BadInput, NotRunning, SkepError
from skep.core.text import Text, as_data

LONGEST_PATH: Final = 103
"""Bytes in a unix socket's path, on macOS, which permits the least."""

BACKLOG: Final = 128
"""Clients that may wait to be accepted; one more is turned away at once."""


class ControlFile(msgspec.Struct, frozen=True):
    """What the control file says. `key` is secret."""

    socket_file: str = msgspec.field(name="socket")
    key: bytes
    pid: int = msgspec.field(default_factory=os.getpid)

    def write(self, control_file: Path) -> None:
        """For this user only. Raises OSError."""
        atomic_write(control_file, msgspec.json.encode(self), mode=0o600)

    @classmethod
    def read(cls, control_file: Path) -> ControlFile:
        """Raises OSError; a damaged file counts as missing."""
        try:
            return msgspec.json.decode(control_file.read_bytes(), type=cls)
        except (ValueError, RecursionError):
            raise FileNotFoundError(f"{control_file} is damaged") from None


def _listen(listening: socket.socket, socket_file: Path) -> None:
    """Listen at a path for this user only, and never block. Raises OSError."""
    if len(os.fsencode(socket_file)) > LONGEST_PATH:
        raise OSError(f"the path {socket_file} is too long for a socket")
    listening.bind(str(socket_file))
    socket_file.chmod(0o600)
    listening.listen(BACKLOG)
    # a client may disconnect between select and accept; then accept would block until the next one
    listening.setblocking(False)


_CREDENTIALS: Final = struct.Struct("iII")
"""The process, user and group of a peer, by unix(7)."""


def is_ours(client: socket.socket) -> bool:
    """Whether the program at the other end is this user's, or root's; where the system does not say it, the key decides."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    raw = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(raw)
    return user in {os.geteuid(), 0}


def remove_stale(control_file: Path) -> None:
    """Remove the leftovers of a killed holder of this home: the file, and the socket with its folder."""
    with contextlib.suppress(OSError):
        socket_file = Path(ControlFile.read(control_file).socket_file)
        if socket_file.is_socket():
            remove_socket(socket_file)
        control_file.unlink()


def remove(control_file: Path, socket_file: Path) -> None:
    """Remove our own; a control file that names another socket is a successor's and stays."""
    with contextlib.suppress(OSError):
        if ControlFile.read(control_file).socket_file == str(socket_file):
            control_file.unlink()
    remove_socket(socket_file)


def remove_socket(socket_file: Path) -> None:
    with contextlib.suppress(OSError):
        socket_file.unlink(missing_ok=True)
        socket_file.parent.rmdir()  # only when nothing else is in it


Handler = Callable[[dict[str, Any]], dict[str, Any]]
"""Answers a request; called in a thread of the client's own. A SkepError becomes the answer `problem_answer`."""

REQUEST_LIMIT: Final = 64 * 1024
ANSWER_LIMIT: Final = 16 * 1024 * 1024
"""Bytes. An answer may carry the history of a project."""
CLIENTS: Final = 16
"""Served at a time; more wait to be accepted."""
PATIENCE: Final = 5.0
"""Seconds a client may take to send its request, and again to take the answer."""

log = logging.getLogger(__name__)

_FOREIGN: Final = (AuthenticationError, AssertionError, EOFError, OSError, ValueError)
"""Errors of a connection: invalid data, a wrong key, a timeout or a disconnected client."""


class ControlServer:
    """Listens from `start` to `close`; also a context manager."""

    def __init__(
        self,
        control_file: Path,
        handler: Handler,
        *,
        make_run_folder: Callable[[], Path] = make_run_folder,
        patience: float = PATIENCE,
    ) -> None:
        """`patience` in seconds is how long a client may take, for each direction."""
        self._control_file, self._handler, self._patience = control_file, handler, patience
        self._make_run_folder = make_run_folder
        self._thread: threading.Thread | None = None
        self._free_places = threading.Semaphore(CLIENTS)
        self._clients: set[socket.socket] = set()
        self._closing = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Begin to listen, and say where in the control file; what a killed predecessor left there is removed.

        Call it only while holding the home's lock. Raises StorageError.
        """
        remove_stale(self._control_file)
        key = secrets.token_bytes(32)
        with contextlib.ExitStack() as opened:
            with os_errors(
                Text("control_socket.other_terminals_cannot_let", control_file=str(self._control_file)),
                Text("control_socket.free_some_space_disk_make"),
            ):
                self._open(opened, self._make_run_folder() / "control", key)
            self._opened = opened.pop_all()
        self._thread = threading.Thread(target=self._accept, args=(key,), name="control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening, end the connections and remove the files; a handler at work is not waited for."""
        if self._thread is None or self._closing.is_set():
            return
        self._closing.set()
        self._wake.close()
        self._free_places.release()
        self._thread.join()
        for client in tuple(self._clients):
            _hang_up(client)
        self._opened.close()

    def _open(self, opened: contextlib.ExitStack, socket_file: Path, key: bytes) -> None:
        opened.callback(remove, self._control_file, socket_file)
        self._listening = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        _listen(self._listening, socket_file)
        self._wake, self._woken = map(opened.enter_context, socket.socketpair())
        ControlFile(str(socket_file), key).write(self._control_file)

    def _accept(self, key: bytes) -> None:
        while True:
            self._free_places.acquire()
            wait([self._listening, self._woken])
            if self._closing.is_set():
                return
            try:
                client, _ = self._listening.accept()
            except OSError:
                self._free_places.release()  # the client has disconnected already
                self._closing.wait(0.1)  # or we are out of file descriptors, and trying at once would only spin
                continue
            self._clients.add(client)
            threading.Thread(target=self._serve, args=(client, key), name="control-client", daemon=True).start()

    def _serve(self, client: socket.socket, key: bytes) -> None:
        try:
            with client, Connection(os.dup(client.fileno())) as connection:
                if is_ours(client):
                    self._converse(client, connection, key)
                else:
                    log.warning("a program of another user connected to the control socket and was refused")
        except _FOREIGN as error:
            log.info("a control client did not keep to the rules: %s", type(error).__name__)
        finally:
            self._clients.discard(client)
            self._free_places.release()

    def _converse(self, client: socket.socket, connection: Connection, key: bytes) -> None:
        with _deadline(client, self._patience):
            deliver_challenge(connection, key)
            answer_challenge(connection, key)
            raw = connection.recv_bytes(REQUEST_LIMIT)
        answer = self._answer(raw)
        with _deadline(client, self._patience):
            connection.send_bytes(answer)

    def _answer(self, raw: bytes) -> bytes:
        try:
            return _encode(self._handler(_decode(raw)), ANSWER_LIMIT)
        except SkepError as error:
            return _encode(problem_answer(error), ANSWER_LIMIT)
        except Exception:
            log.exception("a control request failed")
            return _encode(problem_answer(_OUR_OWN), ANSWER_LIMIT)


_OUR_OWN: Final = SkepError(Text("control_socket.running_skep_could_not_answer"), Text("control_socket.details_log"))


def problem_answer(error: SkepError) -> dict[str, Any]:
    """The answer to a refused request, in the form that `core.session.control.result` reads."""
    return {"ok": False, "exit_code": error.exit_code, "title": as_data(error.title), "hint": as_data(error.hint)}


def ask(control_file: Path, request: dict[str, Any], timeout: float = PATIENCE) -> dict[str, Any]:
    """The running skep's answer to `request`, within `timeout` seconds for the whole exchange.

    Raises NotRunning when none listens or it does not answer, BadInput when the request is too large.
    """
    named = _read_control_file(control_file)
    raw = _encode(request, REQUEST_LIMIT)
    try:
        with _connected(named.socket_file) as client, _deadline(client, timeout) as late:
            try:
                return _decode(_exchange(client, named.key, raw))
            except (*_FOREIGN, BadInput):
                raise _no_answer(control_file, timeout if late.is_set() else None) from None
    except (FileNotFoundError, ConnectionRefusedError):
        raise _not_running(control_file) from None
    except OSError:
        raise _no_answer(control_file, None) from None


def _exchange(client: socket.socket, key: bytes, raw: bytes) -> bytes:
    with Connection(os.dup(client.fileno())) as connection:
        answer_challenge(connection, key)
        deliver_challenge(connection, key)
        connection.send_bytes(raw)
        return connection.recv_bytes(ANSWER_LIMIT)


def _not_running(control_file: Path) -> NotRunning:
    return NotRunning(
        Text("control_socket.no_skep_running", parent=str(control_file.parent)),
        Text("control_socket.start_one_skep_join"),
    )


def _no_answer(control_file: Path, timeout: float | None) -> NotRunning:
    parent = str(control_file.parent)
    return NotRunning(
        Text("control_socket.skep_running_did_not_answer", parent=parent)
        if timeout is None
        else Text("control_socket.no_answer_within", parent=parent, timeout=timeout),
        Text("control_socket.try_again_if_stays_silent"),
    )


def _read_control_file(control_file: Path) -> ControlFile:
    with os_errors(
        Text("control_socket.cannot_read", control_file=str(control_file)),
        Text("control_socket.make_file_readable_remove"),
        NotRunning,
    ):
        try:
            return ControlFile.read(control_file)
        except FileNotFoundError:
            raise _not_running(control_file) from None


@contextlib.contextmanager
def _connected(socket_file: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.setblocking(False)  # a full queue is an error then, not a wait without end
        client.connect(socket_file)
        client.setblocking(True)
        yield client


@contextlib.contextmanager
def _deadline(client: socket.socket, seconds: float) -> Iterator[threading.Event]:
    """Hangs up after `seconds`, which wakes whoever is reading or writing; the event says that it happened."""
    late = threading.Event()

    def hang_up() -> None:
        late.set()
        _hang_up(client)

    timer = threading.Timer(seconds, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def _hang_up(client: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it may be closed already
        client.shutdown(socket.SHUT_RDWR)


def _encode(body: dict[str, Any], limit: int) -> bytes:
    raw = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    if len(raw) > limit:
        raise BadInput(Text("control_socket.what_sent_other_skep_over", limit=limit // 1024))
    return raw


def _decode(raw: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (ValueError, RecursionError):
        raise BadInput(
            Text("control_socket.request_not_json_object"), Text("control.both_may_different_versions")
        ) from None
