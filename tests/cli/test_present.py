"""The text output while joined, without a terminal."""

from dataclasses import replace

import pytest
from rich.style import Style

from skep.cli.show import snapshot_view
from skep.cli.show.speech import speak
from skep.cli.show.terminal import Tone, plain
from skep.core.device import ComputingDevice, PowerCap
from skep.core.policy.allowance import Allowance
from skep.core.policy.conditions import Condition, Conditions, answered
from skep.core.policy.device_shares import Ceiling
from skep.core.project.data import Project
from skep.core.record.contributions import Evaluation, Tally, Totals
from skep.core.session.control import snapshot_of, status
from skep.core.session.phases import Phase, Stage, StageProgress, SwarmProgress
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem, Text, verbatim

THIN = "\N{THIN SPACE}"
PROJECT = Project("tiny", "Tiny code model", "tiny-0000", "ab12 cd34", 3, "")
PROGRESS = SwarmProgress(
    epoch=12, peers=3, loss=2.5, samples_per_second=40.0, share_asked=0.5, share_measured=0.487,
    samples_accumulated=412, target_batch_size=1024, compute_seconds=1.0, nap_seconds=1.0, waiting_seconds=0.5,
    bytes_sent=3_400_000, bytes_received=1_000,
)  # fmt: skip
TRAINING = Snapshot(
    phase=Phase.TRAINING,
    project=PROJECT,
    progress=PROGRESS,
    joined=True,
    allowance=Allowance(0.5, verbatim("Training at 50 %.")),
    totals=Totals(confirmed=Tally(4, 512), pending=Tally(1, 128)),
    evaluations=(Evaluation(0, 5.4), Evaluation(9, 3.25)),
)


def shown(snapshot: Snapshot, width: int = 80) -> str:
    return "\n".join(plain(line) for line in snapshot_view.panel(snapshot, 1_000.0, width))


def test_in_german_words_and_numbers_are_german() -> None:
    speak("de")
    try:
        text = shown(TRAINING)
    finally:
        speak("en")
    for part in (
        "Tiny code model  herausgegeben von ab12 cd34",
        f"Epoche 12 · 3 Peers · 412 von 1{THIN}024 Beispielen",
        "Verlust        2,500 im Training · 5,400 → 3,250 zurückgehalten",
        "Tempo          40,0 Beispiele/s",
        f"Rechenanteil   50{THIN}% verlangt · 49{THIN}% gemessen",
        "Beiträge       4 bestätigt · 1 ausstehend · 0 verloren",
        f"Verkehr        3,4{THIN}MB hinauf · 1,0{THIN}kB herunter",
    ):
        assert part in text


@pytest.mark.parametrize("width", [40, 120])
def test_another_terminal_shows_the_same(width: int) -> None:
    for snapshot in (TRAINING, replace(TRAINING, finished=verbatim("It is over."), phase=Phase.LEAVING)):
        assert shown(snapshot_of(status(snapshot)), width) == shown(snapshot, width)


@pytest.mark.parametrize("phase", [Phase.RECOVERING, Phase.PAUSED, Phase.JOINING])
def test_while_no_worker_runs_only_what_was_brought_is_shown(phase: Phase) -> None:
    text = shown(replace(TRAINING, phase=phase, progress=None, restart_at=1_012.0))
    assert "Contributions  4 confirmed · 1 pending · 0 lost" in text
    for figure in ("samples/s", "measured", "peers", "loss", "Traffic"):
        assert figure not in text


def test_a_peer_behind_a_router_is_told_that_it_is() -> None:
    assert "behind a router" not in shown(TRAINING)
    assert "accepts none" in shown(replace(TRAINING, client_mode=True))
    assert "connect through a seed" in shown(replace(TRAINING, relayed=True))


def test_samples_that_a_pause_must_wait_for_are_told() -> None:
    assert "a pause waits for it" not in shown(TRAINING)
    assert "a pause waits for it" in shown(replace(TRAINING, heavy=True))


def test_a_power_cap_that_is_refused_is_told() -> None:
    assert "power cap" not in shown(replace(TRAINING, power_caps={"cuda:0": PowerCap(watts=150.0)}))
    refused = PowerCap(refused=verbatim("The driver does not permit it."))
    assert "No power cap. The driver does not permit it." in shown(
        replace(TRAINING, power_caps={"cuda:0": refused, "cuda:1": refused})
    )


def test_each_of_several_devices_has_a_row() -> None:
    assert "Devices" not in shown(TRAINING)
    each = {"cuda:0": 71.0, "cuda:1": 80.0}
    both = replace(
        TRAINING,
        devices=(ComputingDevice("cuda:0", "RTX 4090"), ComputingDevice("cuda:1", "RTX 3090", 0.5)),
        conditions=Conditions().with_seen(
            {
                Condition.TEMPERATURE: answered(80.0, each=each),
                Condition.POWER: answered(210.0, each={"cuda:0": 210.0}),
                Condition.GPU_MEMORY: answered(9_400_000_000, each={"cuda:0": 9_400_000_000}),
            }
        ),
        ceilings={"cuda:1": Ceiling(0.1, Text("device.kept_below", cap=80.0, share=0.1))},
    )
    lines = shown(both).replace("\N{THIN SPACE}", " ").splitlines()
    (first,) = (line for line in lines if line.startswith("Devices "))
    assert first.split(maxsplit=1)[1].endswith("71 °C · 210 W · 9.4 GB free")
    (second,) = (line for line in lines if "RTX 3090" in line)
    assert second.strip().endswith("80 °C · 10 % at most, to stay below 80 °C.")


def test_training_shows_the_project_the_sentence_and_every_figure() -> None:
    text = shown(TRAINING)
    for part in (
        "Tiny code model  published by ab12 cd34",
        "Training at 50 %.",
        f"epoch 12 · 3 peers · 412 of 1{THIN}024 samples",
        "2.500 in training · 5.400 → 3.250 held out",
        "40.0 samples/s",
        f"50{THIN}% asked · 49{THIN}% measured",
        "4 confirmed · 1 pending · 0 lost",
        f"3.4{THIN}MB up · 1.0{THIN}kB down",
    ):
        assert part in text


def test_the_bar_is_as_long_as_the_epoch_is_full() -> None:
    assert plain(snapshot_view.bar(0.5, 10)) == "━━━━━─────"
    assert [plain(snapshot_view.bar(value, 4)) for value in (-1.0, 2.0, float("nan"))] == [
        "────",
        "━━━━",
        "────",
    ]


def test_joining_shows_five_stages_done_under_way_and_to_come() -> None:
    joining = Snapshot(
        phase=Phase.JOINING, project=PROJECT, stage=StageProgress(Stage.PEERS, 0.5, verbatim("1 of 2 seeds"))
    )
    lines = shown(joining).splitlines()
    marks = [line[0] for line in lines if line[:2] in ("✓ ", "→ ", "· ")]
    assert marks == ["✓", "✓", "→", "·", "·"]
    assert any("Reach the swarm" in line and "━" in line and "1 of 2 seeds" in line for line in lines)


def test_before_the_first_stage_everything_is_to_come() -> None:
    assert shown(Snapshot(phase=Phase.JOINING)).count("✓") == 0


def test_leaving_counts_down_to_the_round_where_it_waits_for_one() -> None:
    leaving = replace(TRAINING, phase=Phase.LEAVING)
    assert "Leaving the swarm." in shown(leaving)
    assert f"Leaving after the next round, in 42{THIN}s at most." in shown(replace(leaving, leaving_until=1_042.0))
    assert f"in 0{THIN}s at most" in shown(replace(leaving, leaving_until=999.0))


def test_a_finished_run_is_said_while_its_state_is_handed_over_and_after() -> None:
    leaving = replace(TRAINING, phase=Phase.LEAVING, leaving_until=1_042.0, finished=verbatim("It is finished."))
    assert f"for 42{THIN}s at most." in shown(leaving)
    assert "sends its result" in shown(leaving)
    assert "It is finished." in shown(replace(leaving, phase=Phase.IDLE, project=None, leaving_until=None))


def test_a_problem_is_shown_with_what_to_do() -> None:
    text = shown(
        replace(
            TRAINING,
            phase=Phase.RECOVERING,
            problem=Problem(verbatim("The worker ended."), verbatim("Wait.")),
            restart_at=1_030.0,
        )
    )
    assert "The worker ended.\nWait." in text
    assert f"Trying again in 30{THIN}s." in text


def test_figures_that_are_not_there_are_dashes() -> None:
    text = shown(
        replace(TRAINING, progress=replace(PROGRESS, loss=float("nan"), share_measured=None, target_batch_size=0))
    )
    assert "\N{EN DASH} in training" in text
    assert "\N{EN DASH} measured" in text


@pytest.mark.parametrize("width", [80, 60, 40, 30])
def test_bars_fit_narrow_terminals(width: int) -> None:
    joining = Snapshot(phase=Phase.JOINING, stage=StageProgress(Stage.STATE, 0.3))
    for snapshot in (TRAINING, joining):
        for line in snapshot_view.panel(snapshot, 0.0, width):
            if "━" in plain(line) or "─" in plain(line):
                assert len(plain(line)) <= width


@pytest.mark.parametrize("phase", list(Phase))
def test_every_phase_has_one_calm_sentence(phase: Phase) -> None:
    sentence = snapshot_view.sentence(replace(TRAINING, phase=phase), 0.0)
    assert sentence.endswith(".")
    assert "!" not in sentence


def test_a_state_that_is_loaded_while_training_is_said_instead() -> None:
    text = Text("state.loading_at", received=2_000_000, total=8_000_000, rate=500_000, left=12.0)
    loading = replace(TRAINING, stage=StageProgress(Stage.STATE, 0.25, text), waiting=Text("wait.swarm"))
    sentence = snapshot_view.sentence(loading, 0.0)
    words = "Load the model's state: 2.0 MB of 8.0 MB, 500.0 kB/s, 12 s left."
    assert sentence.replace(THIN, " ") == words


def test_a_wait_is_said_instead_of_training() -> None:
    waiting = replace(TRAINING, waiting=Text("wait.swarm"))
    words = "Nothing was trained for a minute: waiting for the swarm's round or its state."
    assert snapshot_view.sentence(waiting, 0.0) == words
    assert "Training" not in shown(waiting)


def test_a_break_after_failures_says_when_it_ends() -> None:
    resting = replace(TRAINING, phase=Phase.PAUSED, restart_at=30.0)
    assert snapshot_view.sentence(resting, 0.0) == f"Trying again in 30{THIN}s."


def test_the_farewell_counts_contributions_and_samples() -> None:
    assert snapshot_view.farewell(Totals(confirmed=Tally(5, 1280), lost=Tally(1, 64))) == (
        f"Left the swarm. Contributions: 5 confirmed (1{THIN}280 samples), 1 lost (64 samples)."
    )


def test_one_line_of_progress_for_a_log() -> None:
    line = snapshot_view.update(TRAINING)
    assert "epoch 12" in line
    assert "loss 2.500" in line
    assert "\n" not in line


@pytest.mark.parametrize("tone", Tone)
def test_every_tone_is_a_style(tone: Tone) -> None:
    assert str(Style.parse(tone)) == tone
