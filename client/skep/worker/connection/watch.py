"""The watch over the processes through which this worker takes part in the swarm: the DHT's, p2pd, the averagers'.

hivemind does not notice when one of them ends or hangs. Without p2pd the DHT's process looks alive, look-ups return
nothing, and the peer trains alone; without the DHT's process a look-up never returns. `futures` gives such waits an end,
and the watch ends a worker that has lost a part.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import hivemind
import psutil
from hivemind.averaging import DecentralizedAverager
from hivemind.dht.node import DHTNode

from skep.clocks import since_boot
from skep.core.text import Problem, Text

LOOK_SECONDS: Final = 1.0
"""Between two looks at whether a part has ended."""
LONGEST_LOOK_SECONDS: Final = 5.0
"""Of the time between two looks at most this much counts: more is a sleep of the computer, or a pause of this process,
in which no part could answer either."""
ASK_SECONDS: Final = 10.0
"""Between an answer of a part and the next question."""
SILENT_SECONDS: Final = 60.0
"""A part that has not answered for this long hangs. An averager answers only between two pieces of its work, which take
seconds for a large model."""

P2PD: Final = "p2pd"


@dataclass(frozen=True)
class Part:
    """A process that this worker needs, or a thread.

    `ended` says whether it has ended. `ask` asks it for something cheap; it raises an exception if no answer comes
    within the given seconds. Both are called in threads of the watch. `pid` is that of a process of Python that may be
    asked for its stacks, None for a thread or one elsewhere; p2pd is asked through the DHT's process, which may be what hangs.
    """

    name: Text
    ended: Callable[[], bool]
    ask: Callable[[float], object]
    pid: int | None = None


def p2pd_of(dht: hivemind.DHT) -> Sequence[psutil.Process]:
    return [each for each in psutil.Process(dht.pid).children() if P2PD in each.name()]


def parts_of(dht: hivemind.DHT) -> Sequence[Part]:
    """The DHT's process, and its p2pd."""
    daemons = p2pd_of(dht)
    return (
        Part(
            Text("watch.dht"),
            lambda: not dht.is_alive(),
            lambda within: dht.run_coroutine(_answer, return_future=True).result(within),
            dht.pid,
        ),
        Part(
            Text("watch.p2pd"),
            lambda: any(map(_has_ended, daemons)),
            lambda within: dht.run_coroutine(_ask_p2pd, return_future=True).result(within),
            dht.pid,
        ),
    )


def part_of(averager: DecentralizedAverager, name: Text) -> Part:
    """An averager's process."""
    return Part(
        name,
        lambda: not averager.is_alive(),
        lambda within: averager.get_group_bits(wait=False).result(within),
        averager.pid,
    )


# these two run in the DHT's process, which finds them by name: it was forked after this module was imported


async def _answer(_dht: hivemind.DHT, _node: DHTNode) -> bool:
    return True


async def _ask_p2pd(_dht: hivemind.DHT, node: DHTNode) -> int:
    return len(await asyncio.wait_for(node.p2p.list_peers(), SILENT_SECONDS))


def _has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@dataclass
class _Questions:
    """Questions to one part, in a thread of their own: even to ask may block if the part hangs."""

    part: Part
    silent: float = 0.0
    """Seconds since the last answer, as the watch counts them."""

    def ask(self) -> None:
        with contextlib.suppress(Exception):
            self.part.ask(SILENT_SECONDS)
            self.silent = 0.0

    def ask_again_and_again(self, over: threading.Event) -> None:
        while not over.is_set():
            self.ask()
            over.wait(ASK_SECONDS)


class Watch:
    """Calls `alarm` once, in a thread of its own, when a part has ended or hangs.

    Before, `hangs` is called with the process id of a part that hangs, if it is one of Python.
    """

    def __init__(
        self,
        parts: Iterable[Part],
        alarm: Callable[[Problem], object],
        hangs: Callable[[int], object] = lambda _pid: None,
    ) -> None:
        self._questions = [_Questions(part) for part in parts]
        self._alarm, self._hangs, self._over = alarm, hangs, threading.Event()

    def end(self) -> None:
        """From now on there is no alarm: the parts are about to end."""
        self._over.set()

    def start(self) -> None:
        jobs: list[Callable[[], None]] = [partial(each.ask_again_and_again, self._over) for each in self._questions]
        for job in (*jobs, self._look_again_and_again):
            threading.Thread(target=job, name="watch", daemon=True).start()

    def _look_again_and_again(self) -> None:
        looked = since_boot()
        while not self._over.wait(LOOK_SECONDS):
            now = since_boot()
            problem, looked = self.look(now - looked), now
            if problem is not None and not self._over.is_set():
                self._alarm(problem)
                return

    def look(self, passed: float) -> Problem | None:
        """What is wrong with the first part that has ended or hangs, `passed` seconds after the last look."""
        hint = Text("watch.skep_starts_training_process_again")
        for each in self._questions:
            each.silent += min(passed, LONGEST_LOOK_SECONDS)
        for each in self._questions:
            if each.part.ended():
                return Problem(Text("watch.part_ended", part=each.part.name), hint)
        for each in self._questions:
            if each.silent > SILENT_SECONDS:
                if each.part.pid is not None:
                    self._hangs(each.part.pid)
                return Problem(Text("watch.part_silent", part=each.part.name, seconds=SILENT_SECONDS), hint)
        return None
