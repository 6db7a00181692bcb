"""A private system bus with stand-ins for UPower, NetworkManager and logind on it; the computer's own bus is not touched.

The stand-ins are python-dbusmock, which belongs to the system's own Python.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from jeepney import DBusAddress, MessageType, message_bus, new_method_call
from jeepney.io.blocking import open_dbus_connection

SYSTEM_PYTHON = "/usr/bin/python3"
START_SECONDS = 30
MOCK = "org.freedesktop.DBus.Mock"


def need():
    """Skip the test where the programs are not; on CI as root they must be."""
    found = shutil.which("dbus-daemon") and Path(SYSTEM_PYTHON).exists()
    if (
        not found
        or subprocess.run([SYSTEM_PYTHON, "-c", "import dbusmock"], check=False, capture_output=True).returncode
    ):
        words = "python3-dbusmock is not installed; packaging/system-packages.sh says how to get it"
        (pytest.fail if os.environ.get("CI") and os.geteuid() == 0 else pytest.skip)(words)


class PrivateBus:
    """A bus that starts nothing by itself. Until `enter` no program of the test knows it."""

    def __init__(self, folder):
        self._started = []
        config = Path(folder) / "bus.conf"
        config.write_text(
            f"<busconfig><type>system</type><listen>unix:path={folder}/bus</listen><auth>EXTERNAL</auth>"
            '<policy context="default"><allow user="*"/><allow send_destination="*"/><allow receive_sender="*"/>'
            '<allow own="*"/></policy></busconfig>'
        )
        daemon = self._start(["dbus-daemon", f"--config-file={config}", "--nofork", "--print-address"])
        self.daemon = daemon
        self.address = daemon.stdout.readline().strip()
        self._connection = open_dbus_connection(self.address)

    def enter(self, monkeypatch):
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", self.address)

    def offer(self, template, name):
        """Start the stand-in of this template, and wait until it owns its name."""
        environ = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": self.address}
        process = self._start([SYSTEM_PYTHON, "-m", "dbusmock", "--system", "--template", template], environ)
        self._await(lambda: self.owned(name))
        return process

    def owned(self, name):
        reply = self._connection.send_and_get_reply(message_bus.NameHasOwner(name), timeout=START_SECONDS)
        return reply.body[0]

    def ask(self, name, path, method, signature="", body=(), interface=MOCK):
        """Call a method of a stand-in, as its conductor."""
        asked = new_method_call(DBusAddress(path, name, interface), method, signature or None, body)
        reply = self._connection.send_and_get_reply(asked, timeout=START_SECONDS)
        assert reply.header.message_type is MessageType.method_return, reply.body
        return reply.body

    def change(self, name, path, interface, **properties):
        """Set properties, with the signal that goes with it. Values are variants, such as ("b", True)."""
        self.ask(name, path, "UpdateProperties", "sa{sv}", (interface, properties))

    def end(self, process):
        """End one of its programs, also one that was stopped."""
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        process.stdout.close()

    def close(self):
        self._connection.close()
        for process in reversed(self._started):
            self.end(process)

    def _start(self, command, environ=None):
        process = subprocess.Popen(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._started.append(process)
        return process

    def _await(self, condition):
        deadline = time.monotonic() + START_SECONDS
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.02)
