"""The words of the page Now and of the tray, without Qt."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

import snapshots as shots
from skep.core.policy.allowance import Allowance, PauseState
from skep.core.policy.conditions import Conditions
from skep.core.session.losses import Losses
from skep.core.session.phases import Phase, Stage, StageProgress
from skep.core.text import NOTHING, Text, verbatim
from skep.language import units
from skep_gui.words.mark import Look, State, look, quarters
from skep_gui.words.now import History, Now, StageState, joining_progress, shortened, title, tomorrow

NOW = Now()
WAITING = "Nothing was trained for a minute: waiting for training data."


@pytest.mark.parametrize(
    ("snapshot", "sentence"),
    [
        (shots.IDLE, "Not in a project."),
        (replace(shots.IDLE, pause=PauseState()), "Not in a project, and paused."),
        (shots.JOINING, "Joining Tiny code model."),
        (shots.TRAINING, "Training at full share."),
        (shots.SLOWED, "20 % while you use this computer."),
        (replace(shots.PAUSED, pause=PauseState()), "Paused until you resume."),
        (replace(shots.TRAINING, waiting=Text("wait.data")), WAITING),
        (replace(shots.PAUSED, pause=None, restart_at=shots.NOW + 12), "Trying again in 12\u2009s."),
        (shots.RECOVERING, "Trying again in 12\u2009s."),
        (replace(shots.RECOVERING, restart_at=None), "Trying again."),
        (shots.LEAVING, "Leaving after the next round, in 42\u2009s at most."),
        (replace(shots.LEAVING, leaving_until=None), "Leaving the swarm."),
        (replace(shots.IDLE, finished=verbatim("The model is finished.")), "The model is finished."),
    ],
)
def test_one_sentence_says_what_happens_and_why(snapshot, sentence):
    assert NOW.sentence(snapshot, shots.NOW) == sentence


def test_a_pause_says_when_it_ends_on_this_computers_clock():
    until = datetime.fromtimestamp(shots.NOW + 3600, tz=UTC).astimezone().strftime("%H:%M")
    assert NOW.sentence(shots.PAUSED, shots.NOW) == f"Paused until {until}."


def test_the_tray_names_the_project_once():
    assert NOW.first_line(shots.TRAINING, shots.NOW) == "Tiny code model: Training at full share."
    waiting = replace(shots.TRAINING, waiting=Text("wait.data"))
    assert NOW.first_line(waiting, shots.NOW) == f"Tiny code model: {WAITING}"
    assert NOW.first_line(shots.JOINING, shots.NOW) == "Joining Tiny code model."
    assert NOW.first_line(shots.IDLE, shots.NOW) == "Not in a project."


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (shots.IDLE, Look(State.IDLE)),
        (replace(shots.IDLE, problem=shots.RECOVERING.problem), Look(State.PROBLEM)),
        (shots.JOINING, Look(State.JOINING, 3)),
        (replace(shots.JOINING, stage=None), Look(State.JOINING, 1)),
        (replace(shots.JOINING, stage=StageProgress(Stage.STATE, 0.5)), Look(State.JOINING, 4)),
        (shots.TRAINING, Look(State.TRAINING, 4)),
        (shots.SLOWED, Look(State.SLOWED, 1)),
        (shots.PAUSED, Look(State.PAUSED)),
        (replace(shots.PAUSED, restart_at=shots.NOW), Look(State.PROBLEM)),
        (shots.RECOVERING, Look(State.PROBLEM)),
        (shots.LEAVING, Look(State.PAUSED)),
        (replace(shots.TRAINING, allowance=Allowance(0.0, NOTHING)), Look(State.PAUSED)),
        (replace(shots.TRAINING, saving=True), Look(State.PAUSED)),
        (replace(shots.TRAINING, waiting=Text("wait.swarm")), Look(State.PAUSED)),
        (replace(shots.TRAINING, waiting=Text("wait.no_answer")), Look(State.PROBLEM)),
        (replace(shots.TRAINING, waiting=Losses(10, Text("round.round_failed")).sentence), Look(State.PROBLEM)),
    ],
)
def test_the_mark_shows_the_state(snapshot, expected):
    assert look(snapshot) == expected


@pytest.mark.parametrize(
    ("share", "bands"), [(0.0, 0), (0.01, 1), (0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (0.76, 4), (1.0, 4)]
)
def test_bands_are_quarters(share, bands):
    assert quarters(share) == bands


def test_the_epoch_line_counts_in_thousands_where_there_are_many():
    bar = NOW.epoch(shots.TRAINING)
    assert bar.text == "epoch 128 · 3 peers · 41 of 64 thousand samples"
    assert bar.fraction == pytest.approx(41.2 / 64)


def test_the_epoch_line_counts_single_samples_where_there_are_few():
    few = replace(shots.PROGRESS, peers=1, samples_accumulated=412, target_batch_size=1024)
    assert NOW.epoch(replace(shots.TRAINING, progress=few)).text == "epoch 128 · 1 peer · 412 of 1\u2009024 samples"


@pytest.mark.parametrize(("done", "target", "fraction"), [(5, 0, 0.0), (200, 100, 1.0), (-1, 100, 0.0)])
def test_a_strange_epoch_stays_within_its_bar(done, target, fraction):
    strange = replace(shots.PROGRESS, samples_accumulated=done, target_batch_size=target)
    assert NOW.epoch(replace(shots.TRAINING, progress=strange)).fraction == fraction


def test_four_figures_with_units():
    confirmed, speed, device, peers = NOW.figures(shots.TRAINING)
    assert (confirmed.value, confirmed.below) == ("184\u2009320", "512\u00a0pending · 3\u2009072\u00a0lost")
    assert (speed.value, speed.below) == ("41.3", "loss 2.42")
    assert (device.value, device.below) == ("67\u2009°C", "142\u2009W · 5.4\u2009GB free")
    assert (peers.value, peers.below) == ("3", "direct")
    assert Now().figures(replace(shots.TRAINING, verified=False))[3].below == "direct, not verified"


def test_what_is_not_measured_is_a_dash_or_the_devices_name():
    _, speed, device, peers = NOW.figures(shots.IDLE)
    assert (speed.value, device.value, peers.value) == (units.MISSING,) * 3
    unread = replace(shots.TRAINING, conditions=Conditions(), client_mode=True)
    _, _, device, peers = NOW.figures(unread)
    assert (device.value, device.below) == ("NVIDIA GeForce RTX 4070", "")
    assert peers.below == "through a router, outgoing only"
    assert NOW.figures(replace(shots.TRAINING, relayed=True))[3].below == "through a seed"


@pytest.mark.parametrize("snapshot", [shots.LEAVING, replace(shots.TRAINING, saving=True)])
def test_while_leaving_or_saving_nothing_is_asked_for(snapshot):
    assert (NOW.share(snapshot), NOW.share_below(snapshot)) == ("0\u2009%", "asked 0\u2009%")
    assert [each.share for each in NOW.devices(replace(snapshot, devices=shots.SEVERAL.devices))] == ["0\u2009%"] * 2
    history = History()
    history.see(snapshot, shots.NOW)
    assert history.points[-1].share == 0.0


def test_during_a_break_no_figure_of_the_last_worker_is_shown():
    resting = replace(
        shots.PAUSED, pause=None, allowance=Allowance(1.0, NOTHING), progress=None, restart_at=shots.NOW + 12
    )
    assert (NOW.share(resting), NOW.share_below(resting)) == ("0\u2009%", "asked 0\u2009%")
    assert NOW.epoch(resting) is None
    confirmed, speed, _, peers = NOW.figures(resting)
    assert (confirmed.value, speed.value, peers.value) == ("184\u2009320", units.MISSING, units.MISSING)


def test_asked_and_measured_share():
    assert (NOW.share(shots.SLOWED), NOW.share_below(shots.SLOWED)) == ("19\u2009%", "measured, 20\u2009% asked")
    unmeasured = replace(shots.SLOWED, progress=replace(shots.SLOWED.progress, share_measured=None))
    assert (NOW.share(unmeasured), NOW.share_below(unmeasured)) == ("20\u2009%", "asked 20\u2009%")


def test_the_rule_that_decides_comes_first_and_leads_to_its_setting():
    rules = NOW.rules(shots.SLOWED, shots.NOW)
    assert [(rule.name, rule.share, rule.key) for rule in rules] == [
        ("input", "20\u2009%", "compute.share_using"),
        ("away", "100\u2009%", "compute.share_away"),
    ]
    paused = NOW.rules(shots.PAUSED, shots.NOW)[0]
    assert paused.sentence.startswith("Paused until ")
    assert paused.key == ""


def test_a_projects_words_are_plain_text():
    hostile = replace(shots.TRAINING, project=replace(shots.PROJECT, title="a\u202eb\u200b<b>c</b>\n"))
    assert title(hostile) == "ab<b>c</b>"
    assert len(shortened("x" * 100)) == 40


def test_a_state_that_is_loaded_while_training_is_said_in_the_sentence():
    text = Text("state.looking_for_donor", total=8_000_000)
    loading = replace(shots.TRAINING, stage=StageProgress(Stage.STATE, 0.0, text))
    words = "Load the model's state: waiting for a peer that sends it, 8.0 MB."
    assert " ".join(NOW.sentence(loading, shots.NOW).split()) == words


def test_the_checklist_of_joining():
    rows = Now().stages(shots.JOINING)
    assert [row.state for row in rows] == [
        StageState.DONE,
        StageState.DONE,
        StageState.UNDER_WAY,
        StageState.TO_COME,
        StageState.TO_COME,
    ]
    assert (rows[2].fraction, rows[2].detail) == (0.4, "about 20 s")
    assert Now().stages(replace(shots.JOINING, stage=None))[0].state is StageState.UNDER_WAY
    assert Now().stages(shots.RECOVERING)[2].state is StageState.FAILED
    none = Now().stages(replace(shots.RECOVERING, stage=None))
    assert {each.state for each in none} == {StageState.TO_COME}


def test_joining_rises_with_the_stages():
    assert joining_progress(replace(shots.JOINING, stage=None)) == 0.0
    assert joining_progress(shots.JOINING) == pytest.approx(2.4 / 5)
    assert joining_progress(replace(shots.JOINING, stage=StageProgress(Stage.DATA, float("nan")))) == pytest.approx(0.2)


def test_the_pauses_are_counted_from_now():
    choices = Now().pauses(shots.NOW, UTC)
    assert [choice.until and choice.until - shots.NOW for choice in choices[:2]] == [900, 3600]
    assert choices[3].until is None
    assert [choice.text for choice in choices] == [
        "For 15 minutes",
        "For 1 hour",
        "Until tomorrow, 08:00",
        "Until I resume",
    ]


def test_tomorrow_is_the_next_days_morning():
    late = datetime(2026, 3, 28, 23, 59, tzinfo=UTC).timestamp()
    assert datetime.fromtimestamp(tomorrow(late, UTC), tz=UTC) == datetime(2026, 3, 29, 8, tzinfo=UTC)
    assert datetime.fromtimestamp(tomorrow(late), tz=UTC).astimezone().hour == 8


def test_what_the_phase_leaving_has_no_share_of_is_idle():
    assert NOW.share(replace(shots.IDLE, phase=Phase.IDLE)) == "0\u2009%"


def test_while_paused_the_share_is_none_though_that_of_the_last_minute_was_measured():
    paused = replace(shots.PAUSED, progress=replace(shots.PROGRESS, share_measured=1.0))
    assert (NOW.share(paused), NOW.share_below(paused)) == ("0\u2009%", "asked 0\u2009%")
    history = History()
    history.see(paused, shots.NOW)
    assert history.points[-1].share == 0
