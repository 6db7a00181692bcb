"""One stay in a swarm, from the first stage to the farewell: the foreground loop of `join` and `demo`.

The engine works in its own thread; here its messages are turned into events, shown, and watched for the end.
"""

from __future__ import annotations

import queue
from typing import Final

from skep.bootstrap import Parts
from skep.cli import words
from skep.cli.ending import Course, Ending
from skep.cli.events import Events
from skep.cli.faces import Face
from skep.cli.interrupt import INTERRUPTED, Interrupts
from skep.core import messages as m
from skep.core.model import Phase, Problem
from skep.core.snapshot import Snapshot

BEAT: Final = 0.1
"""Seconds the loop waits for a message at most, so that it sees a signal and the clock in time."""


class Run:
    """Joins, shows, and leaves when its ending has come, the person asks, or the engine gives up."""

    def __init__(self, parts: Parts, face: Face, ending: Ending) -> None:
        self._engine, self._clock, self._face = parts.engine, parts.clock, face
        self._events = Events()
        self._seen: queue.SimpleQueue[tuple[m.Message, Snapshot]] = queue.SimpleQueue()
        self._began = self._left_on_request = False
        self._failure: Problem | None = None
        self.course = Course(ending, parts.clock.monotonic())
        self.snapshot: Snapshot = parts.engine.snapshot

    def go(self, join: m.Join, interrupts: Interrupts) -> int:
        """Returns the exit code when the engine has ended; `interrupts` are entered already."""
        self._engine.observe(self._observe)
        self._engine.start()
        try:
            self._engine.post(join)
            self._watch(interrupts)
        finally:
            self._engine.post(m.Quit())
            self._engine.join()
        self._take_all()
        return self._finish(interrupted=interrupts.asked)

    def _observe(self, message: m.Message, snapshot: object) -> None:
        assert isinstance(snapshot, Snapshot)
        self._seen.put((message, snapshot))

    def _watch(self, interrupts: Interrupts) -> None:
        while not interrupts.asked:
            self._take(BEAT)
            self._take_all()
            self._face.look(self.snapshot, self._clock.wall(), self._clock.monotonic())
            if (self._began and self.snapshot.phase is Phase.IDLE) or self._engine.join(0):
                return
            if not self._left_on_request and self._is_over():
                self._engine.post(m.Leave(now=True))

    def _take(self, timeout: float) -> None:
        try:
            message, self.snapshot = self._seen.get(timeout=timeout)
        except queue.Empty:
            return
        self._began |= isinstance(message, m.Join)
        self._left_on_request |= isinstance(message, m.Leave)
        for event in self._events.of(message, self.snapshot):
            self.course.see(event, self._clock.monotonic())
            self._face.told(event, self.snapshot, self._clock.wall())

    def _take_all(self) -> None:
        while not self._seen.empty():
            self._take(0)

    def _is_over(self) -> bool:
        now = self._clock.monotonic()
        if self.course.over(now) and self.course.joined is None:
            self._failure = Problem(f"The swarm was not joined within {words.span(now - self.course.started)}.")
        return self.course.over(now)

    def _finish(self, *, interrupted: bool) -> int:
        if not interrupted and not self._left_on_request:
            self._failure = self._failure or self.snapshot.problem
        self._face.close(self.snapshot.totals, self._failure)
        if interrupted:
            return 0 if self.course.joined is not None else INTERRUPTED
        return 0 if self._left_on_request and self._failure is None else 1
