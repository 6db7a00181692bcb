"""One answer made of several witnesses on the buses, each of which may be missing or silent.

It must not know what is asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from skep.adapters.linux.bus import Absent, Bus, Line, Silent
from skep.adapters.sensors.source import Wake, Woken
from skep.core.policy.conditions import Reading, Source, answered, missing, silent
from skep.core.text import Text


def heard(who: Text, line: Line, ask: Callable[[Bus], bool]) -> Reading[bool]:
    """What one witness on a bus says; a line on which it is silent is dropped."""
    try:
        return answered(line.ask(ask), who)
    except Absent as error:
        return missing(Text("witnesses.cannot_tell", who=who, reason=error.reason))
    except Silent as error:
        line.drop()
        return silent(Text("witnesses.does_not_answer", who=who, reason=error.reason))


def any_of(said: Sequence[Reading[bool]], nobody: Text) -> Reading[bool]:
    """Yes if one says yes; else silent if one is; else no if one answers; else missing, for which `nobody` is the note."""
    yes = [each for each in said if each.value]
    unsure = [each for each in said if each.source is Source.SILENT]
    no = [each for each in said if each.source is Source.ANSWERS]
    return next(iter((*yes, *unsure, *no)), missing(nobody))


def await_news(deadline: float, wake: Wake, *lines: Line) -> None:
    """Return at `deadline`, on the monotonic clock, when the wake rang, or when a signal came over one of the lines."""
    while True:
        try:
            buses = [bus for line in lines if (bus := line.open_bus) is not None]
            news = [bus.signals() for bus in buses]
            if any(news):
                return
            if wake.wait(deadline - time.monotonic(), *buses) is not Woken.BY_FILE:
                return
        except Silent:
            return  # the next look finds out which
