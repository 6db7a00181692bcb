"""`skep leave`, with scripted answers of the running skep."""

import io
import signal
from dataclasses import replace

import pytest

from english import raises
from fakes import make_project
from skep import bootstrap
from skep.cli.parser import Context
from skep.cli.show.terminal import Terminal
from skep.cli.verbs import running
from skep.core.errors import NotRunning, SkepError
from skep.core.session.control import status
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.text import verbatim

TRAINING = Snapshot(phase=Phase.TRAINING, project=make_project())
WAITING = replace(TRAINING, phase=Phase.LEAVING, leaving_until=2e9)
HURRYING = replace(WAITING, leaving_until=None)
GONE = None


class Script:
    """Answers `status` with one snapshot after another, and repeats the last; None is a skep that has ended."""

    def __init__(self, home, monkeypatch, *snapshots):
        self.snapshots, self.leaves = list(snapshots), []
        self.on_status = lambda: None
        self.out = io.StringIO()
        self.context = Context(Terminal(json=False, out=self.out), home, {})
        monkeypatch.setattr(bootstrap, "ask", self.ask)
        monkeypatch.setattr(running, "LOOK", 0.001)

    def ask(self, _home, request):
        if request["verb"] == "leave":
            self.leaves.append(request["now"])
            return {}
        self.on_status()
        shown = self.snapshots.pop(0) if len(self.snapshots) > 1 else self.snapshots[0]
        if shown is None:
            raise NotRunning(verbatim("No skep is running."))
        return {"status": status(shown)}


@pytest.fixture
def script(home, monkeypatch):
    return lambda *snapshots: Script(home, monkeypatch, *snapshots)


@pytest.mark.parametrize(
    "end",
    [GONE, replace(TRAINING, phase=Phase.IDLE, project=None), TRAINING],  # the last one has joined again
    ids=["ended", "idle", "elsewhere"],
)
def test_it_returns_when_the_running_skep_has_left(script, end):
    told = script(TRAINING, WAITING, WAITING, HURRYING, end)
    running.leave(told.context, now=False)
    assert told.leaves == [False]
    lines = told.out.getvalue().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("Leaving after the next round, in ")


def test_leaving_at_once_has_no_countdown(script):
    told = script(TRAINING, HURRYING, GONE)
    running.leave(told.context, now=True)
    assert (told.leaves, told.out.getvalue()) == ([True], "")


def test_ctrl_c_while_it_waits_leaves_at_once(script):
    told = script(WAITING)
    asked = iter([signal.SIGINT])

    def interrupt_once():
        for number in asked:
            signal.raise_signal(number)
        if True in told.leaves:
            told.snapshots = [GONE]

    told.on_status = interrupt_once
    running.leave(told.context, now=False)
    assert told.leaves == [False, True]


def test_a_skep_that_does_not_obey_is_not_waited_for(script, monkeypatch):
    monkeypatch.setattr(running, "OBEYED_WITHIN", 0.05)
    with raises(SkepError, match="does not leave"):
        running.leave(script(TRAINING).context, now=False)
