"""A second terminal sends requests to the first over a real socket; invalid or silent clients affect no others."""

import contextlib
import json
import logging
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path

import pytest

from english import in_english, raises
from skep.adapters.net import control_socket
from skep.adapters.net.control_socket import REQUEST_LIMIT, ControlFile, ControlServer, ask
from skep.adapters.storage.paths import make_run_folder
from skep.core.errors import BadInput, NotRunning, SettingsError, StorageError
from skep.core.session import control
from skep.core.session.snapshot import Snapshot
from skep.core.text import as_data, verbatim


@pytest.fixture
def file(home):
    return home.control_file


@pytest.fixture
def serve(file):
    with contextlib.ExitStack() as stack:

        def start(handler=lambda request: {"ok": True, "echo": request}, **options):
            return stack.enter_context(ControlServer(file, handler, **options))

        yield start


@contextlib.contextmanager
def connected(file):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(ControlFile.read(file).socket_file)
        yield client


@contextlib.contextmanager
def admitted(file):
    """A client that is authenticated and may send requests."""
    with connected(file) as client, Connection(os.dup(client.fileno())) as connection:
        answer_challenge(connection, ControlFile.read(file).key)
        deliver_challenge(connection, ControlFile.read(file).key)
        yield connection


def wait_until(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# --- requests and answers


def test_a_request_is_answered(file, serve):
    serve()
    assert ask(file, {"verb": "status", "what": ["ä", None, 1.5]}) == {
        "ok": True,
        "echo": {"verb": "status", "what": ["ä", None, 1.5]},
    }


def test_many_ask_at_once_and_each_gets_its_own_answer(file, serve):
    serve()
    answers = {}

    def client(number):
        answers[number] = ask(file, {"n": number})["echo"]["n"]

    threads = [threading.Thread(target=client, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: number for number in range(50)}


def test_a_long_answer_arrives_whole(file, serve):
    serve(lambda _: {"ok": True, "history": ["x" * 100] * 20_000})
    assert len(ask(file, {})["history"]) == 20_000


def test_a_refusal_comes_as_its_words_and_is_raised_again_from_them(file, serve):
    def refuse(_):
        raise SettingsError(verbatim("This cannot be set."), verbatim("Set another."))

    serve(refuse)
    answer = ask(file, {})
    title, hint = as_data(verbatim("This cannot be set.")), as_data(verbatim("Set another."))
    assert answer == {"ok": False, "exit_code": 2, "title": title, "hint": hint}
    with raises(BadInput, match="This cannot be set"):
        control.result(answer)


def test_it_carries_what_the_engines_side_decides(file, serve):
    serve(lambda request: control.decide(request, Snapshot())[0])
    assert control.snapshot_of(control.result(ask(file, {"verb": "status"}))["status"]).phase == Snapshot().phase
    with raises(BadInput, match="does not know “dance”"):
        control.result(ask(file, {"verb": "dance"}))


@pytest.mark.parametrize("answer", [{"bad": object()}, {"bad": float("nan")}, {"bad": "x" * (17 << 20)}])
def test_an_answer_that_cannot_be_sent_becomes_calm_words(file, serve, answer):
    serve(lambda _: answer)
    assert ask(file, {})["ok"] is False


def test_a_mistake_of_ours_is_logged_and_answered_calmly(file, serve, caplog):
    def fail(_):
        raise KeyError("secret detail")

    serve(fail)
    answer = ask(file, {})
    assert answer["ok"] is False
    assert in_english(answer["title"]) == "The running skep could not answer this request."
    assert "secret" not in json.dumps(answer)
    (entry,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert entry.exc_info[0] is KeyError


def test_a_request_over_the_limit_is_refused_before_it_is_sent(file, serve):
    serve()
    with raises(BadInput, match="larger than 64 KiB"):
        ask(file, {"x": "y" * REQUEST_LIMIT})


# --- authentication


def test_socket_key_and_folder_are_for_this_user_only(file, serve):
    serve()
    place = Path(ControlFile.read(file).socket_file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert len(ControlFile.read(file).key) == 32


def test_every_start_makes_another_key(file):
    keys = set()
    for _ in range(2):
        with ControlServer(file, dict):
            keys.add(ControlFile.read(file).key)
    assert len(keys) == 2


@pytest.mark.way_in
def test_without_the_key_no_request_is_heard(file, serve):
    heard = []
    serve(heard.append)
    door = ControlFile.read(file)
    ControlFile(door.socket_file, b"another key").write(file)
    with raises(NotRunning, match="did not answer"):
        ask(file, {"verb": "leave"})
    assert heard == []
    door.write(file)  # so that the server recognises its file


# --- clients that violate the protocol


def rubbish(client):
    client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)


def huge_frame(client):
    client.sendall(b"\x7f\xff\xff\xff")


def huge_frame_of_64_bits(client):
    client.sendall(b"\xff\xff\xff\xff" + b"\x7f" * 8)


def nothing(client):
    pass


def half_a_frame(client):
    client.sendall(b"\x00\x00\x00\x20abc")


@pytest.mark.way_in
@pytest.mark.parametrize("behave", [rubbish, huge_frame, huge_frame_of_64_bits, nothing, half_a_frame])
def test_strangers_do_not_hurt_others_and_are_hung_up_on(file, serve, behave):
    serve(patience=2.0)
    with connected(file) as client:
        with contextlib.suppress(BrokenPipeError):
            behave(client)
        assert ask(file, {"n": 1})["ok"]
        client.settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            while client.recv(4096):
                pass  # the challenge, then the end of the stream


@pytest.mark.parametrize("raw", [b"", b"\xff\xfe", b"[1]", b'{"a":', b"[" * 60_000, b"null"])
def test_a_request_that_is_no_object_is_answered_with_words(file, serve, raw):
    heard = []
    serve(heard.append)
    with admitted(file) as connection:
        connection.send_bytes(raw)
        answer = json.loads(connection.recv_bytes())
    assert in_english(answer["title"]) == "The request is not a JSON object."
    assert answer["exit_code"] == 2
    assert heard == []


def test_a_pickle_is_never_loaded(file, serve, tmp_path):
    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "exploded",)

    serve()
    with admitted(file) as connection:
        connection.send(Bomb())
        assert json.loads(connection.recv_bytes())["ok"] is False
    assert not (tmp_path / "exploded").exists()


@pytest.mark.way_in
def test_a_request_over_the_limit_is_not_read(file, serve):
    serve()
    with admitted(file) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.send_bytes(b"x" * (REQUEST_LIMIT + 1))
        with pytest.raises((EOFError, ConnectionResetError)):
            connection.recv_bytes()
    assert ask(file, {})["ok"]


def test_a_client_that_takes_no_answer_is_hung_up_on(file, serve):
    server = serve(lambda _: {"x": "y" * (8 << 20)}, patience=2.0)
    with admitted(file) as connection:
        connection.send_bytes(b"{}")
        wait_until(lambda: not server._clients)


def test_more_stalling_clients_than_places_only_delay_the_next(file, serve):
    serve(patience=2.0)
    with contextlib.ExitStack() as stack:
        for _ in range(control_socket.CLIENTS + 4):
            stack.enter_context(connected(file))
        assert ask(file, {}, timeout=20)["ok"]


def test_one_client_more_than_may_wait_is_turned_away_with_words(file, serve, monkeypatch):
    monkeypatch.setattr("skep.adapters.net.control_socket.BACKLOG", 0)
    monkeypatch.setattr(control_socket, "CLIENTS", 1)
    server = serve(patience=60)
    with contextlib.ExitStack() as stack:
        stack.enter_context(connected(file))
        wait_until(lambda: server._clients, 20)  # the only place is taken, and nobody is accepted any more
        for _ in range(10):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.connect(ControlFile.read(file).socket_file)
        with raises(NotRunning, match=r"did not answer\.$"):
            ask(file, {})


# --- no server


def test_without_a_control_file_nobody_runs(home, file):
    with pytest.raises(NotRunning) as caught:
        ask(file, {"verb": "status"})
    assert in_english(caught.value.title) == f"No skep is running in {home.root}."
    assert in_english(caught.value.hint) == "Start one with skep join."


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"socket": "/x", "key": "%"}', b"\xff"])
def test_a_damaged_control_file_means_nobody_runs(file, content):
    file.write_bytes(content)
    with raises(NotRunning, match="No skep is running"):
        ask(file, {})


SERVER = """
import sys, time
from pathlib import Path
from skep.adapters.net.control_socket import ControlServer
with ControlServer(Path(sys.argv[1]), lambda request: {"ok": True}):
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def other_process(file):
    with subprocess.Popen([sys.executable, "-c", SERVER, str(file)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        yield process
        process.kill()
        process.wait()
        with ControlServer(file, dict):
            pass  # removes the socket that the killed server left


def test_another_process_answers(file, other_process):
    assert ask(file, {}) == {"ok": True}


def test_after_a_kill_nobody_runs_and_the_next_start_tidies_up(file, other_process):
    left = Path(ControlFile.read(file).socket_file)
    other_process.kill()
    other_process.wait()
    assert left.is_socket()
    with raises(NotRunning, match="No skep is running"):
        ask(file, {})
    with ControlServer(file, lambda _: {"ok": True, "new": True}):
        assert ask(file, {})["new"]
        assert not left.parent.exists()


def test_one_that_is_stopped_does_not_answer_in_time(file, other_process):
    other_process.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    with raises(NotRunning, match=r"did not answer within 0\.3 seconds"):
        ask(file, {}, timeout=0.3)
    assert time.monotonic() - begun < 2


def test_one_that_takes_too_long_does_not_answer_in_time(file, serve):
    done = threading.Event()
    serve(lambda _: {"ok": done.wait(5)})
    with raises(NotRunning, match="did not answer within"):
        ask(file, {}, timeout=0.2)
    done.set()


# --- shutdown


def test_closing_removes_everything_and_may_be_repeated(file):
    server = ControlServer(file, dict)
    server.start()
    place = Path(ControlFile.read(file).socket_file)
    server.close()
    server.close()
    assert not file.exists()
    assert not place.parent.exists()
    assert not [thread for thread in threading.enumerate() if thread.name == "control"]


def test_one_that_was_never_started_can_be_closed(file):
    ControlServer(file, dict).close()


def test_closing_hangs_up_on_those_who_wait(file, serve):
    server = serve()
    with connected(file) as client:
        wait_until(lambda: server._clients)
        server.close()
        client.settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            while client.recv(4096):
                pass


def test_closing_does_not_wait_for_a_handler(file, serve):
    entered, done = threading.Event(), threading.Event()

    def slow(_):
        entered.set()
        done.wait(10)
        return {}

    server = serve(slow)

    def hang():
        with pytest.raises(NotRunning):
            ask(file, {})

    client = threading.Thread(target=hang)
    client.start()
    entered.wait(5)
    begun = time.monotonic()
    server.close()
    assert time.monotonic() - begun < 2
    done.set()
    client.join()


def test_closing_leaves_a_successors_file(file):
    first = ControlServer(file, dict)
    first.start()
    with contextlib.closing(first):
        successor = ControlFile("/elsewhere", b"key")
        successor.write(file)
    assert ControlFile.read(file) == successor


# --- unusable folders


def test_a_path_too_long_for_a_socket_is_said_and_nothing_is_left(file, tmp_path):
    long = tmp_path / ("x" * 120)

    def make():
        long.mkdir()
        return long

    with raises(StorageError, match="too long for a socket"):
        ControlServer(file, dict, make_run_folder=make).start()
    assert not long.exists()


def test_a_home_that_cannot_be_written_is_said_and_nothing_is_left(tmp_path):
    made = []

    def make():
        made.append(make_run_folder())
        return made[0]

    with raises(StorageError, match="Other terminals cannot connect: No such file"):
        ControlServer(tmp_path / "none" / "control.json", dict, make_run_folder=make).start()
    assert not made[0].exists()


STRANGER = """
import hmac, os, socket, sys  # hmac: before the rights are gone
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
path, key, user = sys.argv[1], bytes.fromhex(sys.argv[2]), int(sys.argv[3])
os.setresuid(user, user, user)
with socket.socket(socket.AF_UNIX) as client:
    client.connect(path)
    with Connection(os.dup(client.fileno())) as connection:
        try:
            answer_challenge(connection, key)
            deliver_challenge(connection, key)
            connection.send_bytes(b"{}")
            print("answered", connection.recv_bytes())
        except (EOFError, ConnectionError):
            print("refused")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to become another user")
@pytest.mark.parametrize(("user", "said"), [(0, "answered"), pytest.param(65534, "refused", marks=pytest.mark.way_in)])
def test_another_user_is_refused_even_with_the_key(serve, file, caplog, user, said):
    serve()
    named = ControlFile.read(file)
    for folder, mode in ((Path(named.socket_file).parent, 0o755), (Path(named.socket_file), 0o777)):
        folder.chmod(mode)  # as if the permissions of files were no obstacle
    arguments = [named.socket_file, named.key.hex(), str(user)]
    done = subprocess.run([sys.executable, "-c", STRANGER, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(said)
    assert ("of another user" in caplog.text) == (said == "refused")
