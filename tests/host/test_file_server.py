import http.client
import os
import socket
import threading
import time
from contextlib import ExitStack, closing, suppress

import pytest

from downloads import wait_for
from english import raises
from skep.core.errors import BadInput
from skep.host.server.file_server import MOST_OF_ONE, serving

BODY = bytes(range(256)) * 2000
HASHED = "a" * 64 + ".safetensors"


@pytest.fixture
def folder(tmp_path):
    served = tmp_path / "served"
    served.mkdir()
    (served / HASHED).write_bytes(BODY)
    (served / "index.json").write_bytes(b"{}")
    (served / "empty").write_bytes(b"")
    (served / ".hidden").write_text("secret")
    (served / "below").mkdir()
    (served / "below" / "file").write_text("secret")
    (tmp_path / "outside").write_text("secret")
    (served / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(served / "pipe")
    return served


@pytest.fixture
def server(folder):
    with serving(folder) as address:
        yield address


def ask(server, path, method="GET", **headers):
    with closing(http.client.HTTPConnection(server.removeprefix("http://"), timeout=10)) as connection:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response, response.read()


def test_a_file_is_served_whole(server):
    response, body = ask(server, f"/{HASHED}")
    assert (response.status, body) == (200, BODY)
    assert response.headers["Content-Length"] == str(len(BODY))
    assert response.headers["Accept-Ranges"] == "bytes"
    assert ask(server, "/index.json?x=1")[1] == b"{}"
    assert ask(server, "/empty")[1] == b""


def test_head_sends_the_length_and_no_body(server):
    with socket.create_connection(("127.0.0.1", int(server.rpartition(":")[2])), timeout=10) as plain:
        plain.sendall(f"HEAD /{HASHED} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while chunk := plain.recv(4096):
            answer += chunk
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"Content-Length: %d\r\n" % len(BODY) in answer
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("bytes=1000-", BODY[1000:]),
        ("bytes=0-0", BODY[:1]),
        ("bytes=10-19", BODY[10:20]),
        ("bytes=511999-600000", BODY[-1:]),
        ("bytes=-5", BODY[-5:]),
        ("bytes=-999999", BODY),
    ],
)
def test_a_range_is_obeyed(server, asked, sent):
    response, body = ask(server, f"/{HASHED}", Range=asked)
    assert (response.status, body) == (206, sent)
    start = BODY.rindex(sent) if len(sent) < 10 and asked != "bytes=0-0" else int(asked[6:].split("-")[0] or 0)
    assert response.headers["Content-Range"] == f"bytes {start}-{start + len(sent) - 1}/{len(BODY)}"


@pytest.mark.parametrize("asked", ["bytes=512000-", "bytes=9999999-", "bytes=-0"])
def test_a_range_beyond_the_end_is_416(server, asked):
    response, body = ask(server, f"/{HASHED}", Range=asked)
    assert (response.status, body) == (416, b"")
    assert response.headers["Content-Range"] == f"bytes */{len(BODY)}"


@pytest.mark.parametrize(
    "asked", ["bytes=5-1", "bytes=-", "bytes=1-2,4-5", "lines=1-2", "bytes=x-", "bytes=" + "9" * 50 + "-"]
)
def test_a_range_that_makes_no_sense_is_ignored(server, asked):
    response, body = ask(server, f"/{HASHED}", Range=asked)
    assert (response.status, body) == (200, BODY)


@pytest.mark.way_in
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/.",
        "/..",
        "/../outside",
        "/%2e%2e/outside",
        "/..%2foutside",
        "/%2e%2e%2foutside",
        "/..\\outside",
        "//etc/passwd",
        "/below",
        "/below/file",
        "/below/",
        "/.hidden",
        "/link",
        "/pipe",
        "/./index.json",
        "/nothing",
        "/index.json%00",
        "/etc/passwd",
        "http://elsewhere/index.json",
        "/" + "n" * 300,
    ],
)
def test_nothing_but_the_files_of_the_folder_is_served(server, path):
    response, body = ask(server, path)
    assert response.status == 404
    assert b"secret" not in body


def test_other_methods_are_refused(server):
    assert ask(server, "/index.json", "DELETE")[0].status == 501
    assert ask(server, "/index.json", "POST")[0].status == 501


def test_it_listens_on_loopback_only_and_stays_quiet(server, capfd):
    assert server.startswith("http://127.0.0.1:")
    ask(server, "/index.json")
    ask(server, "/nothing")
    with socket.create_connection(("127.0.0.1", int(server.rpartition(":")[2]))) as rude:
        rude.sendall(b"nonsense\r\n\r\n")
        rude.recv(1000)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("sent", [b"", b"GET /index.json HTTP/1.1\r\nHost: ", b"GET /empty HTTP/1.1\r\n\r\n"])
def test_a_request_that_is_never_complete_ends_after_its_time_however_slowly_it_comes(folder, sent):
    with serving(folder, request_seconds=1.0) as server, connected(server) as slow:
        slow.sendall(sent)
        begun = time.monotonic()
        with suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() - begun < 20:
                slow.sendall(b"x")
                slow.settimeout(0.2)
                with suppress(TimeoutError):
                    if not slow.recv(65536):
                        break
        assert time.monotonic() - begun < 10


def test_an_answer_that_is_not_taken_ends_after_its_time(folder):
    (folder / "large").write_bytes(bytes(30_000_000))  # more than a connection holds
    with serving(folder, request_seconds=1.0, least_rate=3e7) as server:
        before = set(threading.enumerate())  # each connection has a thread
        with connected(server) as slow:
            slow.sendall(b"GET /large HTTP/1.1\r\n\r\n")
            wait_for(lambda: not set(threading.enumerate()) <= before)
            wait_for(lambda: set(threading.enumerate()) <= before)


def test_one_address_has_a_part_of_the_connections_and_gets_more_when_some_end(server):
    with ExitStack() as held:
        many = [held.enter_context(connected(server)) for _ in range(MOST_OF_ONE)]
        for each in many:
            each.sendall(b"GET /index.json HTTP/1.1\r\n\r\n")
            assert each.recv(10).startswith(b"HTTP/1.1 2")
        with connected(server) as refused:
            assert refused.recv(10) == b""
        many[0].close()
        wait_for(lambda: is_served(server))


def is_served(server):
    try:
        return ask(server, "/index.json")[0].status == 200
    except (OSError, http.client.HTTPException):
        return False


def connected(server):
    return socket.create_connection(("127.0.0.1", int(server.rpartition(":")[2])), timeout=20)


def open_and_close(folder, port):
    with serving(folder, port):
        pass


def test_a_port_in_use_is_named(server, folder):
    port = int(server.rpartition(":")[2])
    with raises(BadInput, match=f"Port {port} is in use"):
        open_and_close(folder, port)


def test_a_number_that_is_no_port_is_refused(folder):
    with raises(BadInput, match="99999 is not a port"):
        open_and_close(folder, 99999)


def test_the_same_port_can_be_used_again_at_once(folder):
    with serving(folder) as first:
        ask(first, "/index.json")
    with serving(folder, int(first.rpartition(":")[2])) as second:
        assert ask(second, "/index.json")[0].status == 200


def test_closing_ends_open_connections_and_leaves_no_thread(folder):
    before = set(threading.enumerate())
    with serving(folder) as server:
        connection = http.client.HTTPConnection(server.removeprefix("http://"), timeout=10)
        connection.request("GET", "/index.json")
        connection.getresponse().read()
    with closing(connection):
        for thread in set(threading.enumerate()) - before:
            thread.join(5)
        assert set(threading.enumerate()) <= before
        assert connection.sock.recv(1) == b""
