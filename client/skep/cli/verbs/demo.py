"""The verb `demo`: starts a practice swarm, joins it like any project, and prints a report."""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from skep import bootstrap
from skep.adapters.storage.paths import Home
from skep.cli.interrupt import INTERRUPTED, Interrupts
from skep.cli.parser import Context, Verbs
from skep.cli.show import snapshot_view
from skep.cli.show.renderers import renderer_for
from skep.cli.show.speech import tr
from skep.cli.verbs.join import Course, Ending, Goal, Run, known, remarks
from skep.cli.verbs.packs import got
from skep.core.record.contributions import Tally, Totals
from skep.core.session.messages import Join
from skep.core.text import Problem, Text
from skep.host.practice.process import PracticeProcess

GOAL: Final = Goal(confirmed=5, loss_ratio=0.8)
LIMIT: Final = 210.0
"""Seconds of the whole demo until it leaves, whatever was reached; under 4 minutes with the farewell."""
DEVOTED: Final = {
    "compute.share_using": 1.0,
    "when.battery_pause": False,
    "when.call_pause": False,
    "when.full_screen_pause": False,
}
"""Settings of the demo's own home: the user is at the computer, so training would otherwise be reduced."""
POLITE: Final = 8.0
"""Seconds the practice swarm may take to end by itself."""
HURRIED: Final = 0.4
"""The same after Ctrl-C, counted from when this computer has left."""


def add(verbs: Verbs) -> None:
    verbs.verb("demo", _demo, tr("try skep: start a practice swarm, join it, and print a report"))


def _demo(context: Context, _arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="skep-demo-"))
    own = Context(context.terminal, Home(root / "home"), context.environ)
    pack = got(context)
    swarm = PracticeProcess(own.home.root, root / "run", own.environ, pack)
    with Interrupts(swarm.ask) as interrupts:
        try:
            return _in_home(own, pack, swarm, interrupts, started)
        finally:
            swarm.end(HURRIED if interrupts.asked else POLITE)
            shutil.rmtree(root, ignore_errors=True)


def _in_home(own: Context, pack: Path | None, swarm: PracticeProcess, interrupts: Interrupts, started: float) -> int:
    own.home.create()
    bootstrap.settings(own.home).save({**DEVOTED})
    own.terminal.note(tr("The demo has a home of its own, {folder}, and removes it at the end.", folder=own.home.root))
    own.terminal.note(tr("Starting a practice swarm on this computer …"))
    swarm.start()
    manifest = swarm.manifest(lambda: interrupts.asked)
    if manifest is None:
        return INTERRUPTED
    with bootstrap.hold(own.home):
        project = known(own, str(manifest))
        remarks(own, project)
        join = Join(project)
        with bootstrap.build(own.home, join, packed=lambda: pack) as engine:
            ending = Ending(goal=GOAL, total_seconds=LIMIT - (time.monotonic() - started))
            run = Run(engine, renderer_for(own.terminal), ending)
            code = run.go(join, interrupts)
    return INTERRUPTED if interrupts.asked else _report(own, run, code)


def _report(own: Context, run: Run, code: int) -> int:
    report = Report(run.course, run.snapshot.totals)
    own.terminal.show({"event": "report"} | report.body(), ["", *report.lines()])
    shortfall = report.shortfall(GOAL)
    if shortfall is None:
        return code
    own.terminal.problem(shortfall)
    return 1


@dataclass(frozen=True)
class Report:
    """What the demo shows at the end. Losses in nats per token, on the held-out shard."""

    course: Course
    totals: Totals

    @property
    def first_and_last(self) -> tuple[float | None, float | None]:
        losses = self.course.losses
        return (losses[0], losses[-1]) if losses else (None, None)

    def body(self) -> dict[str, Any]:
        first, last = self.first_and_last
        course = {name: getattr(self.course, name) for name in ("bytes_sent", "bytes_received", "peers", "confirmed")}
        losses = {"first_loss": first, "last_loss": last, "loss_ratio": self.course.loss_ratio}
        return losses | {"totals": asdict(self.totals)} | course

    def lines(self) -> list[str]:
        course, totals = self.course, self.totals
        loss = snapshot_view.first_to_last(*self.first_and_last)
        if course.loss_ratio is not None:
            loss = tr("{loss} ({ratio:.2f} of the first)", loss=loss, ratio=course.loss_ratio)
        rows = (
            (tr("Held-out loss"), loss),
            (tr("Confirmed"), _epochs(totals.confirmed)),
            (tr("Pending"), _epochs(totals.pending)),
            (tr("Lost"), _epochs(totals.lost)),
            (tr("Averaged with"), tr("{count:number} other peers", count=course.peers)),
            (tr("Traffic"), snapshot_view.traffic(course.bytes_sent, course.bytes_received)),
        )
        return [f"{label:<15}{text}" for label, text in rows]

    def shortfall(self, goal: Goal) -> Problem | None:
        """Why the demo did not show what it set out to show; None when it did."""
        if self.course.confirmed < goal.confirmed:
            title = Text("demo.too_few_epochs", count=self.course.confirmed, goal=goal.confirmed)
        elif not self.course.reached(goal):
            title = Text("demo.loss_did_not_fall", ratio=goal.loss_ratio)
        else:
            return None
        return Problem(title, Text("demo.busy_computer_usual_reason_close"))


def _epochs(tally: Tally) -> str:
    epochs = tr("{count:number} epochs", count=tally.contributions)
    return f"{epochs} ({snapshot_view.samples(tally)})"
