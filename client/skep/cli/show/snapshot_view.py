"""The display of a Snapshot as lines of toned text. Pure; prints nothing."""

from __future__ import annotations

from typing import Final

from skep.cli.show.speech import numbers, say, tr
from skep.cli.show.terminal import Line, Span, Tone
from skep.core.device import refusals
from skep.core.record.contributions import Tally, Totals
from skep.core.session import phases, timeline
from skep.core.session.devices import DeviceState, device_states
from skep.core.session.phases import Phase, Stage, StageProgress, SwarmProgress
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem
from skep.language import units

NARROW: Final = 60
"""Columns; below this the bars move to a line of their own."""
_BAR: Final = 24
_LABEL: Final = 14


def panel(snapshot: Snapshot, now: float, width: int) -> list[Line]:
    """Everything to show, top to bottom. `now` is wall-clock seconds, `width` columns."""
    blocks = [_title(snapshot)]
    if snapshot.phase in (Phase.JOINING, Phase.RECOVERING):
        blocks.append(checklist(snapshot.stage, width))
    blocks.append([(Span(sentence(snapshot, now), _tone(snapshot)),)])
    if snapshot.joined and snapshot.project is not None:
        blocks.append(_figures(snapshot, width))
    if snapshot.phase in (Phase.TRAINING, Phase.PAUSED) and rules(snapshot):
        blocks.append(rules(snapshot))
    if snapshot.problem is not None:
        blocks.append(_problem(snapshot.problem))
    return [line for block in blocks for line in ((Span(""),), *block)][1:]


def _title(snapshot: Snapshot) -> list[Line]:
    if snapshot.project is None:
        return [(Span("skep", Tone.STRONG),)]
    project = snapshot.project
    published = tr("published by {fingerprint}", fingerprint=project.fingerprint)
    return [(Span(project.title, Tone.STRONG), Span(f"  {published}", Tone.SOFT))]


def _problem(problem: Problem) -> list[Line]:
    title: Line = (Span(say(problem.title), Tone.EMBER),)
    return [title, (Span(say(problem.hint), Tone.SOFT),)] if problem.hint else [title]


def checklist(current: StageProgress | None, width: int) -> list[Line]:
    """The five stages: done, under way with a bar, and still to come."""
    order = list(Stage)
    position = order.index(current.stage) if current is not None else 0
    lines: list[Line] = []
    for index, stage in enumerate(order):
        if index < position:
            lines.append((Span("✓ ", Tone.LEAF), Span(say(stage.label))))
        elif index == position:
            lines.extend(_under_way(stage, current, width))
        else:
            lines.append((Span("· ", Tone.SOFT), Span(say(stage.label), Tone.SOFT)))
    return lines


def _under_way(stage: Stage, current: StageProgress | None, width: int) -> list[Line]:
    fraction = current.fraction if current is not None else 0.0
    detail = f"  {say(current.detail)}" if current is not None and current.detail else ""
    name: Line = (Span("→ ", Tone.HONEY), Span(say(stage.label), Tone.STRONG))
    if width < NARROW:
        return [name, (Span("  "), *bar(fraction, min(_BAR, width - 4)), Span(detail, Tone.SOFT))]
    gap = " " * max(2, _BAR - len(say(stage.label)))
    return [(*name, Span(gap), *bar(fraction, _BAR), Span(detail, Tone.SOFT))]


def bar(fraction: float, cells: int, tone: Tone = Tone.HONEY) -> Line:
    """A progress bar of `cells` columns; a fraction outside 0..1 is drawn at the end it passed."""
    cells = max(1, cells)
    full = round(min(1.0, max(0.0, fraction)) * cells) if fraction == fraction else 0  # noqa: PLR0124 - NaN is 0 cells
    return (Span("━" * full, tone), Span("─" * (cells - full), Tone.SOFT))


def sentence(snapshot: Snapshot, now: float) -> str:
    """The one sentence that says what is happening and why."""
    match snapshot.phase:
        case Phase.IDLE:
            return say(snapshot.finished) if snapshot.finished else tr("Not joined.")
        case Phase.JOINING:
            return tr("Joining the swarm.")
        case Phase.PAUSED if snapshot.on_a_break:
            return say(phases.restarting(snapshot.restart_at, now))
        case Phase.TRAINING if snapshot.stage is not None:
            return f"{say(snapshot.stage.stage.label)}: {say(snapshot.stage.detail)}."
        case Phase.TRAINING | Phase.PAUSED:
            return say(snapshot.waiting) or reason(snapshot)
        case Phase.RECOVERING:
            return say(phases.restarting(snapshot.restart_at, now))
        case Phase.LEAVING:
            finished, saving = bool(snapshot.finished), snapshot.saving
            return say(phases.leaving(snapshot.leaving_until, now, finished=finished, saving=saving))


def reason(snapshot: Snapshot) -> str:
    """Why the share is what it is."""
    return say(snapshot.allowance.reason)


def rules(snapshot: Snapshot) -> list[Line]:
    """The other rules that hold, and how quickly giving back went; nothing where one rule holds alone."""
    others = [say(each.allowance.reason) for each in snapshot.holding[1:] if each.rule != "away"]
    others += [tr("No power cap. {why}", why=each) for each in refusals(snapshot.power_caps.values())]
    held = [_row(tr("Also") if number == 0 else "", text) for number, text in enumerate(others)]
    reacted = timeline.sentence(snapshot.reactions)
    return [*held, *([_row(tr("Give-back"), say(reacted))] if reacted else [])]


def _tone(snapshot: Snapshot) -> Tone:
    match snapshot.phase:
        case Phase.TRAINING:
            return Tone.HONEY if snapshot.waiting else Tone.LEAF
        case Phase.JOINING | Phase.LEAVING:
            return Tone.HONEY
        case Phase.RECOVERING:
            return Tone.EMBER
        case Phase.IDLE | Phase.PAUSED:
            return Tone.SLATE


def _figures(snapshot: Snapshot, width: int) -> list[Line]:
    """What this stay has brought, and while a worker runs how its training goes."""
    progress, contributions = snapshot.progress, _row(tr("Contributions"), tallies(snapshot.totals))
    if progress is None:
        return [contributions]
    client = tr("behind a router: makes connections, accepts none")
    relayed = tr("behind a router: others connect through a seed")
    heavy = tr("one takes longer than 0.05 s, and a pause waits for it")
    return [
        *_epoch(progress, width),
        _row(tr("Loss"), loss(snapshot)),
        _row(tr("Speed"), speed(progress)),
        _row(tr("Compute share"), shares(progress)),
        contributions,
        _row(tr("Traffic"), traffic(progress.bytes_sent, progress.bytes_received)),
        *([_row(tr("Network"), client)] if snapshot.client_mode else []),
        *([_row(tr("Network"), relayed)] if snapshot.relayed else []),
        *([_row(tr("Samples"), heavy)] if snapshot.heavy else []),
        *devices(snapshot),
    ]


def devices(snapshot: Snapshot) -> list[Line]:
    """Each of several devices, as "RTX 4090 · 64 % · 71 °C · 210 W · 9.4 GB free"."""
    return [
        _row(tr("Devices") if number == 0 else "", _device(each)) for number, each in enumerate(device_states(snapshot))
    ]


def _device(state: DeviceState) -> str:
    parts = (
        state.name,
        None if state.share is None else units.percent(state.share),
        None if state.celsius is None else units.whole(state.celsius, "°C"),
        None if state.watts is None else units.whole(state.watts, "W"),
        None if state.memory_free is None else tr("{size} free", size=numbers().size(int(state.memory_free))),
        say(state.held_back) or None,
    )
    return " · ".join(part for part in parts if part is not None)


def _row(label: str, text: str) -> Line:
    return (Span(label.ljust(_LABEL), Tone.SOFT), Span(" "), Span(text))


def _epoch(progress: SwarmProgress, width: int) -> list[Line]:
    fraction = progress.samples_accumulated / progress.target_batch_size if progress.target_batch_size > 0 else 0.0
    done = bar(fraction, min(_BAR, width - 2))
    text = Span(epoch(progress))
    if width < NARROW + _BAR - _LABEL:
        return [(text,), done]
    return [(*done, Span("  "), text)]


def epoch(progress: SwarmProgress) -> str:
    """As "epoch 12 · 3 peers · 412 of 1 024 samples"."""
    done, target = units.number(progress.samples_accumulated), units.number(progress.target_batch_size)
    number, peers = tr("epoch {epoch:number}", epoch=progress.epoch), tr("{count:number} peers", count=progress.peers)
    return " · ".join((number, peers, tr("{done} of {target} samples", done=done, target=target)))


def loss(snapshot: Snapshot) -> str:
    """Training loss, and the held-out loss first → last where it was measured."""
    training = snapshot.progress.loss if snapshot.progress is not None else None
    text = tr("{loss} in training", loss=numbers().figure(training, 3))
    if not snapshot.evaluations:
        return text
    first, last = snapshot.evaluations[0].loss, snapshot.evaluations[-1].loss
    measured = numbers().figure(last, 3) if len(snapshot.evaluations) == 1 else first_to_last(first, last)
    return " · ".join((text, tr("{loss} held out", loss=measured)))


def first_to_last(first: float | None, last: float | None) -> str:
    return f"{numbers().figure(first, 3)} → {numbers().figure(last, 3)}"


def speed(progress: SwarmProgress) -> str:
    return tr("{rate} samples/s", rate=numbers().figure(progress.samples_per_second))


def shares(progress: SwarmProgress) -> str:
    asked, measured = units.percent(progress.share_asked), units.percent(progress.share_measured)
    return tr("{asked} asked · {measured} measured", asked=asked, measured=measured)


def tallies(totals: Totals) -> str:
    """As "4 confirmed · 1 pending · 0 lost"."""
    return tr(
        "{confirmed:number} confirmed · {pending:number} pending · {lost:number} lost",
        confirmed=totals.confirmed.contributions,
        pending=totals.pending.contributions,
        lost=totals.lost.contributions,
    )


def traffic(sent: int, received: int) -> str:
    return tr("{sent} up · {received} down", sent=numbers().size(sent), received=numbers().size(received))


def samples(counted: Tally) -> str:
    """As "1 280 samples"."""
    return tr("{count:number} samples", count=counted.samples)


def farewell(totals: Totals) -> str:
    """The last sentence of a run."""
    confirmed, lost, pending = totals.confirmed, totals.lost, totals.pending
    parts = [
        tr("{number:number} confirmed ({samples})", number=confirmed.contributions, samples=samples(confirmed)),
        tr("{number:number} lost ({samples})", number=lost.contributions, samples=samples(lost)),
    ]
    if pending.contributions:
        parts.append(tr("{number:number} pending ({samples})", number=pending.contributions, samples=samples(pending)))
    return tr("Left the swarm. Contributions: {parts}.", parts=tuple(parts))


def update(snapshot: Snapshot) -> str:
    """The swarm's progress in one line, where there is no terminal to redraw."""
    progress = snapshot.progress
    if progress is None:
        return sentence(snapshot, 0.0)
    parts = (
        epoch(progress),
        tr("loss {loss}", loss=numbers().figure(progress.loss, 3)),
        speed(progress),
        tr("share {shares}", shares=shares(progress)),
        tallies(snapshot.totals),
    )
    return " · ".join(parts)
