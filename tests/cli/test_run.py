"""The foreground loop of `join` with a real engine on stand-ins: its output, its end and its exit code."""

import io
import json
import re
import threading
import time
from dataclasses import replace

import pytest

from english import raises
from fakes import (
    FakeIdentity,
    FakeLedger,
    FakePauses,
    FakeSettings,
    FakeShards,
    FakeWorker,
    make_joined,
    make_progress,
    make_project,
)
from skep.adapters.clock import SystemClock
from skep.cli.interrupt import Interrupts
from skep.cli.show.renderers import EVERY, JsonRenderer, PanelRenderer, PlainRenderer, renderer_for
from skep.cli.show.terminal import Terminal
from skep.cli.verbs.join import Ending, Run
from skep.core.errors import StorageError
from skep.core.record.contributions import Evaluation
from skep.core.session import messages as m
from skep.core.session.losses import LEFT
from skep.core.session.phases import Phase, Stage, StageProgress
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem, Text, verbatim
from skep.engine.engine import Engine

JOINED_AND_ONE_EPOCH = (
    m.WorkerStage(Stage.HARDWARE, 1.0),
    make_joined(),
    m.WorkerProgress(make_progress(), "a", 8, 8),
    m.WorkerEvaluated(Evaluation(3, 4.0)),
    m.ContributionPending("a", 3, 8),
    m.ContributionConfirmed("a", 3, 8, 2),
    m.WorkerProgress(make_progress(4), "b", 4, 12),
)


class Stay:
    """A run and its output streams."""

    def __init__(
        self,
        *,
        on_start=JOINED_AND_ONE_EPOCH,
        ending=None,
        json_lines=True,
        shards=None,
        settings=None,
        worker=FakeWorker,
    ):
        self.out, self.error = io.StringIO(), io.StringIO()
        self.workers, self.kind = [], worker
        self.engine = Engine(
            clock=SystemClock(),
            make_worker=lambda post: self.worker(post, on_start),
            open_ledger=FakeLedger,
            shards=shards or FakeShards(),
            settings=settings or FakeSettings(),
            pauses=FakePauses(),
            identity=lambda _project: FakeIdentity(),
        )
        terminal = Terminal(json=json_lines, out=self.out, error=self.error)
        self.run = Run(self.engine, renderer_for(terminal), ending or Ending())

    def worker(self, post, on_start):
        self.workers.append(self.kind(post, on_start=on_start))
        return self.workers[-1]

    def go(self, during=lambda: None):
        interrupts, over = Interrupts(), threading.Event()

        def act():
            # a worker that has not started yet would not be waited for
            while not self.workers[0].starts and not over.wait(0.01):
                pass
            during(interrupts)

        helper = threading.Timer(0.3, act)
        helper.start()
        try:
            return self.run.go(m.Join(make_project()), interrupts)
        finally:
            over.set()
            helper.join()

    @property
    def events(self):
        return [json.loads(line) for line in self.out.getvalue().splitlines()]


def interrupted(interrupts):
    interrupts.asked = True


def nothing(_interrupts):
    pass


def test_ctrl_c_after_joining_is_a_good_end_and_tells_the_totals():
    stay = Stay()
    assert stay.go(interrupted) == 0
    names = [event["event"] for event in stay.events]
    assert names[0] == "stage"
    assert names[-1] == "left"
    assert {"joined", "progress", "evaluation", "contribution"} <= set(names)
    assert stay.events[-1]["totals"]["confirmed"] == {"contributions": 1, "samples": 8}


class SavingWorker(FakeWorker):
    """At the first stop it saves its state, which takes long; at the next one it is ended."""

    def stop(self, reason=LEFT, within=2.0):
        self.stops += 1
        if self.stops == 1:
            self.post(m.WorkerSaving(600.0))
        else:
            self.exit(-9)


def wait_for(condition):
    deadline = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_state_that_is_saved_is_waited_for_and_another_ctrl_c_ends_that():
    stay = Stay(json_lines=False, worker=SavingWorker)

    def twice(interrupts):
        interrupts.asked = True
        wait_for(lambda: "Saving the model" in stay.out.getvalue())
        assert not stay.engine.join(0)
        assert stay.workers[0].stops == 1
        interrupts.count += 1

    assert stay.go(twice) == 0
    assert stay.workers[0].stops == 2


def test_what_is_left_pending_is_told_as_pending_then_lost():
    stay = Stay()
    stay.go(interrupted)
    states = [event["state"] for event in stay.events if event.get("id") == "b"]
    assert states == ["pending", "lost"]
    assert stay.events[-1]["totals"]["pending"]["contributions"] == 0


def test_ctrl_c_before_joining_is_130():
    assert Stay(on_start=()).go(interrupted) == 130


def test_it_ends_by_itself_after_its_epochs_and_at_once():
    stay = Stay(ending=Ending(epochs=1))
    assert stay.go(nothing) == 0
    assert stay.events[-1]["event"] == "left"
    assert m.FinishTraining() not in stay.workers[0].told


def test_it_ends_by_itself_after_its_time():
    assert Stay(ending=Ending(seconds=0.5)).go(nothing) == 0


def test_a_time_that_is_up_before_joining_is_a_failure_with_a_sentence():
    stay = Stay(on_start=(), ending=Ending(total_seconds=0.4))
    assert stay.go(nothing) == 1
    assert "was not joined within" in stay.error.getvalue()
    assert [event["event"] for event in stay.events][-2:] == ["problem", "left"]


def test_leaving_from_another_terminal_is_a_good_end():
    stay = Stay()
    assert stay.go(lambda _: stay.engine.post(m.Leave())) == 0


def test_ctrl_c_cuts_the_wait_for_the_round_short():
    stay = Stay()
    stay.workers[0].rounds_come = False
    waits = threading.Event()
    stay.engine.observe(lambda _message, snapshot: waits.set() if snapshot.leaving_until else None)

    def leave_then_insist(interrupts):
        stay.engine.post(m.Leave())
        assert waits.wait(10)
        interrupts.asked = True

    assert stay.go(leave_then_insist) == 0
    assert (stay.workers[0].told[-1], stay.workers[0].stops) == (m.FinishTraining(), 1)
    assert "leaving" in [event["event"] for event in stay.events]


def test_a_data_server_that_is_silent_ends_it_with_its_reason():
    stay = Stay(shards=FakeShards(index=None))
    assert stay.go(nothing) == 1
    assert stay.error.getvalue().count("The shard server does not answer.") == 1
    assert [event["event"] for event in stay.events].count("problem") == 1


def test_a_worker_that_gives_up_ends_it_with_its_reason():
    gone = (
        make_joined(),
        m.WorkerFailed(Problem(verbatim("The model does not fit."), verbatim("Choose another.")), retry=False),
    )
    stay = Stay(on_start=gone, json_lines=False)
    assert stay.go(nothing) == 1
    assert "The model does not fit." in stay.error.getvalue()
    assert "Left the swarm." in stay.out.getvalue()


def test_a_finished_run_ends_it_well_and_is_told_once():
    over = (make_joined(), m.WorkerFinished(), m.WorkerExited(0))
    stay = Stay(on_start=over)
    assert stay.go(nothing) == 0
    (told,) = [event["message"] for event in stay.events if event["event"] == "finished"]
    assert told.startswith("Tiny code model is finished after 2")
    stay = Stay(on_start=over, json_lines=False)
    assert stay.go(nothing) == 0
    assert stay.out.getvalue().count("is finished after 2") == 1
    assert "Left the swarm." in stay.out.getvalue()
    assert not stay.error.getvalue()


@pytest.mark.parametrize("asked", [False, True])
def test_a_newcomer_to_a_finished_run_ends_well_though_it_never_joins(asked):
    stay = Stay(on_start=(m.WorkerFinished(),), ending=Ending(total_seconds=60.0), json_lines=False)
    looked, is_over = [], stay.run._is_over
    stay.run._is_over = lambda: (looked.append(1), is_over())[1]

    def hand_over(interrupts):
        wait_for(lambda: stay.run.snapshot.finished)
        stay.run.course.started -= 100.0  # its time is up while it hands over the state
        looked.clear()
        wait_for(lambda: len(looked) > 2)
        interrupts.asked = asked
        stay.workers[0].exit(0)

    assert stay.go(hand_over) == 0
    assert not stay.error.getvalue()


def test_an_engine_that_cannot_start_raises_its_sentence():
    stay = Stay(settings=FakeSettings(failing=StorageError(verbatim("The disk is full."))))
    with raises(StorageError, match="disk is full"):
        stay.go(nothing)


# --- renderers


def terminal(*, tty=False, json_lines=False):
    class Stream(io.StringIO):
        def isatty(self):
            return tty

    return Terminal(json=json_lines, out=Stream(), error=io.StringIO())


def snapshot():
    return Snapshot(project=make_project(), progress=make_progress(), joined=True)


def test_the_renderer_fits_who_reads():
    assert isinstance(renderer_for(terminal(json_lines=True)), JsonRenderer)
    assert isinstance(renderer_for(terminal()), PlainRenderer)


def test_without_a_terminal_progress_is_a_line_every_few_seconds_without_escape_codes():
    writing = terminal()
    plain = PlainRenderer(writing)
    for tenth in range(int(EVERY * 20)):
        plain.look(snapshot(), 0.0, tenth / 10)
    text = writing.out.file.getvalue()
    assert text.count("\n") == 2
    assert "\x1b" not in text


def test_without_a_terminal_a_state_that_is_loaded_while_training_is_a_line_too():
    writing, stage = terminal(), StageProgress(Stage.STATE, 0.5, Text("state.looking_for_donor", total=8_000_000))
    PlainRenderer(writing).look(replace(snapshot(), phase=Phase.TRAINING, stage=stage), 0.0, 0.0)
    assert writing.out.file.getvalue().startswith("Load the model's state: waiting for a peer")


@pytest.mark.parametrize(
    ("phase", "said"), [(Phase.RECOVERING, "Trying again in 12"), (Phase.JOINING, "Joining the swarm.")]
)
def test_without_a_terminal_a_stay_without_a_worker_says_what_happens(phase, said):
    writing = terminal()
    PlainRenderer(writing).look(replace(snapshot(), phase=phase, progress=None, restart_at=1012.0), 1000.0, 0.0)
    assert writing.out.file.getvalue().startswith(said)


def test_without_a_terminal_the_end_is_said_once_and_by_its_own_line():
    writing = terminal()
    PlainRenderer(writing).look(replace(snapshot(), phase=Phase.IDLE, progress=None), 0.0, 0.0)
    assert not writing.out.file.getvalue()


def test_on_a_terminal_it_redraws_at_most_four_times_a_second_and_never_blinks(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    writing = terminal(tty=True)
    drawing = PanelRenderer(writing)
    drawn = [
        drawing.look(snapshot(), 0.0, hundredth / 100) or len(writing.out.file.getvalue()) for hundredth in range(100)
    ]
    drawing.close(snapshot().totals, None)
    assert 1 < len(set(drawn)) <= 5
    text = writing.out.file.getvalue()
    assert "Tiny model" in text
    assert not re.search(r"\x1b\[(\d+;)*5m", text)


def test_words_of_a_project_are_no_markup():
    writing = terminal()
    writing.write("[red]danger[/red]")
    assert writing.out.file.getvalue() == "[red]danger[/red]\n"


def test_joining_on_several_cards_names_each_model_once():
    writing = terminal()
    joined = {
        "event": "joined",
        "epoch": 3,
        "peer_id": "Qm",
        "device": "RTX 4070",
        "client_mode": False,
        "relayed": False,
    }
    devices = [{"id": f"cuda:{number}", "name": "RTX 4070", "busy": 1.0} for number in range(2)]
    PlainRenderer(writing).told(joined | {"devices": devices}, Snapshot(), 0.0)
    assert "Joined at epoch 3 on 2 \N{MULTIPLICATION SIGN} RTX 4070 as Qm." in writing.out.file.getvalue()
