"""Snapshots as a person would meet them, for the pages' tests and for their pictures."""

from __future__ import annotations

import json
from dataclasses import replace

from fakes import make_project
from manifests import example
from skep.core.conditions import Conditions, answered
from skep.core.estimate import Estimate, estimate
from skep.core.fit import Fit, Verdict
from skep.core.grades import Grades, grant
from skep.core.manifest import parse
from skep.core.model import (
    Contribution,
    ContributionState,
    Device,
    DeviceKind,
    PauseState,
    Phase,
    Problem,
    Project,
    Stage,
    StageProgress,
    SwarmProgress,
    Tally,
    Totals,
)
from skep.core.rules import Facts
from skep.core.settings import DEFAULTS
from skep.core.snapshot import Snapshot
from skep_gui.history import History, Point
from skep_gui.present.projects import Known
from skep_gui.present.stats import Record

NOW = 1_800_000_000.0
PROJECT = replace(make_project("tiny-code-lm", "Tiny code model"), manifest=json.dumps(example()))
PROGRESS = SwarmProgress(
    epoch=128,
    peers=3,
    loss=2.417,
    samples_per_second=41.3,
    share_asked=1.0,
    share_measured=0.98,
    samples_accumulated=41_200,
    target_batch_size=64_000,
    compute_seconds=100.0,
    nap_seconds=2.0,
    waiting_seconds=3.0,
    bytes_sent=120_000_000,
    bytes_received=180_000_000,
)


def ruled(snapshot: Snapshot) -> Snapshot:
    """With the allowance and the rules that its own conditions and pause give it."""
    given = grant(Grades(), Facts(snapshot.conditions, snapshot.settings, NOW, pause=snapshot.pause), at_once=True)
    return replace(snapshot, allowance=given.allowance, holding=given.holding)


IDLE = Snapshot(settings=dict(DEFAULTS))
JOINING = replace(
    IDLE, phase=Phase.JOINING, project=PROJECT, stage=StageProgress(Stage.PEERS, 0.4, "2 of 5 addresses tried")
)
AWAY = Conditions(
    graphical=True,
    input=answered(3_600.0),
    temperature=answered(67.0),
    power=answered(142.0),
    gpu_memory=answered(5_400_000_000),
)
TRAINING = ruled(
    replace(
        IDLE,
        phase=Phase.TRAINING,
        project=PROJECT,
        device="NVIDIA GeForce RTX 4070",
        progress=PROGRESS,
        joined=True,
        totals=Totals(Tally(1, 512), Tally(37, 184_320), Tally(2, 3_072)),
        conditions=AWAY,
    )
)
SLOWED = ruled(
    replace(
        TRAINING,
        conditions=replace(AWAY, input=answered(2.0)),
        progress=replace(PROGRESS, share_asked=0.2, share_measured=0.19, samples_per_second=8.2),
    )
)
PAUSED = ruled(
    replace(
        TRAINING,
        phase=Phase.PAUSED,
        pause=PauseState(NOW + 3600),
        progress=replace(PROGRESS, share_asked=0.0, share_measured=0.0, samples_per_second=0.0),
    )
)
RECOVERING = replace(
    TRAINING,
    phase=Phase.RECOVERING,
    restart_at=NOW + 12,
    stage=StageProgress(Stage.PEERS, 0.0, ""),
    problem=Problem(
        "None of the swarm's 2 addresses could be reached.",
        "skep keeps trying. Check the network, or ask the publisher whether the seeds run.",
    ),
)
LEAVING = replace(TRAINING, phase=Phase.LEAVING, leaving_until=NOW + 42)
HOSTILE = '<b>مرحبا</b> \u202e<img src="x">& 🐝🐝 ' + "A very long title that goes on " * 3

BIG = replace(
    make_project("big-lm", "A very large language model"),
    manifest=json.dumps(
        example(
            id="big-lm",
            title="A very large language model",
            summary="Seven billion parameters over many languages, trained by whoever has the memory.",
        )
    ),
)
DEVICES = [
    Device(DeviceKind.NVIDIA, 0, "NVIDIA GeForce RTX 4070", memory_total=12_000_000_000),
    Device(DeviceKind.AMD, 0, "AMD Radeon 780M", unusable="torch here was built without ROCm."),
    Device(DeviceKind.CPU, 0, "AMD Ryzen 7 7840U"),
]


def estimated(project: Project) -> Estimate:
    return estimate(parse(project.manifest.encode()), DEVICES[-1:], cores=8)


KNOWN = [
    Known(
        PROJECT,
        Fit(Verdict.FITS_GENTLY, ("It needs 2.0 GB of memory, and you have 2.6 GB.",)),
        estimate=estimated(PROJECT),
    ),
    Known(BIG, Fit(Verdict.TOO_BIG, ("Too big: needs 96 GB of memory, you have 8.2 GB.",)), estimate=estimated(BIG)),
]


def history(snapshot: Snapshot = TRAINING) -> History:
    """Ten minutes: full share, slowed while somebody was there, full again."""
    made = History()
    assert snapshot.progress is not None
    for second in range(0, 600, 2):
        slowed = 200 < second < 360
        share = 0.2 if slowed else 0.98
        wave = 1 + 0.06 * ((second * 7919) % 13 - 6) / 6
        made.points.append(Point(NOW - 600 + second, 41.0 * share * wave, share))
    return made


def record() -> Record:
    def many(project: str, count: int, start: int) -> tuple[Contribution, ...]:
        return tuple(
            Contribution(
                f"{project}{start + each}",
                start + each,
                4_864,
                ContributionState.LOST if each % 9 == 4 else ContributionState.CONFIRMED,
                "no other peer" if each % 9 == 4 else "",
                3,
            )
            for each in range(count)
        )

    pending = Contribution("p", 129, 512, ContributionState.PENDING)
    return Record({"tiny-code-lm": (*many("tiny-code-lm", 38, 90), pending), "practice": many("practice", 12, 1)})
