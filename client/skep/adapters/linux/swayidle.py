"""The time since the last input by the protocol ext-idle-notify-v1, which sway, KDE, Hyprland and others support.

The program swayidle implements it, as a child process that ends with this one. It reports only when input stops and
starts, from its own start on; a film that keeps the screen on counts as input.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Final, TypeVar

from skep.adapters.sensors.idle import IdleJudge
from skep.adapters.sensors.source import Absent, Line, LineSensor, Silent
from skep.core.policy.conditions import Condition, Reading, answered, missing, silent
from skep.core.text import Text

QUIET_SECONDS: Final = 5
"""Time without input after which the compositor reports; until then the computer counts as in use."""
_ENDING_SECONDS: Final = 1.0
_PROVING_SECONDS: Final = 0.2
_TRY_AGAIN_SECONDS: Final = 300.0
_REFUSED: Final = Text("swayidle.swayidle_ends_once_compositor_may")
_STOPPED, _STARTED = b"stopped", b"started"

Found = TypeVar("Found")


class Child:
    """A process that reports in lines. Implements source.Connection."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Raises Silent when it does not start."""
        try:
            self.process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise Silent(Text("swayidle.swayidle_does_not_start", reason=str(error))) from None
        assert self.process.stdout is not None, "it was started with a pipe"
        self._pipe: IO[bytes] = self.process.stdout
        os.set_blocking(self.fileno(), False)
        self._begun = b""

    def fileno(self) -> int:
        return self._pipe.fileno()

    def ask(self, question: Callable[[Child], Found]) -> Found:
        return question(self)

    def news(self) -> Sequence[bytes]:
        """The lines it has written. Raises Silent when it has ended."""
        data = self._pipe.read()
        *lines, self._begun = (self._begun + (data or b"")).split(b"\n")
        if not lines and (data == b"" or self.process.poll() is not None):
            raise Silent(Text("swayidle.swayidle_has_ended"))
        return lines

    def cut(self) -> None:
        """Does nothing: no call waits for the process."""

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._pipe.close()


class SwayidleInput(LineSensor[Child]):
    """Reports INPUT. `wait` returns when input starts or stops."""

    name = "ext-idle-notify-v1 by swayidle"
    conditions = (Condition.INPUT,)

    def __init__(self, environment: Mapping[str, str], quiet_seconds: int = QUIET_SECONDS) -> None:
        """`environment` of the session, in which the child finds the compositor."""
        super().__init__(Line(self._start))
        self._environment, self._quiet_seconds = environment, quiet_seconds
        self._judge = IdleJudge(Text("swayidle.compositor"))
        self._stopped_at: float | None = None
        self._known = False
        """Whether a child ever reported anything: then the compositor supports it."""
        self._refused_at: float | None = None

    def _start(self) -> Child:
        """Raises Absent, Silent."""
        if self._refused_at is not None and time.monotonic() - self._refused_at < _TRY_AGAIN_SECONDS:
            raise Absent(_REFUSED)
        program, guard = shutil.which("swayidle"), shutil.which("setpriv")
        if program is None:
            raise Absent(Text("swayidle.needs_program_swayidle"))
        if guard is None:
            raise Absent(Text("swayidle.needs_program_setpriv"))
        # setpriv makes the kernel signal the child when the reading thread or this process ends
        command = [guard, "--pdeathsig", "TERM", program, "-C", os.devnull, "timeout", str(self._quiet_seconds)]
        child = Child([*command, f"echo {_STOPPED.decode()}", "resume", f"echo {_STARTED.decode()}"], self._environment)
        self._stopped_at = None
        # it exits immediately if the compositor lacks the protocol
        self._wake.wait(_PROVING_SECONDS, child)
        return child

    def _is_news(self, told: Any) -> bool:
        self._known = True
        if told == _STOPPED:
            self._stopped_at = time.monotonic()
        elif told == _STARTED:
            self._stopped_at = None
        return True

    def _ask(self, child: Child) -> Reading[float]:
        try:
            for line in child.news():
                self._is_news(line)
        except Silent:
            if self._known:
                raise
            self._let_go()
            self._refused_at = time.monotonic()
            raise Absent(_REFUSED) from None
        if self._stopped_at is None:
            return answered(0.0, Text("swayidle.compositor_idle_notification"))
        return self._judge.judge(time.monotonic() - self._stopped_at + self._quiet_seconds)

    def _absent(self, reason: Text) -> Reading[float]:
        return missing(Text("swayidle.compositor_idle_notification_not_had", reason=reason))

    def _silent(self, reason: Text) -> Reading[float]:
        return silent(Text("swayidle.compositor_does_not_say_when", reason=reason))
