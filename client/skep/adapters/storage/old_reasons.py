"""Conversion of the English sentences in a ledger of skep 0.1 to messages.

Used once, when a ledger of that version is opened. The sentences are those of that version and never change; an unknown
one, such as the note of a sensor, stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from skep.core.text import Text, packed, verbatim

SENTENCES: Final = {
    "Paused until you resume.": "rule.paused_until_you_resume",
    "Outside your hours.": "rule.outside_your_hours",
    "Another program is using the GPU.": "rule.another_program_using_gpu",
    "Another program was using the GPU a moment ago.": "rule.another_program_was_using_gpu",
    "Other programs need the processor.": "rule.other_programs_need_processor",
    "Other programs needed the processor a moment ago.": "rule.other_programs_needed_processor_moment",
    "Paused while you use this computer: a step of this project takes long.": "rule.paused_for_long_steps",
    "Paused while you use this computer.": "rule.paused_in_use",
    "Your programs need GPU memory.": "rule.your_programs_need_gpu_memory",
    "Training at full share.": "rule.training_full_share",
    "On battery.": "rule.on_battery",
    "On battery a moment ago.": "rule.battery_moment_ago",
    "On a metered connection.": "rule.on_metered_connection",
    "On a metered connection a moment ago.": "rule.metered_connection_moment_ago",
    "A full-screen program is open.": "rule.full_screen_program_open",
    "A full-screen program was open a moment ago.": "rule.full_screen_program_was_open",
    "A call or film is running.": "rule.call_film_running",
    "A call or film was running a moment ago.": "rule.call_film_was_running_moment",
    "A source of readings does not answer.": "rule.source_silent",
    "This computer does not say when it was last used.": "rule.last_use_unknown",
    "Not in a project.": "timeline.not_project",
    "skep was not running.": "timeline.skep_was_not_running",
    "This computer slept.": "timeline.computer_slept",
    "Reaching the swarm again.": "timeline.reaching_swarm_again",
    "left before the round": "worker.left_before_round",
    "the worker stopped before the round": "worker.worker_stopped_before_round",
    "the training process stopped": "worker.training_process_stopped",
    "skep ended before the round": "engine.skep_ended_before_round",
    "gradients that were not finite": "training.gradients_were_not_finite",
    "the averaged gradients were not finite": "round.averaged_gradients_were_not_finite",
    "no other peer's data arrived": "round.no_other_peer_data_arrived",
    "no other peer": "round.no_other_peer",
    "part of the round failed": "round.part_round_failed",
    "the optimizer did not use the result": "round.optimizer_did_not_use_result",
    "this computer was paused": "round.computer_was_paused",
    "this computer was asleep": "round.computer_was_asleep",
    "this computer had fallen behind the swarm": "round.computer_had_fallen_behind_swarm",
    "the round could not begin": "round.round_could_not_begin",
    "the round took too long": "round.round_took_too_long",
    "no group was found for the round": "round.no_group_was_found_round",
    "the round failed": "round.round_failed",
}
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHARE: Final = r"(\d+) %"
_MOMENT: Final = rf"(later|(?:(?:{'|'.join(_DAYS)}|\d{{4}}-\d\d-\d\d) )?\d\d:\d\d)"


def _share(percent: str) -> float:
    return int(percent) / 100


def _moment(words: str) -> Text:
    day, _, time = words.rpartition(" ")
    if words == "later":
        return Text("hours.later")
    if day in _DAYS:
        return Text("hours.this_week", day=Text(f"hours.{day.lower()}"), time=time)
    return Text("hours.date", date=day, time=time) if day else Text("hours.today", time=time)


def _granted(words: str) -> Text:
    found = re.fullmatch(_SHARE, words)
    return Text("rule.granted", share=_share(found[1])) if found else Text("rule.granted_paused")


def _limit(words: str) -> Text:
    found = re.fullmatch(_SHARE, words)
    return Text("rule.limit", share=_share(found[1])) if found else Text("rule.limit_paused")


def _limit_until(words: str, moment: str) -> Text:
    limit = _limit(words)
    return Text("rule.limit_until", limit=limit, until=_moment(moment)) if moment else limit


def _device(words: str) -> Text:
    return Text("rule.processor") if words == "processor" else Text("rule.gpu")


_FORMED: Final[tuple[tuple[str, Callable[..., Text]], ...]] = (
    (rf"Paused until {_MOMENT}\.", lambda moment: Text("rule.paused_until", until=_moment(moment))),
    (
        rf"Outside your hours, back at {_MOMENT}\.",
        lambda moment: Text("rule.outside_your_hours_until", until=_moment(moment)),
    ),
    (
        rf"Your gentle hours: (\d+ %|paused)(?: until {_MOMENT})?\.",
        lambda limit, moment: Text("rule.your_gentle_hours", limit=_limit_until(limit, moment)),
    ),
    (rf"{_SHARE} while you use this computer\.", lambda share: Text("rule.share_in_use", share=_share(share))),
    (rf"Training at {_SHARE} share\.", lambda share: Text("rule.training_share", share=_share(share))),
    (rf"Going up gently to {_SHARE}\.", lambda share: Text("ramp.going_up_gently", target=_share(share))),
    (
        r"Keeping the (processor|GPU) under (\d+) °C\.",
        lambda device, cap: Text("rule.keeping_cool", device=_device(device), cap=float(cap)),
    ),
    (r"Limited to (\d+) W\.", lambda watts: Text("rule.power_limited", watts=float(watts))),
    (
        r"(.+) (\d+ %|Paused) until it answers again\.",
        lambda note, granted: Text("rule.until_it_answers", note=_sentence(note), granted=_granted(granted)),
    ),
    (
        r"(.+) (\d+ %|Paused) to be safe\.",
        lambda note, granted: Text("rule.to_be_safe", note=_sentence(note), granted=_granted(granted)),
    ),
)


def _sentence(words: str) -> Text:
    if words in SENTENCES:
        return Text(SENTENCES[words])
    for form, make in _FORMED:
        if found := re.fullmatch(form, words):
            return make(*found.groups())
    return verbatim(words)


def as_message(words: str) -> str:
    """A reason as skep 0.1 wrote it, in the present form of `packed`; "" stays unchanged."""
    return packed(_sentence(words)) if words else ""
