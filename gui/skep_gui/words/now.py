"""The texts of the page Now and of the tray: the sentence, figures, rules in effect, stages of joining, lengths of a
pause.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Final

from skep.core.plain_text import plain
from skep.core.policy import rules
from skep.core.policy.conditions import Condition
from skep.core.policy.decision import Holding
from skep.core.session import phases
from skep.core.session.devices import DeviceState, device_states
from skep.core.session.phases import Phase, Stage, SwarmProgress
from skep.core.session.snapshot import Snapshot
from skep.language import units
from skep_gui.words.speaker import Speaker, filled

THOUSANDS: Final = 10_000
"""From this number of samples on, an epoch is counted in thousands."""
SPAN: Final = 600.0
"""The time span of History in seconds."""
MORNING: Final = 8
"""The local hour at which "until tomorrow" ends."""


@dataclass(frozen=True)
class Figure:
    """One of the four large figures: its label, its value, and a smaller line below."""

    label: str
    value: str
    below: str = ""
    explained: str = ""


@dataclass(frozen=True)
class DeviceLine:
    """One of several devices. `fraction` is its share 0..1; `details` are its readings, and what holds it back."""

    name: str
    share: str
    fraction: float
    details: str


@dataclass(frozen=True)
class RuleRow:
    """A rule in effect. `key` is the setting behind it, "" if there is none; the first of a list is the deciding
    one.
    """

    name: str
    sentence: str
    share: str
    key: str = ""


@dataclass(frozen=True)
class EpochBar:
    fraction: float
    text: str


@dataclass(frozen=True)
class PauseChoice:
    """`until` is wall clock seconds; None: until the user resumes."""

    text: str
    until: float | None


class StageState(StrEnum):
    DONE = "done"
    UNDER_WAY = "under way"
    TO_COME = "to come"
    FAILED = "failed"


@dataclass(frozen=True)
class StageRow:
    """`fraction` is 0..1 of the current stage, None while it is unknown."""

    name: str
    state: StageState
    fraction: float | None = None
    detail: str = ""


class Now(Speaker):
    """The current state in words. `now` is wall clock seconds everywhere."""

    def sentence(self, snapshot: Snapshot, now: float) -> str:
        """One sentence: what is happening and why."""
        match snapshot.phase:
            case Phase.IDLE:
                return self._idle(snapshot)
            case Phase.JOINING:
                return filled(self.tr("Joining %1."), title(snapshot))
            case Phase.PAUSED if snapshot.on_a_break:
                return self.said(phases.restarting(snapshot.restart_at, now))
            case Phase.TRAINING if snapshot.stage is not None:
                return f"{self.said(snapshot.stage.stage.label)}: {plain(self.said(snapshot.stage.detail))}."
            case Phase.TRAINING | Phase.PAUSED:
                return self.said(snapshot.waiting) or self.reason(snapshot, now)
            case Phase.RECOVERING:
                return self.said(phases.restarting(snapshot.restart_at, now))
            case Phase.LEAVING:
                finished, saving = bool(snapshot.finished), snapshot.saving
                return self.said(phases.leaving(snapshot.leaving_until, now, finished=finished, saving=saving))

    def first_line(self, snapshot: Snapshot, now: float) -> str:
        """The sentence with the project's title, for the tray."""
        sentence = self.sentence(snapshot, now)
        if snapshot.project is None or snapshot.phase is Phase.JOINING:
            return sentence
        return f"{shortened(title(snapshot))}: {sentence}"

    def reason(self, snapshot: Snapshot, now: float) -> str:
        """Why the share is what it is; for a pause with its end in local time."""
        pause = snapshot.pause
        if pause is None or snapshot.allowance.share > 0 or rules.is_over(pause, now):
            return self.said(snapshot.allowance.reason)
        return self.said(rules.paused("" if pause.until is None else self.numbers.clock_time(pause.until, now)))

    def _idle(self, snapshot: Snapshot) -> str:
        if snapshot.finished:
            return plain(self.said(snapshot.finished))
        if snapshot.pause is not None:
            return self.tr("Not in a project, and paused.")
        return self.tr("Not in a project.")

    def share(self, snapshot: Snapshot) -> str:
        """The share that the worker measured, otherwise the granted one."""
        share = measured(snapshot)
        return units.percent(share if share is not None else granted(snapshot))

    def share_below(self, snapshot: Snapshot) -> str:
        asked = units.percent(granted(snapshot))
        if measured(snapshot) is None:
            return filled(self.tr("asked %1"), asked)
        return filled(self.tr("measured, %1 asked"), asked)

    def figures(self, snapshot: Snapshot) -> tuple[Figure, Figure, Figure, Figure]:
        return self._confirmed(snapshot), self._speed(snapshot), self._device(snapshot), self._peers(snapshot)

    def _confirmed(self, snapshot: Snapshot) -> Figure:
        totals = snapshot.totals
        pending, lost = units.number(totals.pending.samples), units.number(totals.lost.samples)
        below = filled(self.tr("%1\u00a0pending · %2\u00a0lost"), pending, lost)
        explained = self.tr(
            "Samples since joining that were averaged with another peer's. "
            "Pending ones wait for the round at the end of the epoch."
        )
        return Figure(self.tr("Samples confirmed"), units.number(totals.confirmed.samples), below, explained)

    def _speed(self, snapshot: Snapshot) -> Figure:
        progress = snapshot.progress
        if progress is None:
            return Figure(self.tr("Samples a second"), units.MISSING)
        loss = filled(self.tr("loss %1"), self.numbers.figure(progress.loss, 2))
        return Figure(self.tr("Samples a second"), self.numbers.figure(progress.samples_per_second), loss)

    def _device(self, snapshot: Snapshot) -> Figure:
        conditions = snapshot.conditions
        value = _number(conditions[Condition.TEMPERATURE].value, "°C")
        power, free = _number(conditions[Condition.POWER].value, "W"), conditions[Condition.GPU_MEMORY].value
        parts = [power] if power else []
        if free is not None:
            parts.append(filled(self.tr("%1 free"), self.numbers.size(free)))
        name = plain(snapshot.device_names)
        below = " · ".join(parts) or name
        explained = name or self.tr("The device is known once a project is joined.")
        title = self.tr("Devices") if len(snapshot.devices) > 1 else self.tr("Device")
        return Figure(title, value or name or units.MISSING, below if below != value and value else "", explained)

    def devices(self, snapshot: Snapshot) -> list[DeviceLine]:
        """Each of several devices that compute; none where there is one."""
        return [self._device_line(each) for each in device_states(snapshot)]

    def _device_line(self, state: DeviceState) -> DeviceLine:
        free = (
            "" if state.memory_free is None else filled(self.tr("%1 free"), self.numbers.size(int(state.memory_free)))
        )
        readings = (_number(state.celsius, "°C"), _number(state.watts, "W"), free, plain(self.said(state.held_back)))
        share = units.MISSING if state.share is None else units.percent(state.share)
        return DeviceLine(plain(state.name), share, state.share or 0.0, " · ".join(part for part in readings if part))

    def _peers(self, snapshot: Snapshot) -> Figure:
        explained = self.tr("Other computers whose data was averaged with yours in the last round.")
        if snapshot.progress is None:
            return Figure(self.tr("Peers"), units.MISSING, "", explained)
        if snapshot.client_mode:
            below = self.tr("through a router, outgoing only")
        elif snapshot.relayed:
            below = self.tr("through a seed")
        else:  # it listens, perhaps out of reach
            below = self.tr("direct") if snapshot.verified else self.tr("direct, not verified")
        return Figure(self.tr("Peers"), units.number(snapshot.progress.peers), below, explained)

    def epoch(self, snapshot: Snapshot) -> EpochBar | None:
        """The swarm's epoch, as "epoch 128 · 3 peers · 41 of 64 thousand samples"; None before the first."""
        progress = snapshot.progress
        if progress is None:
            return None
        peers = units.number(progress.peers)
        peers = self.tr("1 peer") if progress.peers == 1 else filled(self.tr("%1 peers"), peers)
        epoch = filled(self.tr("epoch %1"), units.number(progress.epoch))
        return EpochBar(epoch_fraction(progress), f"{epoch} · {peers} · {self._samples(progress)}")

    def _samples(self, progress: SwarmProgress) -> str:
        done, target = progress.samples_accumulated, progress.target_batch_size
        if target >= THOUSANDS:
            text, done, target = self.tr("%1 of %2 thousand samples"), done // 1000, target // 1000
        else:
            text = self.tr("%1 of %2 samples")
        return filled(text, units.number(done), units.number(target))

    def rules(self, snapshot: Snapshot, now: float) -> list[RuleRow]:
        """Every rule in effect, the deciding one first."""
        return [self._rule(each, snapshot, now) for each in snapshot.holding]

    def _rule(self, each: Holding, snapshot: Snapshot, now: float) -> RuleRow:
        sentence = self.reason(snapshot, now) if each.rule == "paused" else self.said(each.allowance.reason)
        return RuleRow(each.rule, sentence, units.percent(each.allowance.share), setting_of(each.rule))

    def stages(self, snapshot: Snapshot) -> list[StageRow]:
        """All five in order; a failure is marked at its stage, which is tried again."""
        order = list(Stage)
        current = snapshot.stage
        position = order.index(current.stage) if current is not None else 0
        rows = []
        for index, stage in enumerate(order):
            if index != position:
                rows.append(
                    StageRow(self.said(stage.label), StageState.DONE if index < position else StageState.TO_COME)
                )
                continue
            if current is None and snapshot.phase is Phase.RECOVERING:  # it did not fail at any of them
                rows.append(StageRow(self.said(stage.label), StageState.TO_COME))
                continue
            failed = snapshot.phase is Phase.RECOVERING
            fraction = current.fraction if current is not None and math.isfinite(current.fraction) else None
            detail = plain(self.said(current.detail)) if current is not None else ""
            rows.append(
                StageRow(
                    self.said(stage.label), StageState.FAILED if failed else StageState.UNDER_WAY, fraction, detail
                )
            )
        return rows

    def pauses(self, now: float, zone: tzinfo | None = None) -> list[PauseChoice]:
        """`now` is wall clock seconds; `zone` None is the system's."""
        morning = tomorrow(now, zone)
        clock = datetime.fromtimestamp(morning, tz=UTC).astimezone(zone)
        return [
            PauseChoice(self.tr("For 15 minutes"), now + 15 * 60),
            PauseChoice(self.tr("For 1 hour"), now + 3600),
            PauseChoice(filled(self.tr("Until tomorrow, %1"), self.numbers.time(clock)), morning),
            PauseChoice(self.tr("Until I resume"), None),
        ]


def setting_of(rule: str) -> str:
    """The setting of a rule; "" for "ramp" and the like, which have none."""
    return rules.ALL[rule].setting if rule in rules.ALL else ""


def title(snapshot: Snapshot) -> str:
    """The project's title as plain text; text from a project is never interpreted as markup."""
    return plain(snapshot.project.title) if snapshot.project is not None else ""


def shortened(text: str, most: int = 40) -> str:
    """At most `most` characters, for places without line wrapping."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def granted(snapshot: Snapshot) -> float:
    """The share 0..1 that a project may use; 0 without a project, on a break, or while it only waits to leave or saves."""
    none = snapshot.phase in (Phase.IDLE, Phase.LEAVING) or snapshot.on_a_break or snapshot.saving
    return 0.0 if none else snapshot.allowance.share


def measured(snapshot: Snapshot) -> float | None:
    """The share 0..1 that the worker measured over the last minute; None if there is none.

    With nothing granted nothing computes, and the measured value is from before.
    """
    if snapshot.progress is None or granted(snapshot) <= 0:
        return None
    return snapshot.progress.share_measured


def epoch_fraction(progress: SwarmProgress) -> float:
    if progress.target_batch_size <= 0:
        return 0.0
    return min(1.0, max(0.0, progress.samples_accumulated / progress.target_batch_size))


def _number(value: float | None, unit: str) -> str:
    return "" if value is None else units.whole(value, unit)


def joining_progress(snapshot: Snapshot) -> float:
    """The progress of joining, 0..1; each stage counts the same."""
    current = snapshot.stage
    if current is None:
        return 0.0
    fraction = current.fraction if math.isfinite(current.fraction) else 0.0
    return (list(Stage).index(current.stage) + min(1.0, max(0.0, fraction))) / len(Stage)


def tomorrow(now: float, zone: tzinfo | None = None) -> float:
    """The next morning in seconds since the epoch."""
    here = datetime.fromtimestamp(now, tz=UTC).astimezone(zone)
    day = (here + timedelta(days=1)).date()
    naive = datetime(day.year, day.month, day.day, MORNING)  # noqa: DTZ001 - the clock after a change of the hour
    return (naive.astimezone() if zone is None else naive.replace(tzinfo=zone)).timestamp()


@dataclass(frozen=True)
class Point:
    """`at` is wall clock seconds; `share` 0..1."""

    at: float
    samples_per_second: float
    share: float


class History:
    """Ten minutes of samples a second and share. Fed with every snapshot; each report is added once, old ones are
    removed by time.
    """

    def __init__(self) -> None:
        self.points: deque[Point] = deque(maxlen=2000)
        self._last: SwarmProgress | None = None

    def see(self, snapshot: Snapshot, now: float) -> None:
        progress = snapshot.progress
        if progress is not None and progress is not self._last:
            share = measured(snapshot)
            share = granted(snapshot) if share is None else share
            self.points.append(Point(now, progress.samples_per_second, share))
        self._last = progress
        while self.points and self.points[0].at < now - SPAN:
            self.points.popleft()
