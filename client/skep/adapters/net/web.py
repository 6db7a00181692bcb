"""GET requests over https with skep's rules for addresses, timeouts, retries and cancellation.

Plain http is allowed for loopback only. `Reach.GLOBAL` allows no address that is not on the internet, in redirects too.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from typing import Final, TypeVar
from urllib.parse import urljoin, urlsplit

import requests
import requests.auth
import urllib3.exceptions
from urllib3.util import Retry

from skep.adapters.net.connections import INTERNET, OWN_NETWORK, TELL_PUBLISHER, Adapter, Network
from skep.core.errors import DataError
from skep.core.project.addresses import Reach, is_loopback, may_be_global
from skep.core.text import NOTHING, Text, sentences
from skep.core.traffic import due

_CHUNK: Final = 64 * 1024
_REDIRECTS: Final = 5
_REDIRECT_STATUS: Final = (301, 302, 303, 307, 308)
_PASSING_STATUS: Final = (408, 425, 429, *range(500, 600))
_ADDRESS: Final = re.compile(r"[!-~]+")
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")
_HOST_SHOWN: Final = 60

Result = TypeVar("Result")


class TryAgain(DataError):
    """A failure that may be temporary."""


class ServerTimeout(TryAgain):
    """The server does not begin to answer. Not retried immediately, because the wait was long already."""


class RangeRefused(TryAgain):
    """The server cannot continue at the requested byte."""


class NotThere(DataError):
    """The server answers, but not with what was asked for. `status` is HTTP's."""

    def __init__(self, title: Text, hint: Text = NOTHING, status: int = 0) -> None:
        super().__init__(title, hint)
        self.status = status


class Stopped(Exception):
    """Downloads were stopped by skep, so there is nothing to report to the user."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server, in seconds, and how often to try again.

    `read_seconds` is the longest silence; over the same time at least `bytes_per_second` must come on average. A person
    waits for the first shard, which is asked for twice: a dead server should be reported within half a minute.
    """

    connect_seconds: float = 10.0
    read_seconds: float = 10.0
    bytes_per_second: int = 1024
    retry: Retry = Retry(3, backoff_factor=1)  # noqa: RUF009 - a Retry never changes


class Stop:
    """Ends waits and open answers of all downloads immediately, from any thread."""

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


class Throttle:
    """Keeps all downloads that share it below `rate()` bytes per second; 0 for no limit."""

    def __init__(self, rate: Callable[[], float] = lambda: 0.0) -> None:
        self._rate = rate
        self._free_at = 0.0
        self._lock = threading.Lock()

    def pause(self, size: int) -> float:
        """Seconds to wait after `size` bytes."""
        rate, now = self._rate(), time.monotonic()
        if not rate:
            return 0.0
        with self._lock:
            self._free_at = due(self._free_at, now, size, rate)
            return max(0.0, self._free_at - now)


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
    _throttle: Throttle

    @property
    def date(self) -> float | None:
        """The server's clock when it answered, wall clock seconds in whole seconds; None if it did not say."""
        try:
            return parsedate_to_datetime(self._response.headers.get("Date", "")).timestamp()
        except ValueError:
            return None

    def chunks(self) -> Iterator[bytes]:
        """The body as it arrives. Raises TryAgain if it breaks off or is too slow, Stopped."""
        window_start, came = time.monotonic(), 0
        while chunk := self._read():
            self._stop.wait(self._throttle.pause(len(chunk)))
            yield chunk
            came += len(chunk)
            elapsed = time.monotonic() - window_start
            if elapsed >= self._patience.read_seconds:
                if came < elapsed * self._patience.bytes_per_second:
                    raise TryAgain(Text("web.data_server_sends_too_slowly", host=self.host), _LATER)
                window_start, came = time.monotonic(), 0

    def _read(self) -> bytes:
        self._stop.check()
        try:
            # read1 hands over what is there, so that a trickle is seen and a stop acts at once
            chunk: bytes = self._response.raw.read1(_CHUNK, decode_content=False)
        except (urllib3.exceptions.HTTPError, OSError, ValueError):
            self._stop.check()
            raise TryAgain(Text("web.connection_data_server_broke_off", host=self.host), _LATER) from None
        self._stop.check()
        return chunk


_LATER: Final = Text("web.tried_again_later_what_was")


class Web:
    """Downloads for one owner, all ended by the same `stop`, from addresses within `reach`.

    `proxy` is asked before each request: the address of the proxy that the person named, or "" for the environment's.
    """

    def __init__(
        self,
        patience: Patience,
        stop: Stop,
        reach: Reach,
        proxy: Callable[[], str] = lambda: "",
        network: Network = INTERNET,
        *,
        throttle: Throttle | None = None,
    ) -> None:
        self._patience, self._stop, self._reach = patience, stop, reach
        self._proxy, self._network = proxy, network
        self._throttle = throttle or Throttle()

    def persist(self, attempt: Callable[[], Result]) -> Result:
        """The result of `attempt`, repeated as our patience says while it raises TryAgain, but for ServerTimeout."""
        # urllib3 cannot do it by itself: a download is more than one request, and its waits end when we are stopped
        retry = self._patience.retry
        while True:
            try:
                return attempt()
            except TryAgain as error:
                if isinstance(error, ServerTimeout) or not retry.total:
                    raise
                retry = retry.increment(error=error)
            self._stop.wait(retry.get_backoff_time())

    @contextlib.contextmanager
    def get(self, address: str, what: Text, first_byte: int = 0) -> Iterator[Answer]:
        """The answer to one GET; `what` names the wanted thing in sentences. Raises DataError, TryAgain, Stopped."""
        check_address(address, self._reach)
        with requests.Session() as session:
            adapter = Adapter(self._reach, self._network)
            session.mount("https://", adapter)
            session.mount("http://", adapter)
            session.auth = _NoCredentials()
            session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
            # a proxy is used, but never for this computer itself
            session.trust_env = not _is_loopback(address)
            session.headers["Accept-Encoding"] = "identity"
            if first_byte:
                session.headers["Range"] = f"bytes={first_byte}-"
            with self._follow(session, address, what) as response, self._stop.watching(response):
                start = _first_byte(response, what, first_byte)
                length = response.raw.length_remaining
                yield Answer(_host(address), start, length, response, self._patience, self._stop, self._throttle)

    def read(self, address: str, what: Text, limit: int) -> bytes:
        """The body of one GET, of which no more than `limit` + 1 bytes are taken. Raises as `get` does."""
        raw = bytearray()
        with self.get(address, what) as answer:
            for chunk in answer.chunks():
                raw += chunk
                if len(raw) > limit:
                    break
        return bytes(raw[: limit + 1])

    def _follow(self, session: requests.Session, address: str, what: Text) -> requests.Response:
        for _ in range(_REDIRECTS + 1):
            self._stop.check()
            response = self._ask(session, address)
            if response.status_code not in _REDIRECT_STATUS:
                return response
            response.close()
            target = urljoin(address, response.headers.get("Location", ""))
            self._check_redirect(address, target)
            address = target
        raise DataError(Text("web.data_server_redirects_too_often", host=_host(address), what=what), TELL_PUBLISHER)

    def _check_redirect(self, address: str, target: str) -> None:
        check_address(target, self._reach)
        if urlsplit(target).scheme == "http" and not _is_loopback(address):
            raise DataError(Text("web.data_server_redirects_address_computer", host=_host(address)), TELL_PUBLISHER)

    def _ask(self, session: requests.Session, address: str) -> requests.Response:
        host = _host(address)
        patience = (self._patience.connect_seconds, self._patience.read_seconds)
        proxy = "" if _is_loopback(address) else self._proxy()
        # given with the request: the environment's would win over the session's
        through = {"http": proxy, "https": proxy} if proxy else None
        try:
            return session.get(address, stream=True, allow_redirects=False, timeout=patience, proxies=through)
        except requests.exceptions.ProxyError:
            raise TryAgain(Text("web.proxy_does_not_reach_data", host=host), _proxy_hint(proxy)) from None
        except requests.exceptions.SSLError:
            raise DataError(
                Text("web.data_server_could_not_prove", host=host),
                Text("web.check_computer_clock_network_hotel"),
            ) from None
        except requests.exceptions.Timeout:
            raise ServerTimeout(Text("web.data_server_does_not_answer", host=host), _CONNECTION) from None
        except requests.exceptions.ConnectionError:
            raise TryAgain(Text("web.data_server_cannot_reached", host=host), _CONNECTION) from None
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, ValueError):
            # a ValueError comes from requests, which parses a redirect's address although it does not follow it
            raise DataError(Text("web.data_server_cannot_asked", host=host), TELL_PUBLISHER) from None


def _proxy_hint(proxy: str) -> Text:
    if not proxy:
        return Text("web.check_proxy_system_environment")
    return Text("web.check_setting_names", setting="network.proxy", host=_host(proxy))


_CONNECTION: Final = Text("web.check_internet_connection_if_works")


def check_address(address: str, reach: Reach) -> None:
    """Raises DataError unless this is an https address within `reach`, or http on this computer's loopback."""
    # a backslash or an @ is read differently by different libraries, which could hide the real host
    plain = _ADDRESS.fullmatch(address) and "\\" not in address and "@" not in address
    if not plain or not _host(address):
        raise DataError(Text("web.data_address_project_not_web"), TELL_PUBLISHER)
    scheme = urlsplit(address).scheme
    if scheme != "https" and not (scheme == "http" and _is_loopback(address)):
        raise DataError(
            Text("web.data_server_not_asked_since", host=_host(address)),
            sentences(Text("web.plain_http_used_computer_itself"), TELL_PUBLISHER),
        )
    if reach is Reach.GLOBAL and not may_be_global(_split(address)[0]):
        raise DataError(Text("web.data_server_not_internet", host=_host(address)), OWN_NETWORK)


def _is_loopback(address: str) -> bool:
    return is_loopback(_split(address)[0])


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


def _first_byte(response: requests.Response, what: Text, asked: int) -> int:
    """The number of the first byte in this answer. Raises DataError or TryAgain for an answer that is none."""
    status, host = response.status_code, _host(response.url)
    if status == HTTPStatus.OK:
        return 0
    if status == HTTPStatus.PARTIAL_CONTENT and asked:
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if match and int(match[1]) == asked:
            return asked
        raise RangeRefused(Text("web.data_server_answers_another_part", host=host, what=what), TELL_PUBLISHER)
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and asked:
        raise RangeRefused(Text("web.data_server_cannot_go", host=host, what=what), _LATER)
    if status in _PASSING_STATUS:
        raise TryAgain(Text("web.data_server_has_problem_own", host=host, status=status), Text("web.try_again_later"))
    raise NotThere(Text("web.data_server_does_not_have", host=host, what=what, status=status), TELL_PUBLISHER, status)
