"""The rules of the policy: named predicates that propose a ceiling for the share and a sentence. Pure.

A rule evaluates the facts of one moment only; how long a condition must last, and how long it must be over, are data of
the rule that `decision` applies. A missing source switches its rule off; a silent one caps the share at that for a
computer in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Final

from skep.core.device import PowerCap
from skep.core.policy.allowance import Allowance, GpuMemory, PauseState
from skep.core.policy.conditions import BUSY_GPU, BUSY_PROCESSOR, Condition, Conditions, Source
from skep.core.policy.device_shares import limits_of, number_of, of_all
from skep.core.settings import hours
from skep.core.settings.hours import Grade
from skep.core.settings.setting import Value
from skep.core.settings.settings import DEFAULTS
from skep.core.text import NOTHING, Text

Settings = Mapping[str, Value]

FULL: Final = 1.0
PROCESSOR: Final = "CPU"
"""The worker's name of its device when it trains on the processor."""


@dataclass(frozen=True)
class Facts:
    """The input of the rules. `now` is wall clock seconds; `zone` is this computer's time zone.

    `idle_more` is the seconds since the input reading was taken. `heat` is the share that the heat loop of `hot`, the
    device that decides, allows all devices together, and `gpu_memory` how much GPU memory the memory loop allows;
    `decision` keeps the state of both loops. `devices` are those that compute, or would, as ComputingDevice.id; they
    are `in_step` where one model is spread over them.
    `power_caps` are the limits that skep has set on cards, by device, or why it could not; empty while none is wanted.
    A `heavy` project cannot stop in the time required while a user is there: one sample takes longer.
    """

    conditions: Conditions = field(default_factory=Conditions)
    settings: Settings = field(default_factory=dict)
    now: float = 0.0
    zone: tzinfo = UTC
    pause: PauseState | None = None
    idle_more: float = 0.0
    heat: float = FULL
    hot: str = ""
    gpu_memory: GpuMemory = GpuMemory.KEEP
    power_caps: Mapping[str, PowerCap] = field(default_factory=dict)
    devices: tuple[str, ...] = ("",)
    in_step: bool = False
    on_processor: bool = False
    heavy: bool = False


@dataclass(frozen=True)
class Rule:
    """`judge` returns a ceiling with its sentence while the rule holds, else None.

    A rule counts once it has held for `onset` seconds, and until it has been over for the time in the setting `calm`;
    `over` is its sentence during that time. `label` names it in lists; `setting` is the setting that controls it, and
    switches it off if boolean; `condition` is the reading that it needs, if any. `on_processor` is set where the rule
    counts on one kind of device only.
    """

    name: str
    label: Text
    judge: Callable[[Facts], Allowance | None]
    setting: str = ""
    condition: Condition | None = None
    onset: float = 0.0
    calm: str = ""
    over: Text = NOTHING
    on_processor: bool | None = None

    def propose(self, facts: Facts) -> Allowance | None:
        """The ceiling with its sentence while the rule holds, or its source does not answer; else None."""
        if self.on_processor not in (None, facts.on_processor):
            return None
        if isinstance(DEFAULTS.get(self.setting), bool) and not is_on(facts.settings, self.setting):
            return None
        if self.condition is not None and self.is_silent(facts):
            return _silent(facts, self.condition)
        return self.judge(facts)

    def is_silent(self, facts: Facts) -> bool:
        """Whether its source exists and does not answer."""
        return self.condition is not None and facts.conditions[self.condition].source is Source.SILENT


def share_of(settings: Settings, key: str) -> float:
    """A setting as a share 0..1, its default where it is not a number; NaN is 0."""
    value = settings.get(key, DEFAULTS[key])
    if isinstance(value, bool) or not isinstance(value, int | float):
        value = DEFAULTS[key]
    return min(FULL, max(0.0, float(value)))


def using(settings: Settings) -> float:
    """The share while this computer is in use; at most the share while away."""
    return min(share_of(settings, "compute.share_using"), share_of(settings, "compute.share_away"))


def is_over(pause: PauseState, now: float) -> bool:
    """Whether a pause has an end and the end has passed."""
    return pause.until is not None and not now < pause.until


def is_on(settings: Settings, key: str) -> bool:
    return bool(settings.get(key, DEFAULTS[key]))


# --- requests of the user, and the schedule


def _paused(facts: Facts) -> Allowance | None:
    pause = facts.pause
    if pause is None or is_over(pause, facts.now):
        return None
    until = "" if pause.until is None else hours.clock_time(pause.until, facts.now, facts.zone)
    return Allowance(0.0, paused(until), until=pause.until)


def paused(until: str | Text) -> Text:
    """The sentence for a pause by the user that ends at the local time `until`; "" stands for no end."""
    return Text("rule.paused_until", until=until) if until else Text("rule.paused_until_you_resume")


def _schedule(facts: Facts) -> Allowance | None:
    grid = hours.grid(str(facts.settings.get("when.schedule", hours.FULL_WEEK)))
    match hours.at(grid, hours.local(facts.now, facts.zone)):
        case Grade.FULL:
            return None
        case Grade.GENTLE:
            return _gentle(facts, hours.next_change(grid, facts.now, facts.zone, frozenset({Grade.FULL, Grade.OFF})))
        case Grade.OFF:
            until = hours.next_change(grid, facts.now, facts.zone, frozenset({Grade.FULL, Grade.GENTLE}))
            back = hours.clock_time(until, facts.now, facts.zone) if until else None
            outside = Text("rule.outside_your_hours_until", until=back) if back else Text("rule.outside_your_hours")
            return Allowance(0.0, outside, until=until)


def _gentle(facts: Facts, until: float | None) -> Allowance:
    own = share_of(facts.settings, "when.gentle_using" if is_used(facts) else "when.gentle_away")
    share = own or using(facts.settings)
    limit = _limit(share)
    if until:
        limit = Text("rule.limit_until", limit=limit, until=hours.clock_time(until, facts.now, facts.zone))
    return Allowance(share, Text("rule.your_gentle_hours", limit=limit), until=until)


def _limit(share: float) -> Text:
    return Text("rule.limit", share=share) if share else Text("rule.limit_paused")


def _granted(share: float) -> Text:
    return Text("rule.granted", share=share) if share else Text("rule.granted_paused")


# --- the state of the computer


def _silent(facts: Facts, condition: Condition) -> Allowance:
    share = using(facts.settings)
    note = facts.conditions[condition].note or Text("rule.source_silent")
    sentence = Text("rule.until_it_answers", note=note, granted=_granted(share))
    return Allowance(share, sentence, present=condition is Condition.INPUT)


def _when(condition: Condition, sentence: Text, *, network: bool = True) -> Callable[[Facts], Allowance | None]:
    """The `judge` of a rule that pauses while a boolean reading is true."""
    return lambda facts: Allowance(0.0, sentence, network=network) if facts.conditions[condition].value else None


def _busy_gpu(facts: Facts) -> Allowance | None:
    busy = (facts.conditions[Condition.GPU_USE].value or 0.0) > BUSY_GPU
    return Allowance(0.0, Text("rule.another_program_using_gpu")) if busy else None


def _busy_processor(facts: Facts) -> Allowance | None:
    share = using(facts.settings)
    # without a reduction there is nothing to explain
    held_back = share < share_of(facts.settings, "compute.share_away")
    busy = (facts.conditions[Condition.PROCESSOR_USE].value or 0.0) > BUSY_PROCESSOR
    sentence = Text("rule.other_programs_need_processor")
    return Allowance(share, sentence, present=True) if busy and held_back else None


# --- the user


def idle_seconds(facts: Facts) -> float | None:
    """Seconds since the last input until now; None where it is not known."""
    read = facts.conditions[Condition.INPUT].value
    return None if read is None else read + facts.idle_more


def is_used(facts: Facts) -> bool:
    """Whether this computer is or may be in use: a screen whose last input is unknown counts as in use."""
    conditions, idle = facts.conditions, idle_seconds(facts)
    if conditions[Condition.LOCKED].value:
        return False
    if idle is None:
        return conditions.graphical or conditions[Condition.INPUT].source is Source.SILENT
    return idle < number_of(facts.settings, "compute.idle_minutes") * 60


def _input(facts: Facts) -> Allowance | None:
    reading = facts.conditions[Condition.INPUT]
    if not is_used(facts):
        return None
    if facts.heavy and facts.on_processor:
        return Allowance(0.0, Text("rule.paused_for_long_steps"), present=True)
    share = using(facts.settings)
    if reading.source is Source.MISSING:
        note = reading.note or Text("rule.last_use_unknown")
        return Allowance(share, Text("rule.to_be_safe", note=note, granted=_granted(share)), present=True)
    sentence = Text("rule.share_in_use", share=share) if share else Text("rule.paused_in_use")
    return Allowance(share, sentence, present=True)


# --- the device


def _gpu_memory(facts: Facts) -> Allowance | None:
    sentence = Text("rule.your_programs_need_gpu_memory")
    match facts.gpu_memory:
        case GpuMemory.KEEP:
            return None
        case GpuMemory.SHRINK:
            # its ceiling equals that of the rule "away", so that it only precedes that rule and its sentence is shown
            return Allowance(share_of(facts.settings, "compute.share_away"), sentence, memory=GpuMemory.SHRINK)
        case GpuMemory.RELEASE:
            return Allowance(0.0, sentence, memory=GpuMemory.RELEASE)


def _heat(facts: Facts) -> Allowance | None:
    if facts.heat >= FULL:
        return None
    device = Text("rule.processor") if facts.on_processor else Text("rule.gpu")
    cap = limits_of(facts.settings, facts.hot).celsius
    return Allowance(facts.heat, Text("rule.keeping_cool", device=device, cap=cap))


def _device_limits(facts: Facts) -> Allowance | None:
    own = {device: limits_of(facts.settings, device).share for device in facts.devices}
    share = of_all(own, in_step=facts.in_step)
    return Allowance(share, Text("rule.device_limits_share", share=share)) if share < FULL else None


def _power_cap(facts: Facts) -> Allowance | None:
    watts = [cap.watts for cap in facts.power_caps.values() if cap.watts is not None and not cap.refused]
    if not watts:
        return None
    # the driver enforces the cap; the share stays that of the rule "away", and the sentence is shown
    sentence = Text("rule.power_limited" if len(watts) == 1 else "rule.power_limited_together", watts=sum(watts))
    return Allowance(share_of(facts.settings, "compute.share_away"), sentence)


def _away(facts: Facts) -> Allowance:
    share = share_of(facts.settings, "compute.share_away")
    sentence = Text("rule.training_full_share") if share == FULL else Text("rule.training_share", share=share)
    return Allowance(share, sentence)


_CALM: Final = "when.calm_seconds"
_MAINS_CALM: Final = "when.mains_calm_seconds"

RULES: Final = (
    Rule("paused", Text("rule.your_pause"), _paused),
    Rule("schedule", Text("rule.schedule"), _schedule, "when.schedule"),
    Rule(
        "battery",
        Text("rule.battery"),
        _when(Condition.BATTERY, Text("rule.on_battery")),
        "when.battery_pause",
        Condition.BATTERY,
        calm=_MAINS_CALM,
        over=Text("rule.battery_moment_ago"),
    ),
    Rule(
        "metered",
        Text("rule.metered_connection"),
        _when(Condition.METERED, Text("rule.on_metered_connection"), network=False),
        "network.metered_pause",
        Condition.METERED,
        calm=_MAINS_CALM,
        over=Text("rule.metered_connection_moment_ago"),
    ),
    Rule(
        "full_screen",
        Text("rule.full_screen_program"),
        _when(Condition.FULL_SCREEN, Text("rule.full_screen_program_open")),
        "when.full_screen_pause",
        Condition.FULL_SCREEN,
        calm=_CALM,
        over=Text("rule.full_screen_program_was_open"),
    ),
    Rule(
        "call",
        Text("rule.call_film"),
        _when(Condition.INHIBITED, Text("rule.call_film_running")),
        "when.call_pause",
        Condition.INHIBITED,
        calm=_CALM,
        over=Text("rule.call_film_was_running_moment"),
    ),
    Rule(
        "busy_gpu",
        Text("rule.busy_gpu"),
        _busy_gpu,
        "when.busy_gpu_pause",
        Condition.GPU_USE,
        onset=2.0,
        calm=_CALM,
        over=Text("rule.another_program_was_using_gpu"),
        on_processor=False,
    ),
    Rule("input", Text("rule.you_use_computer"), _input, "compute.share_using", Condition.INPUT),
    Rule(
        "busy_processor",
        Text("rule.busy_processor"),
        _busy_processor,
        "compute.share_using",
        Condition.PROCESSOR_USE,
        onset=5.0,
        calm=_CALM,
        over=Text("rule.other_programs_needed_processor_moment"),
        on_processor=True,
    ),
    Rule(
        "gpu_memory",
        Text("rule.gpu_memory"),
        _gpu_memory,
        "memory.leave_gpu_gb",
        Condition.GPU_MEMORY,
        on_processor=False,
    ),
    Rule("heat", Text("rule.temperature_cap"), _heat, "heat.cap_celsius", Condition.TEMPERATURE),
    Rule("device_limits", Text("rule.device_limits"), _device_limits, "compute.device_limits"),
    Rule("power_cap", Text("rule.power_cap"), _power_cap, "heat.power_cap_watts"),
    Rule("away", Text("rule.away"), _away, "compute.share_away"),
)
"""All rules, in the order of precedence for equal ceilings. "away" always holds, so that at least one rule does."""

RAMP: Final = Rule("ramp", Text("rule.up_gently"), lambda _facts: None, "compute.ramp_seconds")
"""Used by `decision` only: the rule shown while an increase of the share is ramped."""

ALL: Final[Mapping[str, Rule]] = {rule.name: rule for rule in (*RULES, RAMP)}


# --- contradictory settings: the stricter one applies, and no setting is changed


def contradictions(settings: Settings) -> tuple[Text, ...]:
    """One sentence for each pair of settings of which one makes the other pointless."""
    return tuple(_contradictions(settings))


def _contradictions(settings: Settings) -> Iterator[Text]:
    away, in_use = share_of(settings, "compute.share_away"), share_of(settings, "compute.share_using")
    if in_use > away:
        yield Text("remark.share_while_you_use_computer", wanted=in_use, away=away)
    grades = set(hours.grid(str(settings.get("when.schedule", ""))))
    if Grade.GENTLE in grades:
        gentle_using, gentle_away = share_of(settings, "when.gentle_using"), share_of(settings, "when.gentle_away")
        if gentle_using > using(settings):
            yield Text("remark.share_gentle_hours_while_you", wanted=gentle_using, limit=using(settings))
        if gentle_away > away:
            yield Text("remark.share_gentle_hours_while_away", wanted=gentle_away, limit=away)
    if grades == {Grade.OFF}:
        yield Text("remark.schedule_off_all_hours_skep")
    seconds, minutes = number_of(settings, "memory.free_gpu_seconds"), number_of(settings, "memory.leave_swarm_minutes")
    if seconds > minutes * 60:
        yield Text("remark.pause_leaves_swarm_after_min", minutes=minutes, seconds=seconds)
