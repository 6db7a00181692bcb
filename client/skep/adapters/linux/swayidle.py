"""The time since the last input by the protocol ext-idle-notify-v1, which sway, KDE, Hyprland and others speak.

The program swayidle speaks it for us, as a child process that dies with us. It tells only when input stops and starts, and
that from the moment it was started; a film that keeps the screen awake counts as input.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from typing import IO, Final

from skep.adapters.linux.bus import Absent, Silent
from skep.adapters.sensors.idle_check import IdleJudge
from skep.adapters.sensors.source import SourceSensor, Woken
from skep.core.policy.conditions import Condition, Seen, answered, missing, silent
from skep.core.text import Text

QUIET_SECONDS: Final = 5
"""Without input for so long, the compositor tells; until then somebody counts as typing."""
_ENDING_SECONDS: Final = 1.0
_PROVING_SECONDS: Final = 0.2
_TRY_AGAIN_SECONDS: Final = 300.0
_REFUSED: Final = Text("swayidle.swayidle_ends_once_compositor_may")
_STOPPED, _STARTED = b"stopped", b"started"
_NOTE: Final = Text("swayidle.compositor_idle_notification")


class SwayidleInput(SourceSensor):
    """Tells INPUT. `wait` returns when input starts or stops."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """`environment` of the session, in which the child finds the compositor."""
        super().__init__("ext-idle-notify-v1 by swayidle", [Condition.INPUT])
        self._environment = dict(environment)
        self._child: subprocess.Popen[bytes] | None = None
        self._judge = IdleJudge(Text("swayidle.compositor"))
        self._stopped_at: float | None = None
        self._heard = b""
        self._known = False
        self._refused_at: float | None = None

    def _look(self) -> Seen:
        try:
            self._listen(self._running())
        except Absent as error:
            return {
                Condition.INPUT: missing(Text("swayidle.compositor_idle_notification_not_had", reason=error.reason))
            }
        except Silent as error:
            self._let_go()
            return {Condition.INPUT: silent(Text("swayidle.compositor_does_not_say_when", reason=error.reason))}
        if self._stopped_at is None:
            return {Condition.INPUT: answered(0.0, _NOTE)}
        return {Condition.INPUT: self._judge.judge(time.monotonic() - self._stopped_at + QUIET_SECONDS)}

    def _running(self) -> subprocess.Popen[bytes]:
        """The child, started where none runs. Raises Absent, Silent."""
        if self._child is None:
            if self._refused_at is not None and time.monotonic() - self._refused_at < _TRY_AGAIN_SECONDS:
                raise Absent(_REFUSED)
            program, guard = shutil.which("swayidle"), shutil.which("setpriv")
            if program is None or guard is None:
                raise Absent(
                    Text("swayidle.needs_program_swayidle")
                    if program is None
                    else Text("swayidle.needs_program_setpriv")
                )
            self._child = self._started(program, guard)
            # where the compositor cannot, it ends at once
            self._wake.wait(_PROVING_SECONDS, _pipe(self._child))
        return self._child

    def _started(self, program: str, guard: str) -> subprocess.Popen[bytes]:
        # setpriv sees to it that the child gets a signal when the thread that reads, or all of us, is gone
        command = [guard, "--pdeathsig", "TERM", program, "-C", os.devnull]
        command += ["timeout", str(QUIET_SECONDS), f"echo {_STOPPED.decode()}", "resume", f"echo {_STARTED.decode()}"]
        try:
            child = subprocess.Popen(
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise Silent(Text("swayidle.swayidle_does_not_start", reason=str(error))) from None
        os.set_blocking(_pipe(child).fileno(), False)
        return child

    def _listen(self, child: subprocess.Popen[bytes]) -> bool:
        """Take in what it says; whether it said anything. Raises Absent, Silent when it has ended."""
        data = _pipe(child).read()
        for word in self._lines(data or b""):
            self._known = True
            if word == _STOPPED:
                self._stopped_at = time.monotonic()
            elif word == _STARTED:
                self._stopped_at = None
        if child.poll() is not None or data == b"":
            self._let_go()
            if self._known:
                raise Silent(Text("swayidle.swayidle_has_ended"))
            self._refused_at = time.monotonic()
            raise Absent(_REFUSED)
        return bool(data)

    def _lines(self, data: bytes) -> list[bytes]:
        *lines, self._heard = (self._heard + data).split(b"\n")
        return lines

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself."""
        return self._child is not None

    def _await(self, deadline: float) -> None:
        child = self._child
        if child is None:
            super()._await(deadline)
            return
        try:
            while self._wake.wait(deadline - time.monotonic(), _pipe(child)) is Woken.BY_FILE:
                if self._listen(child):
                    return
        except (Absent, Silent):
            return  # the next look starts another, or says that there is none

    def _let_go(self) -> None:
        child, self._child = self._child, None
        self._stopped_at, self._heard = None, b""
        if child is None:
            return
        child.terminate()
        try:
            child.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        _pipe(child).close()


def _pipe(child: subprocess.Popen[bytes]) -> IO[bytes]:
    assert child.stdout is not None, "it was started with a pipe"
    return child.stdout
