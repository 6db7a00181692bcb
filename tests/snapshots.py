"""Snapshots as a person would meet them, for the pages' tests and for their pictures."""

from __future__ import annotations

import json
from dataclasses import replace
from zoneinfo import ZoneInfo

from fakes import FakeLedger, make_project
from manifests import example
from skep.core.conditions import Conditions, answered
from skep.core.day import segments
from skep.core.estimate import Estimate, estimate
from skep.core.fit import Fit, Verdict
from skep.core.grades import Grades, grant
from skep.core.manifest import parse
from skep.core.model import (
    Change,
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
from skep.core.periods import Unit, day_of, periods, spans
from skep.core.rules import Facts
from skep.core.settings import DEFAULTS
from skep.core.snapshot import Snapshot
from skep.core.usage import Earned, Quarter, Spent
from skep.summary import summary
from skep_gui.history import History, Point
from skep_gui.present.projects import Known
from skep_gui.present.stats import Asked, Record
from skep_gui.present.updates import Stage as UpdateStage
from skep_gui.present.updates import Update

NOW = 1_800_000_000.0
PROJECT = replace(
    make_project("tiny-code-lm", "Tiny code model"), manifest=json.dumps(example(sync__target_batch_size=64_000))
)
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
            summary="Six billion parameters over many languages, trained by whoever has the memory.",
            recipe__model={"type": "gpt2", "layers": 32, "heads": 32, "width": 4096, "vocabulary": 256},
            recipe__sequence_length=1024,
            sync__target_batch_size=64_000,
            needs={"memory_gb": 128, "vram_gb": 24, "disk_gb": 40, "upload_mbit": 100},
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
    Known(BIG, Fit(Verdict.TOO_BIG, ("Too big: needs 284 GB of memory, you have 8.2 GB.",)), estimate=estimated(BIG)),
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


def contributions() -> dict[str, tuple[Contribution, ...]]:
    def many(project: str, count: int, start: int) -> tuple[Contribution, ...]:
        return tuple(
            Contribution(
                f"{project}{start + each}",
                start + each,
                4_864,
                ContributionState.LOST if each % 9 == 4 else ContributionState.CONFIRMED,
                "no other peer" if each % 9 == 4 else "",
                3,
                0 if each % 9 == 4 else 64_000,
            )
            for each in range(count)
        )

    pending = Contribution("p", 129, 512, ContributionState.PENDING)
    return {"tiny-code-lm": (*many("tiny-code-lm", 38, 90), pending), "practice": many("practice", 12, 1)}


def record(unit: Unit = Unit.DAY) -> Record:
    """Two weeks of two projects, and a day with most of what can happen on one."""
    ledger, zone = FakeLedger(), ZoneInfo("Asia/Tokyo")
    for project, rows in contributions().items():
        for each in rows:
            ledger.record(project, each)
    asked = spans(unit, NOW, zone)
    quarters = [
        Quarter(
            ("practice", "tiny-code-lm")[place > 2],
            begin,
            Spent(4_000.0, trained, 0.8 * trained, 130 * trained, trained),
        )
        for place, (begin, trained) in enumerate(
            (begin, 300.0 * ((place * 7919) % 11) + 60.0) for place, (begin, _) in enumerate(asked)
        )
    ]
    for quarter in quarters:
        ledger.add_usage(quarter)
    earned = [
        Earned(each.project, each.begin, state, Tally(1, round(each.spent.training * part)))
        for place, each in enumerate(quarters)
        for state, part in ((ContributionState.CONFIRMED, 6.0), (ContributionState.LOST, 1.5 * (place % 3 == 1)))
    ]
    day = day_of(NOW, zone)
    return Record(
        projects={project: summary(ledger, project) for project in ledger.projects()},
        whole=summary(ledger),
        asked=Asked(unit),
        past=periods(asked, quarters, earned),
        day=day,
        segments=segments(changes(day[0]), day[0], NOW),
        reaction="Gave your computer back in 0.08 s (last 20).",
        now=NOW,
        zone=zone,
    )


def changes(midnight: float) -> list[Change]:
    """Those of a day until the afternoon; `midnight` in wall clock seconds."""
    full, you = "Training at full share.", "20 % while you use this computer."
    told = [
        (0.0, 1.0, "away", full),
        (2.5, 0.0, "sleep", "This computer slept."),
        (6.7, 1.0, "away", full),
        (7.2, 0.2, "input", you),
        (7.25, 0.6, "ramp", "Up gently."),
        (7.26, 1.0, "away", full),
        (7.6, 0.2, "input", you),
        (8.9, 0.0, "call", "A call or film is running."),
        (9.6, 0.2, "input", you),
        (10.2, 0.0, "battery", "On battery."),
        (10.9, 0.2, "input", you),
        (12.1, 1.0, "away", full),
        (13.3, 0.2, "input", you),
        (15.0, 0.0, "schedule", "Outside your hours, back at 16:00."),
        (16.0, 0.2, "input", you),
        (16.2, 0.0, "paused", "Paused until 16:35."),
        (16.58, 0.2, "input", you),
    ]
    return [Change(midnight + at * 3600, PROJECT.id, share, rule, reason) for at, share, rule, reason in told]


DIAGNOSTICS_EXPLAINED = (
    "What somebody who helps you needs to know. Addresses, keys and your name are masked; nothing is sent anywhere. "
    "Read it before you pass it on."
)
DIAGNOSTICS = """== skep diagnostics
Made 2027-01-15 08:00 UTC. Read it before you pass it on; it is plain text.

== Versions
skep 0.1.0
Python 3.11.7 (source)
Linux 6.8.0 x86_64
torch 2.13.0
hivemind 1.1.12

== State
phase recovering, share 1.00: Training at full share.
problem: None of the swarm's 2 addresses could be reached. skep keeps trying.

== Devices
nvidia:0 NVIDIA GeForce RTX 4070, memory 11200000000 of 12000000000 B free, driver 570.86, 41.0 °C, 18.0 W, usable

== Projects and the way to them
tiny-code-lm revision 1, key AB12 CD34
  seed 1: dns4, tcp 443: answers, in 34 ms
  seed 2: ip4, tcp 31337: no answer within 3 s
  data: https, port 443: answers, in 41 ms

== Log: worker.log
2027-01-15T07:59:02.118Z INFO network: seed 2 of 2 at [address] does not answer
"""
UPDATE = Update(
    UpdateStage.FOUND,
    "0.2.0",
    "Joins twice as fast.\nFixes a pause that was forgotten when the computer was started anew.",
)
