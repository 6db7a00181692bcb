"""A scope for the worker, asked from a stand-in for systemd on a real bus. systemd 252's own manager took the same call."""

import contextlib
import json
import logging
import os
import socket
import threading
import time

import psutil
import pytest

from desktops import START_SECONDS, PrivateBus, need_dbusmock, until
from skep.adapters.linux import scope
from skep.adapters.linux.scope import LARGEST_PART, LEAST_PART, MANAGER, bus_address, limit_memory, most_memory

pytestmark = pytest.mark.alone

GB = 1_000_000_000
JOB = "/org/freedesktop/systemd1/job/7"
ASKED = "ssa(sv)a(sa(sv))"
DONE = f"self.EmitSignal('{MANAGER.interface}', 'JobRemoved', 'uoss', [7, '{JOB}', args[0], '{{result}}'])"


class Systemd:
    def __init__(self, bus, asked):
        self._asked = asked
        self.manager = bus.mock(MANAGER.service, MANAGER.path, MANAGER.interface)
        self.manager.answer("Subscribe", "", "")

    def answer(self, *more):
        """It writes down what it is asked, does `more` and answers with its job."""
        written = f"import json; open({str(self._asked)!r}, 'w').write(json.dumps(args))"
        self.manager.answer("StartTransientUnit", "o", "; ".join((written, *more, f"ret = '{JOB}'")), ASKED)

    @property
    def asked(self):
        name, mode, properties, more = json.loads(self._asked.read_text())
        return name, mode, dict(properties), more


@pytest.fixture
def bus(monkeypatch):
    need_dbusmock()
    made = PrivateBus()
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    yield made
    made.close()


@pytest.fixture
def systemd(bus, tmp_path):
    return Systemd(bus, tmp_path / "asked")


@pytest.fixture
def said(caplog):
    """What was logged."""
    caplog.set_level(logging.INFO, scope.__name__)
    return lambda: caplog.messages


def test_a_process_is_put_into_a_scope_with_limits(systemd, said):
    systemd.answer(DONE.format(result="done"))  # its signal comes before the answer
    limit_memory(4711, 2 * GB, seconds=START_SECONDS)
    name, mode, properties, more = systemd.asked
    assert (name, mode, more) == ("app-skep-worker-4711.scope", "fail", [])
    assert properties["PIDs"] == [4711]
    assert properties["MemoryMax"] == most_memory(2 * GB, psutil.virtual_memory().total)
    assert properties["MemorySwapMax"] <= psutil.swap_memory().total
    assert properties["TasksMax"] > 1000
    assert properties["CollectMode"] == "inactive-or-failed"
    assert said() == []


def test_the_end_of_the_job_is_waited_for(systemd, said):
    systemd.answer()
    asking = threading.Thread(target=limit_memory, args=(4711, 0), kwargs={"seconds": START_SECONDS})
    asking.start()
    until(lambda: systemd._asked.exists() and systemd._asked.read_text())
    systemd.manager.signal("JobRemoved", "uoss", 6, "/org/freedesktop/systemd1/job/6", "another.service", "done")
    assert asking.is_alive()
    systemd.manager.signal("JobRemoved", "uoss", 7, JOB, "app-skep-worker-4711.scope", "done")
    asking.join(START_SECONDS)
    assert not asking.is_alive()
    assert said() == []


def test_a_job_that_fails_or_does_not_end_is_only_logged(systemd, said):
    systemd.answer(DONE.format(result="failed"))
    limit_memory(4711, 0, seconds=START_SECONDS)
    assert "failed" in said()[-1]
    systemd.answer()
    limit_memory(4711, 0, seconds=3.0)
    assert "too slow" in said()[-1]


@pytest.fixture
def slow(bus, monkeypatch, tmp_path):
    """A way to the bus on which each message takes 0.45 s."""
    path = tmp_path / "slow"
    listener, there = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    ends = [listener, there]
    listener.bind(str(path))
    listener.listen()
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={path}")
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={path}")
    there.connect(bus.address.removeprefix("unix:path="))

    def pass_on():
        client, _ = listener.accept()
        ends.append(client)
        threading.Thread(target=copy, args=(client, there, 0.0), daemon=True).start()
        copy(there, client, 0.45)

    def copy(source, target, seconds):
        with contextlib.suppress(OSError):  # an end has closed
            while data := source.recv(65_536):
                time.sleep(seconds)  # what makes this way slow
                target.sendall(data)

    threading.Thread(target=pass_on, daemon=True).start()
    yield
    for each in ends:
        each.close()


def test_answers_that_each_come_in_time_take_no_longer_than_allowed_in_all(systemd, slow, said):
    systemd.answer(DONE.format(result="done"))
    begun = time.monotonic()
    limit_memory(4711, 0, seconds=2.0)
    assert time.monotonic() - begun < 2.6
    assert said() == ["no limit on the worker's memory: too slow"]


def test_a_systemd_that_refuses_is_only_logged(systemd, said):
    systemd.answer("raise dbus.exceptions.DBusException('no', name='org.freedesktop.DBus.Error.AccessDenied')")
    limit_memory(4711, 0, seconds=START_SECONDS)
    assert "AccessDenied" in said()[-1]


def test_a_session_without_systemd_is_only_logged(bus, said):
    limit_memory(4711, 0, seconds=START_SECONDS)
    assert len(said()) == 1


def test_a_computer_without_a_bus_is_only_logged(monkeypatch, said):
    for name in ("DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"):
        monkeypatch.setenv(name, "unix:path=/nonexistent/bus")
    limit_memory(os.getpid(), 0)
    assert len(said()) == 1


def test_root_asks_the_systems_bus_and_others_that_of_their_session():
    environment = {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/session", "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/system"}
    assert bus_address(environment, 0) == "unix:path=/system"
    assert bus_address(environment, 1000) == "unix:path=/session"


@pytest.mark.parametrize(
    ("leave", "most"), [(0, LARGEST_PART * 16), (2, 14), (15, LEAST_PART * 16), (32, LEAST_PART * 16)]
)
def test_the_limit_leaves_what_the_person_wants_to_keep(leave, most):
    assert most_memory(leave * GB, 16 * GB) == most * GB
