"""The wait of `skep leave`: how the running skep's leaving goes, shown until it is over. It decides nothing else.

The countdown comes with each answer of the running skep; here it is only shown.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Final

from rich.live import Live
from rich.text import Text

from skep import bootstrap
from skep.cli import present
from skep.cli.interrupt import Interrupts
from skep.cli.parser import Context
from skep.core.control import snapshot_of
from skep.core.errors import NotRunning, SkepError
from skep.core.model import Phase
from skep.core.snapshot import Snapshot

LOOK: Final = 0.25
"""Seconds between two questions."""
OBEYED_WITHIN: Final = 10.0
"""Seconds after which a running skep that was told to leave must be leaving."""


def leave(context: Context, *, now: bool) -> None:
    """Let the running skep leave, and return when it has left; Ctrl-C leaves at once. Raises SkepError."""
    with Interrupts() as interrupts:
        _ask(context, now=now)
        with ExitStack() as stack:
            show = _Countdown(context, stack)
            wait = _Wait(time.monotonic())
            while not wait.is_over(snapshot := _look(context), time.monotonic()):
                if interrupts.asked and not now:
                    now = True
                    _ask(context, now=True)
                show(snapshot)
                time.sleep(LOOK)


def _ask(context: Context, *, now: bool) -> None:
    bootstrap.ask(context.home, {"verb": "leave", "now": now})


def _look(context: Context) -> Snapshot | None:
    """What the running skep shows; None when it has ended."""
    try:
        return snapshot_of(bootstrap.ask(context.home, {"verb": "status"})["status"])
    except NotRunning:
        return None


class _Wait:
    """Whether a leave that was asked for is over, from one answer to the next."""

    def __init__(self, asked_at: float) -> None:
        self._asked_at, self._leaving = asked_at, False

    def is_over(self, snapshot: Snapshot | None, now: float) -> bool:
        """`now` is monotonic seconds. Raises SkepError when the running skep does not obey."""
        if snapshot is None or snapshot.phase is Phase.IDLE:
            return True
        leaving = snapshot.phase is Phase.LEAVING
        if self._leaving and not leaving:
            return True  # it has left, and joined anew
        self._leaving = leaving
        if not leaving and now - self._asked_at > OBEYED_WITHIN:
            raise SkepError("The running skep does not leave.", "Look at its terminal, or end it there with Ctrl-C.")
        return False


class _Countdown:
    """One line: redrawn on a terminal, said once anywhere else, and left out for programs."""

    def __init__(self, context: Context, stack: ExitStack) -> None:
        self._terminal = context.terminal
        self._said = context.terminal.json
        self._live: Live | None = None
        if self._terminal.out.is_terminal and not self._said:
            self._live = stack.enter_context(Live(console=self._terminal.out, auto_refresh=False, transient=True))

    def __call__(self, snapshot: Snapshot | None) -> None:
        if snapshot is None or snapshot.leaving_until is None:
            return
        line = present.sentence(snapshot, bootstrap.clock().wall())
        if self._live is not None:
            self._live.update(Text(line), refresh=True)
        elif not self._said:
            self._terminal.write(line)
            self._said = True
