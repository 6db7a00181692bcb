"""Threads that read the sensors: one per sensor, so that one that blocks or fails does not affect the others.

Changed readings are posted as ConditionsSeen. `Sensing` reads until it is closed; `look` reads every sensor once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from skep.core.policy.conditions import Condition, Reading, Seen, Source, Told, news, silent, unreadable
from skep.core.session import messages as m
from skep.ports import Clock, Post, Sensor, TellsItself

DEADLINE: Final = 3.0
"""Maximum seconds for a reading; after that its source counts as silent."""
CLOSING: Final = 0.5
"""Maximum seconds to close all sensors together."""
FIRST_RETRY: Final = 1.0
LONGEST_RETRY: Final = 30.0
"""Maximum seconds before a failed sensor is read again; the wait doubles with each consecutive failure."""
ABSENT_SECONDS: Final = 5.0
"""Seconds between two checks for missing sources: most of them never appear."""

PERIODS: Final = {condition: condition.spec.periods.asked for condition in Condition}
"""Seconds between two readings of a source that is polled."""
TOLD_PERIODS: Final = {condition: condition.spec.periods.told for condition in Condition}
"""Maximum seconds between two readings of a source that notifies: it is also read immediately on a notification."""

log = logging.getLogger("skep.engine.sensing")


def unread(sensors: Sequence[Sensor]) -> dict[Condition, Reading[Any]]:
    """Silent readings for all conditions of `sensors`: before the first reading, and while a source blocks."""
    return {condition: silent(unreadable(condition)) for sensor in sensors for condition in sensor.conditions}


class Sensing:
    """Construct, `start`, `check` at each tick of the engine, `close`."""

    def __init__(self, sensors: Sequence[Sensor], post: Post, clock: Clock, deadline: float = DEADLINE) -> None:
        self._watches = [_Watch(sensor, post, clock, deadline) for sensor in sensors]

    def start(self) -> None:
        for watch in self._watches:
            watch.start()

    def check(self) -> None:
        """Report readings that take too long. Cheap; may be called from any one thread."""
        for watch in self._watches:
            watch.check()

    def close(self) -> None:
        """End every thread; one whose source still blocks ends with the process."""
        for watch in self._watches:
            watch.close()
        deadline = time.monotonic() + CLOSING
        for watch in self._watches:
            watch.join(deadline)


class _Watch:
    """One sensor, its thread, and its reported readings."""

    def __init__(self, sensor: Sensor, post: Post, clock: Clock, deadline: float) -> None:
        self._sensor, self._post, self._clock, self._deadline = sensor, post, clock, deadline
        self._asked = min((PERIODS[condition] for condition in sensor.conditions), default=LONGEST_RETRY)
        self._told_of = min((TOLD_PERIODS[condition] for condition in sensor.conditions), default=LONGEST_RETRY)
        self._teller = sensor if isinstance(sensor, TellsItself) else None
        self._told: dict[Condition, Told] = {}
        self._lock = threading.Lock()
        self._reading_since: float | None = None
        self._hangs = False
        self._absent = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"sensor {sensor.name}", daemon=True)
        self._closer = threading.Thread(target=self._let_go, name=f"closing {sensor.name}", daemon=True)

    @property
    def _period(self) -> float:
        period = self._told_of if self._teller is not None and self._teller.tells else self._asked
        return max(period, ABSENT_SECONDS) if self._absent else period

    def start(self) -> None:
        self._thread.start()

    def check(self) -> None:
        with self._lock:
            since = self._reading_since
            if since is None or self._hangs or self._clock.monotonic() - since < self._deadline:
                return
            self._hangs = True
            message = self._news(unread([self._sensor]))
        log.warning("%s has not answered for %g s", self._sensor.name, self._deadline)
        self._tell(message)

    def close(self) -> None:
        self._closing.set()
        self._closer.start()  # closing may block as well

    def join(self, deadline: float) -> None:
        """Wait for both threads, until `deadline` in monotonic seconds."""
        for thread in (self._closer, self._thread):
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            log.warning("%s does not end", self._sensor.name)

    def _let_go(self) -> None:
        try:
            self._sensor.close()
        except Exception:
            log.exception("%s did not close", self._sensor.name)

    # --- the thread

    def _run(self) -> None:
        failures = 0
        while not self._closing.is_set():
            failures = 0 if self._read() else failures + 1
            if failures:
                self._closing.wait(min(LONGEST_RETRY, FIRST_RETRY * 2.0 ** min(failures - 1, 10)))
            elif not self._wait():
                self._closing.wait(self._period)

    def _read(self) -> bool:
        with self._lock:
            self._reading_since = self._clock.monotonic()
        try:
            seen = self._only_its_own(self._sensor.read())
        except Exception as error:  # noqa: BLE001 - whatever it raises, the source does not answer
            log.warning("%s cannot be read: %s: %s", self._sensor.name, type(error).__name__, error)
            seen = None
        self._absent = seen is not None and all(each.source is Source.MISSING for each in seen.values())
        with self._lock:
            self._reading_since, self._hangs = None, False
            message = self._news(unread([self._sensor]) if seen is None else seen)
        self._tell(message)
        return seen is not None

    def _only_its_own(self, seen: Seen) -> Seen:
        """Exactly one reading for each of the sensor's conditions; a missing one is made silent."""
        own = self._sensor.conditions
        return unread([self._sensor]) | {condition: seen[condition] for condition in own if condition in seen}

    def _wait(self) -> bool:
        """Whether the sensor's `wait` succeeded; if not, the thread waits itself."""
        try:
            self._sensor.wait(self._period)
        except Exception:
            log.exception("%s cannot wait", self._sensor.name)
            return False
        return True

    def _news(self, seen: Seen) -> m.ConditionsSeen | None:
        now = self._clock.monotonic()
        fresh = news(self._told, seen, now)
        self._told |= {condition: Told(reading, now) for condition, reading in fresh.items()}
        return m.ConditionsSeen(fresh, self._clock.wall()) if fresh else None

    def _tell(self, message: m.ConditionsSeen | None) -> None:
        # not while holding the lock: posting may wait for the thread that calls `check`
        if message is not None and not self._closing.is_set():
            self._post(message)


def look(sensors: Sequence[Sensor], clock: Clock, deadline: float = DEADLINE) -> Seen:
    """Every sensor read once, in parallel; a reading that takes longer than `deadline` seconds is silent."""
    seen = dict(unread(sensors))
    waiting = {condition for sensor in sensors for condition in sensor.conditions}
    lock, complete = threading.Lock(), threading.Event()

    def take(message: object) -> None:
        assert isinstance(message, m.ConditionsSeen)
        with lock:
            seen.update(message.seen)
            waiting.difference_update(message.seen)
            if not waiting:
                complete.set()

    sensing = Sensing(sensors, take, clock, deadline)
    sensing.start()
    if waiting:
        complete.wait(deadline)
    sensing.close()
    with lock:
        return dict(seen)
