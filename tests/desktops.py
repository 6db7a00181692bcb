"""Private desktops for tests: X servers, window managers, message buses and their services, real or by python-dbusmock.

The user's own session is not used, and all processes end with `close`.
"""

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from skep.adapters.linux.bus import Bus, Target
from skep.core.policy.conditions import Source

START_SECONDS = 60
"""A timeout, not a duration: the machine may be busy."""
SYSTEM_PYTHON = "/usr/bin/python3"
"""python-dbusmock is installed as a system package."""
WINDOW = Path(__file__).with_name("x11_window.py")


def need(*programs):
    """Skip the test if the programs are missing; on CI as root they are required."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing and os.environ.get("CI") and os.geteuid() == 0:
        pytest.fail(f"not installed: {', '.join(missing)}; packaging/system-packages.sh installs them")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; packaging/system-packages.sh says how to get them")


@functools.cache
def _has_dbusmock():
    return not subprocess.run([SYSTEM_PYTHON, "-c", "import dbusmock"], capture_output=True, check=False).returncode


def need_dbusmock():
    need("dbus-daemon", SYSTEM_PYTHON)
    if _has_dbusmock():
        return
    if os.environ.get("CI") and os.geteuid() == 0:
        pytest.fail("python3-dbusmock is not installed; packaging/system-packages.sh installs it")
    pytest.skip("python3-dbusmock is not installed; packaging/system-packages.sh says how to get it")


def until(condition, what="it"):
    """The first true value of `condition`, polled until a generous timeout."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        if found := condition():
            return found
        assert time.monotonic() < deadline, f"{what} did not come about"
        time.sleep(0.02)


def answered(read):
    """The first reading that is not silent: on a busy computer a service may answer after the sensor's timeout."""
    readings = []
    until(lambda: readings.append(read()) or readings[-1].source is not Source.SILENT)
    return readings[-1]


def longer(reading, seconds):
    """Whether it says more; a silent one, as of a sensor on a busy computer, says nothing."""
    return reading.value is not None and reading.value > seconds


def shorter(reading, seconds):
    """Whether it says less."""
    return reading.value is not None and reading.value < seconds


class Programs:
    """Processes that end together, the last started first."""

    def __init__(self):
        self._started = []

    def start(self, command, environ=None, **options):
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, env={**os.environ, **(environ or {})}, **(streams | options))
        self._started.append(process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def close(self):
        for process in reversed(self._started):
            self.end(process)
        self._started.clear()


class Screen:
    """An X server on a free display number; `environ` is what a program at that screen needs."""

    def __init__(self, *arguments, window_manager=None):
        """`arguments` go to the X server, for example to disable an extension."""
        self._programs, self._server, self._arguments = Programs(), None, arguments
        self._manager = window_manager
        self.number = self._start_anywhere()
        self.environ = {"DISPLAY": f":{self.number}", "XDG_SESSION_TYPE": "x11", "WAYLAND_DISPLAY": ""}
        if window_manager:
            self._start_manager()

    def _start_anywhere(self):
        reading, writing = os.pipe()
        with os.fdopen(reading) as told:
            self._server = self._start(["-displayfd", str(writing)], pass_fds=[writing])
            os.close(writing)
            return int(told.readline())

    def _start(self, arguments, **options):
        return self._programs.start(
            ["Xvfb", *arguments, *self._arguments, "-screen", "0", "640x480x24", "-nolisten", "tcp", "-noreset"],
            **options,
        )

    def _start_manager(self):
        self._programs.start([self._manager], self.environ)
        until(lambda: "window id" in self.run("xprop", "-root", "_NET_SUPPORTING_WM_CHECK"), self._manager)

    @property
    def name(self):
        return self.environ["DISPLAY"]

    def run(self, *command):
        """The output of a program that runs to its end at this screen."""
        environ = {**os.environ, **self.environ}
        return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False).stdout

    def touch(self):
        """Move the pointer, as a user does."""
        self.run("xdotool", "mousemove_relative", "--", "3", "2")
        self.run("xdotool", "mousemove_relative", "--", "-3", "-2")

    def window(self, pid=None):
        return Window(self._programs, self.environ, pid)

    def kill(self):
        """Kill the server; every program connected to it loses its connection."""
        self._server.kill()
        self._server.wait()
        # while this process holds the number, no other server takes it
        held = self._lock.with_suffix(f".{os.getpid()}")
        held.write_text(f"{os.getpid():10}\n")
        held.replace(self._lock)
        self._remove_socket()

    def restart(self):
        self._lock.unlink()
        self._server = self._start([self.name])
        until(lambda: self._server.poll() is None and self.run("xdotool", "getmouselocation"), "the X server")

    def freeze(self):
        self._server.send_signal(signal.SIGSTOP)

    def thaw(self):
        self._server.send_signal(signal.SIGCONT)

    def close(self):
        self._programs.close()
        self._remove_traces()

    def _remove_traces(self):
        """Remove the files of a killed server, unless another server has its number now."""
        if self._lock.exists() and int(self._lock.read_text()) in (self._server.pid, os.getpid()):
            self._lock.unlink()
            self._remove_socket()

    @property
    def _lock(self):
        return Path(f"/tmp/.X{self.number}-lock")

    def _remove_socket(self):
        Path(f"/tmp/.X11-unix/X{self.number}").unlink(missing_ok=True)


class Window:
    """A plain window that follows commands; it claims to belong to the process `pid`, by default its own."""

    def __init__(self, programs, environ, pid=None):
        self._programs = programs
        command = [sys.executable, str(WINDOW), *([] if pid is None else [str(pid)])]
        self._process = programs.start(command, environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout.readline() == "open\n"

    def tell(self, command):
        """Request "full" or "normal"; returns after the request, which the window manager may carry out later."""
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == f"{command}\n"

    def close(self):
        self._programs.end(self._process)


class PrivateBus:
    """A private message bus; `environ` makes it a program's session and system bus."""

    def __init__(self):
        self._folder = Path(tempfile.mkdtemp(prefix="bus-"))
        self._programs = Programs()
        (self._folder / "services").mkdir()
        # a bus that starts only the services that a test adds
        self._config = self._folder / "bus.conf"
        self._config.write_text(
            "<busconfig><type>session</type>"
            f"<listen>unix:path={self._folder / 'bus'}</listen><auth>EXTERNAL</auth>"
            f"<servicedir>{self._folder / 'services'}</servicedir>"
            '<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow user="*"/>'
            '<allow eavesdrop="true"/><allow own="*"/></policy></busconfig>'
        )
        self.address = f"unix:path={self._folder / 'bus'}"
        self.environ = {"DBUS_SESSION_BUS_ADDRESS": self.address, "DBUS_SYSTEM_BUS_ADDRESS": self.address}
        self.start()

    def start(self):
        command = ["dbus-daemon", f"--config-file={self._config}", "--nofork", "--print-address"]
        self._daemon = self._programs.start(command, stdout=subprocess.PIPE, text=True)
        assert self._daemon.stdout.readline()

    def stop(self):
        self._programs.end(self._daemon)

    def kill(self):
        self._daemon.kill()

    def freeze(self):
        self._daemon.send_signal(signal.SIGSTOP)

    def thaw(self):
        self._daemon.send_signal(signal.SIGCONT)

    def run(self, command, environ=None):
        """A program in the session, until the bus is closed."""
        return self._programs.start(command, {**self.environ, **(environ or {})})

    def end(self, process):
        self._programs.end(process)

    def has(self, name):
        bus = Bus(self.address, patience=START_SECONDS)
        try:
            return bus.has(name)
        finally:
            bus.close()

    def make_folder(self, name):
        """A folder for a program in the session; removed with the bus."""
        folder = self._folder / name
        folder.mkdir(mode=0o700)
        return folder

    def offer(self, *names):
        """Let the bus start services that only create a file; returns a function that says whether one was started."""
        trace = self._folder / "started"
        for name in names:
            service = f"[D-BUS Service]\nName={name}\nExec=/bin/sh -c 'touch {trace}'\n"
            (self._folder / "services" / f"{name}.service").write_text(service)
        self._startable()  # once it answers, it has a signal handler: earlier, the signal would end it
        self._daemon.send_signal(signal.SIGHUP)  # makes it read the folder again
        until(lambda: set(names) <= set(self._startable()))
        return trace.exists

    def _startable(self):
        bus = Bus(self.address, patience=START_SECONDS)
        target = Target("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
        try:
            return bus.call(target, "ListActivatableNames")[0]
        finally:
            bus.close()

    def call_as_anybody(self, name):
        command = ["dbus-send", "--session", "--type=method_call", f"--dest={name}", "/", f"{name}.GetActive"]
        subprocess.run(command, env={**os.environ, **self.environ}, check=True, timeout=60)

    def mock(self, name, path, interface):
        """A service by python-dbusmock, without methods."""
        process = self.run([SYSTEM_PYTHON, "-m", "dbusmock", "--session", name, path, interface])
        until(lambda: self.has(name), name)
        return Mock(self, process, Target(name, path, interface))

    def template(self, template, name, interface=None):
        """A service by python-dbusmock's template, whose object path is derived from its name."""
        process = self.run([SYSTEM_PYTHON, "-m", "dbusmock", "--template", template])
        until(lambda: self.has(name), name)
        return Mock(self, process, Target(name, "/" + name.replace(".", "/"), interface or name))

    def logind(self):
        return self.template("logind", "org.freedesktop.login1", "org.freedesktop.login1.Manager")

    def close(self):
        self._programs.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class Mock:
    """Controls what a service of python-dbusmock answers."""

    def __init__(self, bus, process, target):
        self._bus, self._process, self.target = bus, process, target

    def answer(self, method, signature, code, arguments="", path=None):
        """From now on this method runs `code`, a Python statement such as `ret = 1`."""
        body = (self.target.interface, method, arguments, signature, code)
        self.ask("AddMethod", "sssss", body, path)

    def signal(self, name, signature, *values):
        variants = [(each, value) for each, value in zip(signature, values, strict=True)]
        self.ask("EmitSignal", "sssav", (self.target.interface, name, signature, variants))

    def ask(self, method, signature, body, path=None, interface="org.freedesktop.DBus.Mock"):
        bus = Bus(self._bus.address, patience=START_SECONDS)
        try:
            return bus.call(Target(self.target.service, path or self.target.path, interface), method, signature, body)
        finally:
            bus.close()

    def change(self, values, path=None, interface=None):
        """Set properties and send the change signal; `values` is name -> (signature, value)."""
        self.ask("UpdateProperties", "sa{sv}", (interface or self.target.interface, values), path)

    def freeze(self):
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self._process.send_signal(signal.SIGCONT)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def end(self):
        self._bus.end(self._process)


class Mutter:
    """GNOME's compositor as the window manager of a screen, with its idle monitor on a bus."""

    def __init__(self, screen, bus):
        self._bus = bus
        environ = {**screen.environ, "GSETTINGS_BACKEND": "memory", "XDG_RUNTIME_DIR": str(bus.make_folder("mutter"))}
        self._process = bus.run(["mutter", "--x11", "--sm-disable"], environ)
        until(lambda: bus.has("org.gnome.Mutter.IdleMonitor"), "mutter")

    def freeze(self):
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self._process.send_signal(signal.SIGCONT)

    def close(self):
        self._bus.end(self._process)


class Sway:
    """A Wayland compositor without a screen; `environ` is what a program in its session needs."""

    def __init__(self):
        self._folder = Path(tempfile.mkdtemp(prefix="sway-"))
        self._programs = Programs()
        config = self._folder / "config"
        config.write_text("xwayland disable\n")
        runtime = self._folder / "run"
        runtime.mkdir(mode=0o700)
        self._as = []
        if os.geteuid() == 0:  # sway refuses to run as root
            nobody = 65534
            self._folder.chmod(0o711)
            Path(tempfile.gettempdir()).chmod(0o711)
            os.chown(runtime, nobody, nobody)
            self._as = ["setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups"]
        self.environ = {
            "XDG_RUNTIME_DIR": str(runtime),
            "XDG_SESSION_TYPE": "wayland",
            "WAYLAND_DISPLAY": "wayland-1",
            "DISPLAY": "",
        }
        headless = {"WLR_BACKENDS": "headless", "WLR_RENDERER": "pixman", "WLR_LIBINPUT_NO_DEVICES": "1"}
        self._process = self._programs.start(
            [*self._as, "sway", "-c", str(config)],
            {**self.environ, **headless, "HOME": str(runtime), "WAYLAND_DISPLAY": ""},
        )
        self._socket = until(lambda: next(iter(runtime.glob("sway-ipc.*")), None), "sway")
        until((runtime / "wayland-1").exists, "sway's display")

    def touch(self):
        """Move the pointer, as a user does."""
        command = [*self._as, "swaymsg", "-s", str(self._socket), "seat seat0 cursor move 3 2"]
        subprocess.run(command, check=True, capture_output=True, timeout=60)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def close(self):
        self._programs.close()
        shutil.rmtree(self._folder, ignore_errors=True)
