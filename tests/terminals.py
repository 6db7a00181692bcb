"""Runs `skep` verbs as real processes, to their end or in the background."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest import mock

import psutil

from skep.adapters.storage.paths import Home
from skep.adapters.storage.settings_file import SettingsFile
from skep.cli.application import main
from skep.cli.verbs.demo import DEVOTED

SKEP = [sys.executable, "-m", "skep.cli.main"]
OTHER_EPOCHS = [sys.executable, str(Path(__file__).with_name("other_epochs.py"))]
SHORT_EPOCHS = [*OTHER_EPOCHS, "0.25"]
GENTLY = {"compute.share_using": 0.3}
"""Settings for tests that wait for rounds, whatever the peer adds to them: it leaves the processor to other tests."""
JOIN_SECONDS = 120
"""Seconds within which a busy computer must join a swarm or start a practice swarm."""


class Running:
    """A `skep` verb in the background; collects its JSON lines.

    `place` is a command that runs the program elsewhere; `program` another one that takes the same arguments.
    """

    def __init__(self, home, *arguments, place=(), program=SKEP, **environ):
        self.home = home
        self.process = subprocess.Popen(
            [*place, *program, "--home", str(home), "--json", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"} | environ,
        )
        self.events = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._news:
                self.events.append(json.loads(line))
                self._news.notify_all()

    def wait_for(self, condition, within):
        """The first past or future event that meets the condition."""
        deadline = time.monotonic() + within
        with self._news:
            seen = 0
            while True:
                for event in self.events[seen:]:
                    if condition(event):
                        return event
                seen = len(self.events)
                left = deadline - time.monotonic()
                assert left > 0, f"not within {within} s; last events: {self.events[-3:]}"
                assert self.process.poll() is None or self._reader.is_alive(), self.words()
                self._news.wait(min(left, 0.5))

    def named(self, name):
        with self._news:
            return [event for event in self.events if event["event"] == name]

    def words(self):
        return f"exit code {self.process.returncode}: {self.process.stderr.read()}"

    def family(self):
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def finish(self, number=signal.SIGINT, within=10):
        """Send a signal and wait; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.end(within)

    def end(self, within=10):
        try:
            return self.process.wait(within)
        finally:
            self.process.kill()
            self.process.wait()
            self._reader.join(5)
            for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
                pipe.close()


def skep(home, *arguments, within=20):
    """Run a verb to its end; returns its exit code and its JSON."""
    done = subprocess.run(
        [*SKEP, "--home", str(home), "--json", *arguments], capture_output=True, text=True, timeout=within, check=False
    )
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None


def run_here(*arguments, **environ):
    """Run a verb that starts no engine in this process, without the start of an interpreter; returns what one would."""
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as error,
        mock.patch.dict(os.environ, environ),
    ):
        code = main(arguments, os.environ)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), error.getvalue())


def devote(home, **changes):
    """Let a home's skep compute regardless of other programs: it counts the other peers of the test as such."""
    kept = Home(home)
    kept.create()
    SettingsFile(kept.settings_file).save({**DEVOTED} | changes)
    return home


def is_event(name, **fields):
    return lambda event: event["event"] == name and all(event.get(key) == value for key, value in fields.items())


def wait_until(condition, within):
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not within {within} s"
        time.sleep(0.02)


def count_of(running, name):
    """The number of processes with this name that a running verb has."""
    return sum(name_of(process) == name for process in running.family())


def name_of(process):
    """A process's name, or None if it ended after it was listed."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.name()


@contextlib.contextmanager
def practice_swarm(folder, program=SKEP, peers=2):
    """The link that joins it."""
    running = Running(folder, "practice", "--peers", str(peers), program=program)
    try:
        link = running.wait_for(lambda event: "manifest" in event, JOIN_SECONDS)["link"]
        wait_until(lambda: count_of(running, "p2pd") == peers + 1, JOIN_SECONDS)
        yield link
    finally:
        family = running.family()
        running.finish()
        assert not psutil.wait_procs(family, 5)[1]
