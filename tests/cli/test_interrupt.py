"""A signal that asks to end is heard wherever the main thread stands."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from skep.cli.interrupt import Interrupts

LATE = 5.0
"""Seconds; a busy machine may stop a process for a good part of one."""
AT_EACH_LINE = """
import signal, sys, threading, time
from skep.cli.interrupt import Interrupts

class SignalAt:
    def __init__(self, line):
        self.left, self.event = line, None
    def __call__(self, _frame, event, _argument):
        self.left -= 1
        if not self.left:
            self.event = event
            signal.raise_signal(signal.SIGINT)
        return self

line = 1
while True:
    tracing = SignalAt(line)
    with Interrupts() as interrupts:
        late = threading.Timer({late}, interrupts.ask)
        late.start()
        begun = time.monotonic()
        sys.settrace(tracing)
        interrupts.wait()
        sys.settrace(None)
        late.cancel()
    if tracing.left > 0:
        break
    assert interrupts.count == 1
    assert tracing.event == "return" or time.monotonic() < begun + {late}, "the signal did not end the wait"
    line += 1
print(line)
"""
"""Waits again and again, with a signal at the first step of the wait, then the second, until there was none for it."""


def test_a_signal_at_any_moment_of_the_wait_ends_it():
    done = subprocess.run(
        [sys.executable, "-c", AT_EACH_LINE.format(late=LATE)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_of_the_signals_is_counted_and_ends_the_wait(number):
    calls = []
    with Interrupts(lambda: calls.append(number)) as interrupts:
        for _ in range(2):
            os.kill(os.getpid(), number)
            interrupts.wait()
        assert (interrupts.asked, interrupts.count, len(calls)) == (True, 2, 2)


def test_another_thread_ends_the_wait():
    with Interrupts() as interrupts:
        threading.Timer(0.05, interrupts.ask).start()
        interrupts.wait()
        assert (interrupts.asked, interrupts.count) == (True, 0)
