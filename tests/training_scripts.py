"""Training scripts as processes of their own, which print JSON lines."""

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from families import kill, lives

HERE = Path(__file__).parent / "training"
PATIENCE = 120
"""Seconds within which something happens on a busy computer."""


class Script:
    """A running script of this folder, with `options`. `seen` are the JSON lines so far, `errors` is its stderr."""

    def __init__(self, folder, name, **options):
        self.errors_file = folder / f"{name}-{time.monotonic_ns()}.log"
        with self.errors_file.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, HERE / name, json.dumps(options)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                start_new_session=True,
            )
        self.seen, self._lines = [], queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith(b"{"):
                self._lines.put(json.loads(line))
        self._lines.put(None)

    @property
    def errors(self):
        return self.errors_file.read_text()

    def until(self, condition, within=PATIENCE):
        """The next line that meets the condition."""
        deadline = time.monotonic() + within
        while True:
            line = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            assert line is not None, self.errors[-3000:]
            self.seen.append(line)
            if condition(line):
                return line

    def event(self, name, within=PATIENCE):
        return self.until(lambda line: line["event"] == name, within)

    def family(self):
        root = psutil.Process(self.process.pid)
        return [root, *root.children(recursive=True)]

    def say(self, word):
        with suppress(BrokenPipeError):
            self.process.stdin.write(f"{word}\n".encode())
            self.process.stdin.flush()

    def end(self, ask=lambda self: self.say("end")):
        """Ask it to end; the seconds until none of its processes is left."""
        family, begun = self.family(), time.monotonic()
        ask(self)
        while any(map(lives, family)) and time.monotonic() - begun < PATIENCE:
            self.process.poll()
            time.sleep(0.01)
        kill(family)
        return time.monotonic() - begun

    def took_to_leave(self):
        """Ask it to stop; the seconds from the end of its loop until none of its processes is left."""
        self.end()
        return time.time() - self.event("leaving")["at"]

    def close(self):
        if self.process.poll() is None:
            self.end(lambda _: self.process.send_signal(signal.SIGINT))
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self.process.stdin.close()
        self.process.stdout.close()


@contextmanager
def running(folder, name, **options):
    script = Script(folder, name, **options)
    try:
        yield script
    finally:
        script.close()


def equal_epoch(first, second, within=PATIENCE):
    """Lines of both scripts at the end of the same epoch, which both have confirmed with each other."""
    deadline = time.monotonic() + within
    ours = theirs = {"epoch": -1}
    while time.monotonic() < deadline:
        if ours["epoch"] <= theirs["epoch"]:  # where both are equal, one of them had not confirmed anything yet
            ours = first.event("epoch")
        if theirs["epoch"] < ours["epoch"]:
            theirs = second.event("epoch")
        if theirs["epoch"] == ours["epoch"] and ours["confirmed"] and theirs["confirmed"]:
            return ours, theirs
    said = [[{**line, "values": ...} for line in script.seen[-12:]] for script in (first, second)]
    raise TimeoutError(f"{said} {first.errors[-1000:]} {second.errors[-1000:]}")
