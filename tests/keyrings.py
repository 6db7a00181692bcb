"""A real GNOME Keyring on a private session bus, unlocked or locked; the user's own session is not used."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import keyring
import pytest

NEEDED = ("dbus-daemon", "gnome-keyring-daemon")
PASSWORD = "correct horse"
START_SECONDS = 30


def lacking():
    return [program for program in NEEDED if shutil.which(program) is None]


def need():
    """Skip the test if the programs are missing; on CI as root they are required."""
    missing = lacking()
    if missing and os.environ.get("CI") and os.geteuid() == 0:
        pytest.fail(f"not installed: {', '.join(missing)}; packaging/system-packages.sh installs them")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; packaging/system-packages.sh says how to get them")


def look_again(monkeypatch):
    """The keyring library searches for a backend once per process; let it search again at its next use."""
    monkeypatch.setattr(keyring.core, "_keyring_backend", None)
    with contextlib.suppress(KeyError):
        keyring.backend.get_all_keyring.reset()


class Session:
    """A session bus and a keyring on it. `environ` is what a program in that session needs."""

    def __init__(self, folder):
        self._folder = Path(folder)
        self._started = []
        for name in ("home", "run", "data"):
            (self._folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.environ = {
            "HOME": str(self._folder / "home"),
            "XDG_DATA_HOME": str(self._folder / "data"),
            "XDG_RUNTIME_DIR": str(self._folder / "run"),
            "DBUS_SESSION_BUS_ADDRESS": self._start_bus(),
        }

    def enter(self, monkeypatch):
        """Make this process a program of the session for one test."""
        look_again(monkeypatch)
        for name, value in self.environ.items():
            monkeypatch.setenv(name, value)

    def _start_bus(self):
        # a bus that starts no services: no prompter, and no second keyring
        config = self._folder / "bus.conf"
        config.write_text(
            "<busconfig><type>session</type>"
            f"<listen>unix:path={self._folder / 'bus'}</listen><auth>EXTERNAL</auth>"
            '<policy context="default"><allow send_destination="*" eavesdrop="true"/>'
            '<allow eavesdrop="true"/><allow own="*"/></policy></busconfig>'
        )
        bus = self._start(["dbus-daemon", f"--config-file={config}", "--nofork", "--print-address"], os.environ)
        return bus.stdout.readline().strip()

    def start_keyring(self, password=None):
        """With a password the login keyring is created or unlocked; without one it stays locked."""
        command = ["gnome-keyring-daemon", "--foreground", "--components=secrets"]
        environ = {**os.environ, **self.environ}
        keyring = self._start([*command, "--unlock"] if password else command, environ)
        keyring.stdin.write(password or "")
        keyring.stdin.close()
        self._await_name()
        return keyring

    def _await_name(self):
        deadline = time.monotonic() + START_SECONDS
        ask = ["dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.DBus", "/org/freedesktop/DBus"]
        ask += ["org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets"]
        while True:
            told = subprocess.run(ask, env={**os.environ, **self.environ}, capture_output=True, text=True, check=False)
            if "boolean true" in told.stdout:
                return
            assert time.monotonic() < deadline, told
            time.sleep(0.05)

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pipe in (process.stdin, process.stdout):
            pipe.close()

    def _start(self, command, environ):
        process = subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._started.append(process)
        return process

    def close(self):
        for process in reversed(self._started):
            self.end(process)
