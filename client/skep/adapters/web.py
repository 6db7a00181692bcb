"""GET over https under our rules: who may be asked, how long we wait, when to try again, and how to stop at once.

Plain http is for this computer's own loopback only. It must not write files or know what is downloaded.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import urljoin, urlsplit

import skep.adapters.light_requests  # noqa: F401 - before requests itself

# isort: split
import requests
import requests.auth
import urllib3.exceptions

from skep.core.errors import DataError

_CHUNK: Final = 64 * 1024
_REDIRECTS: Final = 5
_REDIRECT_STATUS: Final = (301, 302, 303, 307, 308)
_PASSING_STATUS: Final = (408, 425, 429)
_SERVER_FAULT: Final = 500
_OK: Final = 200
_PARTIAL: Final = 206
_BAD_RANGE: Final = 416
_ADDRESS: Final = re.compile(r"[!-~]+")
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")
_HOST_SHOWN: Final = 60

Result = TypeVar("Result")


class TryAgain(DataError):
    """A failure that may pass."""


class Silent(TryAgain):
    """The server does not begin to answer. That was waited for already, so it is not asked again in the same breath."""


class RangeRefused(TryAgain):
    """The server cannot go on at the byte we asked for."""


class NotThere(DataError):
    """The server answers, but not with what was asked for. `status` is HTTP's."""

    def __init__(self, title: str, hint: str = "", status: int = 0) -> None:
        super().__init__(title, hint)
        self.status = status


class Stopped(Exception):
    """Downloads were stopped from our side; nobody needs words."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server, in seconds, and how often to try.

    `read_seconds` is the longest silence; over the same time at least `bytes_per_second` must come on average. A person
    waits for the first shard, and whoever asks for one asks twice: a dead server should be said within half a minute.
    """

    connect_seconds: float = 10.0
    read_seconds: float = 10.0
    bytes_per_second: int = 1024
    attempts: int = 4
    first_wait_seconds: float = 1.0


class Stop:
    """Ends waits and open answers of all downloads at once, from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._open: set[requests.Response] = set()

    def set(self) -> None:
        self._event.set()
        with self._lock:
            for response in self._open:
                # an answer that has just ended cannot be shut down, and need not
                with contextlib.suppress(OSError, RuntimeError, ValueError):
                    response.raw.shutdown()

    def check(self) -> None:
        """Raises Stopped."""
        if self._event.is_set():
            raise Stopped

    def wait(self, seconds: float) -> None:
        """Raises Stopped as soon as it is set."""
        self._event.wait(seconds)
        self.check()

    @contextlib.contextmanager
    def watching(self, response: requests.Response) -> Iterator[None]:
        with self._lock:
            self._open.add(response)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._open.discard(response)


class _NoCredentials(requests.auth.AuthBase):
    """Keeps requests from sending what ~/.netrc holds to a project's server."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


@dataclass(frozen=True)
class Answer:
    """A body that is arriving: its first byte is number `start` of the whole; `length` is what is to come, if said."""

    host: str
    start: int
    length: int | None
    _response: requests.Response
    _patience: Patience
    _stop: Stop

    def chunks(self) -> Iterator[bytes]:
        """The body as it arrives. Raises TryAgain when it breaks off or only trickles, Stopped."""
        window_start, came = time.monotonic(), 0
        while chunk := self._read():
            yield chunk
            came += len(chunk)
            elapsed = time.monotonic() - window_start
            if elapsed >= self._patience.read_seconds:
                if came < elapsed * self._patience.bytes_per_second:
                    raise TryAgain(f"The data server {self.host} sends too slowly.", _LATER)
                window_start, came = time.monotonic(), 0

    def _read(self) -> bytes:
        self._stop.check()
        try:
            # read1 hands over what is there, so that a trickle is seen and a stop acts at once
            chunk: bytes = self._response.raw.read1(_CHUNK, decode_content=False)
        except (urllib3.exceptions.HTTPError, OSError, ValueError):
            self._stop.check()
            raise TryAgain(f"The connection to the data server {self.host} broke off.", _LATER) from None
        self._stop.check()
        return chunk


_LATER: Final = "It is tried again later; what was downloaded is kept."


class Web:
    """Downloads for one owner, all ended by the same `stop`.

    `proxy` is asked before each request: the address of the proxy that the person named, or "" for the environment's.
    """

    def __init__(self, patience: Patience, stop: Stop, proxy: Callable[[], str] = lambda: "") -> None:
        self._patience, self._stop, self._proxy = patience, stop, proxy

    def persist(self, attempt: Callable[[], Result]) -> Result:
        """The result of `attempt`, called again with growing waits while it raises TryAgain, but for Silent."""
        wait = self._patience.first_wait_seconds
        for _ in range(self._patience.attempts - 1):
            try:
                return attempt()
            except Silent:
                raise
            except TryAgain:
                self._stop.wait(wait)
                wait *= 2
        return attempt()

    @contextlib.contextmanager
    def get(self, address: str, what: str, first_byte: int = 0) -> Iterator[Answer]:
        """The answer to one GET; `what` names the wanted thing in sentences. Raises DataError, TryAgain, Stopped."""
        check_address(address)
        with requests.Session() as session:
            session.auth = _NoCredentials()
            # a proxy is used, but never for this computer itself
            session.trust_env = not _is_loopback(address)
            session.headers["Accept-Encoding"] = "identity"
            if first_byte:
                session.headers["Range"] = f"bytes={first_byte}-"
            with self._follow(session, address, what) as response, self._stop.watching(response):
                start = _first_byte(response, what, first_byte)
                length = response.raw.length_remaining
                yield Answer(_host(address), start, length, response, self._patience, self._stop)

    def _follow(self, session: requests.Session, address: str, what: str) -> requests.Response:
        for _ in range(_REDIRECTS + 1):
            self._stop.check()
            response = self._ask(session, address)
            if response.status_code not in _REDIRECT_STATUS:
                return response
            response.close()
            target = urljoin(address, response.headers.get("Location", ""))
            _check_redirect(address, target)
            address = target
        raise DataError(f"The data server {_host(address)} redirects too often for {what}.", _PUBLISHER)

    def _ask(self, session: requests.Session, address: str) -> requests.Response:
        host = _host(address)
        patience = (self._patience.connect_seconds, self._patience.read_seconds)
        proxy = "" if _is_loopback(address) else self._proxy()
        # given with the request: the environment's would win over the session's
        through = {"http": proxy, "https": proxy} if proxy else None
        try:
            return session.get(address, stream=True, allow_redirects=False, timeout=patience, proxies=through)
        except requests.exceptions.ProxyError:
            raise TryAgain(f"The proxy does not reach the data server {host}.", _proxy_hint(proxy)) from None
        except requests.exceptions.SSLError:
            raise DataError(
                f"The data server {host} could not prove who it is.",
                "Check this computer's clock and network; a hotel or company network may be in between.",
            ) from None
        except requests.exceptions.Timeout:
            raise Silent(f"The data server {host} does not answer.", _CONNECTION) from None
        except requests.exceptions.ConnectionError:
            raise TryAgain(f"The data server {host} cannot be reached.", _CONNECTION) from None
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, UnicodeError):
            raise DataError(f"The data server {host} cannot be asked.", _PUBLISHER) from None


def _proxy_hint(proxy: str) -> str:
    if not proxy:
        return "Check the proxy in this system's environment."
    return f"Check the setting network.proxy, which names {_host(proxy)}."


_CONNECTION: Final = "Check the internet connection. If it works, the project's server may be down; try again later."
_PUBLISHER: Final = "Tell the project's publisher."


def check_address(address: str) -> None:
    """Raises DataError unless this is an https address, or http on this computer's loopback."""
    # a backslash or an @ is read differently by different libraries, which could hide the real host
    plain = _ADDRESS.fullmatch(address) and "\\" not in address and "@" not in address
    if not plain or not _host(address):
        raise DataError("A data address of this project is not a web address.", _PUBLISHER)
    scheme = urlsplit(address).scheme
    if scheme != "https" and not (scheme == "http" and _is_loopback(address)):
        raise DataError(
            f"The data server {_host(address)} is not asked, since its address is not https.",
            "Plain http is used on this computer itself only. " + _PUBLISHER,
        )


def _check_redirect(address: str, target: str) -> None:
    check_address(target)
    if urlsplit(target).scheme == "http" and not _is_loopback(address):
        raise DataError(
            f"The data server {_host(address)} redirects to an address on this computer, which is refused.", _PUBLISHER
        )


def _is_loopback(address: str) -> bool:
    name = _split(address)[0]
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _host(address: str) -> str:
    """Host and port, fit to stand in a sentence; "" when there is none."""
    name, port = _split(address)
    shown = re.sub(r"[^0-9A-Za-z.:-]", "?", name)[:_HOST_SHOWN]
    return f"{shown}:{port}" if shown and port else shown


def _split(address: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(address)
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return "", None
    return name, port


def _first_byte(response: requests.Response, what: str, asked: int) -> int:
    """The number of the first byte in this answer. Raises DataError or TryAgain for an answer that is none."""
    status, host = response.status_code, _host(response.url)
    if status == _OK:
        return 0
    if status == _PARTIAL and asked:
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if match and int(match[1]) == asked:
            return asked
        raise RangeRefused(f"The data server {host} answers with another part of {what}.", _PUBLISHER)
    if status == _BAD_RANGE and asked:
        raise RangeRefused(f"The data server {host} cannot go on with {what}.", _LATER)
    if status >= _SERVER_FAULT or status in _PASSING_STATUS:
        raise TryAgain(f"The data server {host} has a problem of its own (HTTP {status}).", "Try again later.")
    raise NotThere(f"The data server {host} does not have {what} (HTTP {status}).", _PUBLISHER, status)
