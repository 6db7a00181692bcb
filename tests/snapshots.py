"""Constructed snapshots of states that a recorded run does not have, for the pages' tests."""

from __future__ import annotations

from dataclasses import replace
from zoneinfo import ZoneInfo

from fakes import FakeLedger, make_project
from manifests import raw
from skep.core.device import ComputingDevice, Device, DeviceKind, PowerCap
from skep.core.policy.allowance import Change, PauseState
from skep.core.policy.conditions import Condition, Conditions, answered
from skep.core.policy.decision import PolicyState, grant
from skep.core.policy.device_shares import Ceiling
from skep.core.policy.rules import Facts
from skep.core.project.fit import Estimate, check, estimate
from skep.core.project.manifest import VerifiedProject
from skep.core.record.contributions import Contribution, ContributionState, Tally, Totals
from skep.core.record.timeline_segments import segments
from skep.core.record.usage import Earned, Quarter, Spent, Unit, day_of, periods, spans
from skep.core.session.phases import Phase, Stage, StageProgress, SwarmProgress
from skep.core.session.snapshot import Snapshot
from skep.core.settings.settings import DEFAULTS
from skep.core.text import NOTHING, Problem, Text
from skep.services.summary import summary
from skep_gui.words.now import History, Point
from skep_gui.words.projects import Known
from skep_gui.words.stats import Asked, Record

NOW = 1_800_000_000.0
PROJECT = make_project("tiny-code-lm", "Tiny code model", raw(sync__target_batch_size=64_000))
SEEDS = ("seed.example.org:31337", "203.0.113.7:31337")
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
    """The snapshot with the allowance and rules that follow from its conditions and pause."""
    given = grant(PolicyState(), Facts(snapshot.conditions, snapshot.settings, NOW, pause=snapshot.pause), at_once=True)
    return replace(snapshot, allowance=given.allowance, holding=given.holding)


IDLE = Snapshot(settings=dict(DEFAULTS))
JOINING = replace(
    IDLE,
    phase=Phase.JOINING,
    project=PROJECT,
    stage=StageProgress(Stage.PEERS, 0.4, Text("fit.about_s", seconds=20)),
)
AWAY = Conditions(graphical=True).with_seen(
    {
        Condition.INPUT: answered(3_600.0),
        Condition.TEMPERATURE: answered(67.0),
        Condition.POWER: answered(142.0),
        Condition.GPU_MEMORY: answered(5_400_000_000),
    }
)
TRAINING = ruled(
    replace(
        IDLE,
        phase=Phase.TRAINING,
        project=PROJECT,
        device="NVIDIA GeForce RTX 4070",
        progress=PROGRESS,
        joined=True,
        verified=True,
        totals=Totals(Tally(1, 512), Tally(37, 184_320), Tally(2, 3_072)),
        conditions=AWAY,
    )
)
SLOWED = ruled(
    replace(
        TRAINING,
        conditions=AWAY.with_seen({Condition.INPUT: answered(2.0)}),
        progress=replace(PROGRESS, share_asked=0.2, share_measured=0.19, samples_per_second=8.2),
    )
)
CARDS = {"cuda:0": "NVIDIA GeForce RTX 4070", "cuda:1": "NVIDIA GeForce RTX 3060"}
SEVERAL = replace(
    TRAINING,
    devices=tuple(
        ComputingDevice(id_, name, busy) for (id_, name), busy in zip(CARDS.items(), (1.0, 0.45), strict=True)
    ),
    conditions=AWAY.with_seen(
        {
            Condition.TEMPERATURE: answered(82.0, each={"cuda:0": 67.0, "cuda:1": 82.0}),
            Condition.POWER: answered(284.0, each={"cuda:0": 142.0, "cuda:1": 142.0}),
            Condition.GPU_MEMORY: answered(2_400_000_000, each={"cuda:0": 5_400_000_000, "cuda:1": 2_400_000_000}),
        }
    ),
    ceilings={"cuda:1": Ceiling(0.45, Text("device.kept_below", cap=80.0, share=0.45))},
    power_caps={"cuda:0": PowerCap(180.0)},
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
    stage=StageProgress(Stage.PEERS, 0.0, NOTHING),
    problem=Problem(
        Text(
            "swarm.none_project_seed_peers_answers",
            failures=tuple(Text("swarm.seed", seed=seed, failure=Text("swarm.refuses_connection")) for seed in SEEDS),
        ),
        Text("swarm.check_computer_internet_connection_firewall"),
    ),
)
LEAVING = replace(TRAINING, phase=Phase.LEAVING, leaving_until=NOW + 42)
HOSTILE = '<b>مرحبا</b> \u202e<img src="x">& 🐝🐝 ' + "A very long title that goes on " * 3

BIG = make_project(
    "big-lm",
    "A very large language model",
    raw(
        id="big-lm",
        title="A very large language model",
        summary="Six billion parameters over many languages, trained by whoever has the memory.",
        recipe__model={"type": "gpt2", "layers": 32, "heads": 32, "width": 4096, "vocabulary": 256},
        recipe__sequence_length=1024,
        sync__target_batch_size=64_000,
        needs={"memory_gb": 128, "vram_gb": 24, "disk_gb": 40, "upload_mbit": 100},
    ),
)
SECOND_CARD = Device(DeviceKind.NVIDIA, 1, "NVIDIA GeForce RTX 3060", memory_total=12_000_000_000)
DEVICES = [
    Device(DeviceKind.NVIDIA, 0, "NVIDIA GeForce RTX 4070", memory_total=12_000_000_000),
    Device(DeviceKind.AMD, 0, "AMD Radeon 780M", unusable=Text("amd.no_driver_loaded")),
    Device(DeviceKind.CPU, 0, "AMD Ryzen 7 7840U"),
]


def estimated(project: VerifiedProject) -> Estimate:
    return estimate(project.manifest, DEVICES[-1:], cores=8)


def known(project: VerifiedProject, memory: int) -> Known:
    """The project on a computer without a GPU and with `memory` bytes."""
    return Known(
        project, check(project.manifest, DEVICES[-1:], memory=memory, disk_free=10**12), estimate=estimated(project)
    )


KNOWN = [known(PROJECT, 2_600_000_000), known(BIG, 8_200_000_000)]


def history(snapshot: Snapshot = TRAINING) -> History:
    """Ten minutes: full share, slowed while the computer was in use, full again."""
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
                Text("round.no_other_peer") if each % 9 == 4 else NOTHING,
                3,
                0 if each % 9 == 4 else 64_000,
            )
            for each in range(count)
        )

    pending = Contribution("p", 129, 512, ContributionState.PENDING)
    return {"tiny-code-lm": (*many("tiny-code-lm", 38, 90), pending), "practice": many("practice", 12, 1)}


def record(unit: Unit = Unit.DAY) -> Record:
    """Two weeks of two projects, and one day with most kinds of changes."""
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
        reaction=Text("timeline.gave_your_computer_back_s", usual=0.08, reactions=20),
        now=NOW,
        zone=zone,
    )


def changes(midnight: float) -> list[Change]:
    """Changes of a day until the afternoon; `midnight` in wall clock seconds."""
    full, you = Text("rule.training_full_share"), Text("rule.share_in_use", share=0.2)
    call, battery = Text("rule.call_film_running"), Text("rule.on_battery")
    outside = Text("rule.outside_your_hours_until", until=Text("hours.today", time="16:00"))
    paused = Text("rule.paused_until", until=Text("hours.today", time="16:35"))
    told = [
        (0.0, 1.0, "away", full),
        (2.5, 0.0, "sleep", Text("timeline.computer_slept")),
        (6.7, 1.0, "away", full),
        (7.2, 0.2, "input", you),
        (7.25, 0.6, "ramp", Text("ramp.going_up_gently", target=1.0)),
        (7.26, 1.0, "away", full),
        (7.6, 0.2, "input", you),
        (8.9, 0.0, "call", call),
        (9.6, 0.2, "input", you),
        (10.2, 0.0, "battery", battery),
        (10.9, 0.2, "input", you),
        (12.1, 1.0, "away", full),
        (13.3, 0.2, "input", you),
        (15.0, 0.0, "schedule", outside),
        (16.0, 0.2, "input", you),
        (16.2, 0.0, "paused", paused),
        (16.58, 0.2, "input", you),
    ]
    return [Change(midnight + at * 3600, PROJECT.id, share, rule, reason) for at, share, rule, reason in told]
