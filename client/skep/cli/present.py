"""What a person sees while joined: a Snapshot as lines of toned text. Pure; knows no terminal and prints nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skep.cli import words
from skep.cli.theme import Tone
from skep.core import timeline
from skep.core.model import Phase, Stage, StageProgress, SwarmProgress, Tally, Totals
from skep.core.snapshot import Snapshot

NARROW: Final = 60
"""Columns; below this the bars move to a line of their own."""
_BAR: Final = 24
_LABEL: Final = 14

CLIENT: Final = "behind a router: makes connections, accepts none"
HEAVY: Final = "one takes longer than 0.05 s, and a pause waits for it"
STAGES: Final = {
    Stage.HARDWARE: "Check this computer",
    Stage.DATA: "Fetch training data",
    Stage.PEERS: "Reach the swarm",
    Stage.WARM_UP: "Warm up",
    Stage.STATE: "Load the model's state",
}


@dataclass(frozen=True)
class Span:
    text: str
    tone: Tone = Tone.INK


Line = tuple[Span, ...]


def plain(line: Line) -> str:
    """The line's text alone, as it is written where there is no terminal."""
    return "".join(span.text for span in line).rstrip()


def panel(snapshot: Snapshot, now: float, width: int) -> list[Line]:
    """Everything to show, top to bottom. `now` is wall-clock seconds, `width` columns."""
    blocks = [_title(snapshot)]
    if snapshot.phase in (Phase.JOINING, Phase.RECOVERING):
        blocks.append(checklist(snapshot.stage, width))
    blocks.append([(Span(sentence(snapshot, now), _tone(snapshot)),)])
    if snapshot.progress is not None:
        blocks.append(_figures(snapshot, snapshot.progress, width))
    if snapshot.phase in (Phase.TRAINING, Phase.PAUSED) and rules(snapshot):
        blocks.append(rules(snapshot))
    if snapshot.problem is not None:
        blocks.append(_problem(snapshot))
    return [line for block in blocks for line in ((Span(""),), *block)][1:]


def _title(snapshot: Snapshot) -> list[Line]:
    if snapshot.project is None:
        return [(Span("skep", Tone.STRONG),)]
    project = snapshot.project
    return [(Span(project.title, Tone.STRONG), Span(f"  published by {project.fingerprint}", Tone.SOFT))]


def _problem(snapshot: Snapshot) -> list[Line]:
    if snapshot.problem is None:
        return []
    lines: list[Line] = [(Span(snapshot.problem.title, Tone.EMBER),)]
    return [*lines, (Span(snapshot.problem.hint, Tone.SOFT),)] if snapshot.problem.hint else lines


def checklist(current: StageProgress | None, width: int) -> list[Line]:
    """The five stages: done, under way with a bar, and still to come."""
    order = list(Stage)
    position = order.index(current.stage) if current is not None else 0
    lines: list[Line] = []
    for index, stage in enumerate(order):
        if index < position:
            lines.append((Span("✓ ", Tone.LEAF), Span(STAGES[stage])))
        elif index == position:
            lines.extend(_under_way(stage, current, width))
        else:
            lines.append((Span("· ", Tone.SOFT), Span(STAGES[stage], Tone.SOFT)))
    return lines


def _under_way(stage: Stage, current: StageProgress | None, width: int) -> list[Line]:
    fraction = current.fraction if current is not None else 0.0
    detail = f"  {current.detail}" if current is not None and current.detail else ""
    name: Line = (Span("→ ", Tone.HONEY), Span(STAGES[stage], Tone.STRONG))
    if width < NARROW:
        return [name, (Span("  "), *bar(fraction, min(_BAR, width - 4)), Span(detail, Tone.SOFT))]
    gap = " " * max(2, _BAR - len(STAGES[stage]))
    return [(*name, Span(gap), *bar(fraction, _BAR), Span(detail, Tone.SOFT))]


def bar(fraction: float, cells: int, tone: Tone = Tone.HONEY) -> Line:
    """A progress bar of `cells` columns; a fraction outside 0..1 is drawn at the end it passed."""
    cells = max(1, cells)
    full = round(min(1.0, max(0.0, fraction)) * cells) if fraction == fraction else 0  # noqa: PLR0124 - NaN is no progress
    return (Span("━" * full, tone), Span("─" * (cells - full), Tone.SOFT))


def sentence(snapshot: Snapshot, now: float) -> str:
    """The one sentence that says what is happening and why."""
    match snapshot.phase:
        case Phase.IDLE:
            return "Not joined."
        case Phase.JOINING:
            return "Joining the swarm."
        case Phase.TRAINING | Phase.PAUSED:
            return reason(snapshot)
        case Phase.RECOVERING:
            return f"Trying again{_in(snapshot.restart_at, now)}."
        case Phase.LEAVING:
            return leaving(snapshot, now)


def reason(snapshot: Snapshot) -> str:
    """Why the share is what it is."""
    return snapshot.allowance.reason


def rules(snapshot: Snapshot) -> list[Line]:
    """The other rules that hold, and how quickly giving back went; nothing where one rule holds alone."""
    others = [each.allowance.reason for each in snapshot.holding[1:] if each.rule != "away"]
    if snapshot.power_cap is not None and snapshot.power_cap.refused:
        others.append(f"No power cap. {snapshot.power_cap.refused}")
    held = [_row("Also" if number == 0 else "", text) for number, text in enumerate(others)]
    reacted = timeline.sentence(snapshot.reactions)
    return [*held, *([_row("Give-back", reacted)] if reacted else [])]


def leaving(snapshot: Snapshot, now: float) -> str:
    """How long leaving may still wait for the round, where it does."""
    if snapshot.leaving_until is None:
        return "Leaving the swarm."
    left = max(0.0, snapshot.leaving_until - now)
    return f"Leaving after the next round, in {words.span(left)} at most."


def _in(moment: float | None, now: float) -> str:
    return "" if moment is None or moment <= now else f" in {words.span(moment - now)}"


def _tone(snapshot: Snapshot) -> Tone:
    match snapshot.phase:
        case Phase.TRAINING:
            return Tone.LEAF
        case Phase.JOINING | Phase.LEAVING:
            return Tone.HONEY
        case Phase.RECOVERING:
            return Tone.EMBER
        case Phase.IDLE | Phase.PAUSED:
            return Tone.SLATE


def _figures(snapshot: Snapshot, progress: SwarmProgress, width: int) -> list[Line]:
    client = [_row("Network", CLIENT)] if snapshot.client_mode else []
    heavy = [_row("Samples", HEAVY)] if snapshot.heavy else []
    return [
        *_epoch(progress, width),
        _row("Loss", loss(snapshot)),
        _row("Speed", f"{words.figure(progress.samples_per_second)} samples/s"),
        _row("Compute share", shares(progress)),
        _row("Contributions", tallies(snapshot.totals)),
        _row("Traffic", bytes_moved(progress)),
        *client,
        *heavy,
    ]


def _row(label: str, text: str) -> Line:
    return (Span(label.ljust(_LABEL), Tone.SOFT), Span(" "), Span(text))


def _epoch(progress: SwarmProgress, width: int) -> list[Line]:
    done = bar(epoch_fraction(progress), min(_BAR, width - 2))
    text = Span(epoch(progress))
    if width < NARROW + _BAR - _LABEL:
        return [(text,), done]
    return [(*done, Span("  "), text)]


def epoch_fraction(progress: SwarmProgress) -> float:
    """0..1 of the samples this epoch needs."""
    return progress.samples_accumulated / progress.target_batch_size if progress.target_batch_size > 0 else 0.0


def epoch(progress: SwarmProgress) -> str:
    """As "epoch 12 · 3 peers · 412 of 1 024 samples"."""
    done, target = words.number(progress.samples_accumulated), words.number(progress.target_batch_size)
    return f"epoch {words.number(progress.epoch)} · {words.plural(progress.peers, 'peer')} · {done} of {target} samples"


def loss(snapshot: Snapshot) -> str:
    """Training loss, and the held-out loss first → last where it was measured."""
    training = snapshot.progress.loss if snapshot.progress is not None else None
    text = f"{words.figure(training, 3)} in training"
    if not snapshot.evaluations:
        return text
    first, last = snapshot.evaluations[0].loss, snapshot.evaluations[-1].loss
    held_out = words.figure(last, 3) if len(snapshot.evaluations) == 1 else _first_to_last(first, last)
    return f"{text} · {held_out} held out"


def _first_to_last(first: float, last: float) -> str:
    return f"{words.figure(first, 3)} → {words.figure(last, 3)}"


def shares(progress: SwarmProgress) -> str:
    return f"{words.percent(progress.share_asked)} asked · {words.percent(progress.share_measured)} measured"


def tallies(totals: Totals) -> str:
    """As "4 confirmed · 1 pending · 0 lost"."""
    counts = (("confirmed", totals.confirmed), ("pending", totals.pending), ("lost", totals.lost))
    return " · ".join(f"{words.number(tally.contributions)} {name}" for name, tally in counts)


def bytes_moved(progress: SwarmProgress) -> str:
    return f"{words.size(progress.bytes_sent)} up · {words.size(progress.bytes_received)} down"


def tally(name: str, counted: Tally) -> str:
    """As "5 confirmed (1 280 samples)"."""
    return f"{words.number(counted.contributions)} {name} ({samples(counted)})"


def samples(counted: Tally) -> str:
    """As "1 280 samples"."""
    return words.plural(counted.samples, "sample")


def farewell(totals: Totals) -> str:
    """The last sentence of a run."""
    parts = [tally("confirmed", totals.confirmed), tally("lost", totals.lost)]
    if totals.pending.contributions:
        parts.append(tally("pending", totals.pending))
    return f"Left the swarm. Contributions: {', '.join(parts)}."


def update(snapshot: Snapshot) -> str:
    """The swarm's progress in one line, where there is no terminal to redraw."""
    progress = snapshot.progress
    if progress is None:
        return sentence(snapshot, 0.0)
    parts = (
        epoch(progress),
        f"loss {words.figure(progress.loss, 3)}",
        f"{words.figure(progress.samples_per_second)} samples/s",
        f"share {shares(progress)}",
        tallies(snapshot.totals),
    )
    return " · ".join(parts)
