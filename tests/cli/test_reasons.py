"""`skep explain`, `skep timeline`, and what `skep status` and `skep settings` print about rules."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime

import pytest

from fakes import (
    FakeIdentity,
    FakeLedger,
    FakePauses,
    FakeSensor,
    FakeSettings,
    FakeShards,
    FakeWorker,
    make_joined,
    make_project,
)
from skep import bootstrap
from skep.adapters.clock import SystemClock
from skep.cli.application import main
from skep.cli.show.speech import speak
from skep.cli.verbs.record import entries
from skep.core.policy.allowance import Change
from skep.core.policy.conditions import Condition, answered, missing
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.text import verbatim
from skep.engine.engine import Engine

HERE = {Condition.INPUT: answered(9999.0), Condition.BATTERY: missing(verbatim("This computer has no battery."))}


@pytest.fixture
def environ(home):
    return {"SKEP_HOME": str(home.root)}


@pytest.fixture
def skep(environ, capsys) -> Iterator[Callable[..., tuple[int, str, str]]]:
    def run(*arguments: str, **more: str) -> tuple[int, str, str]:
        code = main(list(arguments), environ | more)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    yield run
    speak("en")


@pytest.fixture
def running(home) -> Iterator[tuple[Engine, FakeSensor]]:
    """An engine on stand-ins that trains, with a control socket."""
    home.create()
    sensor = FakeSensor(dict(HERE))
    engine = Engine(
        clock=SystemClock(),
        make_worker=lambda post: FakeWorker(post, on_start=(make_joined(),)),
        open_ledger=FakeLedger,
        shards=FakeShards(),
        settings=FakeSettings(FakeSettings().values | {"compute.share_using": 0.1, "compute.ramp_seconds": 0.0}),
        pauses=FakePauses(),
        identity=lambda _project: FakeIdentity(),
        sensors=(sensor,),
        graphical=True,
    )
    engine.start()
    with bootstrap.serve(home, engine):
        engine.post(m.Join(make_project()))
        wait(lambda: engine.snapshot.phase is Phase.TRAINING and engine.snapshot.allowance.rule == "away")
        yield engine, sensor
    engine.post(m.Quit())
    assert engine.join(5.0)


def wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 5.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_running_skep_explains_what_holds_and_what_would(skep, running):
    engine, sensor = running
    code, out, _ = skep("explain", "--if", "input,battery", "--json")
    body = json.loads(out)
    assert (code, body["running"]) == (0, True)
    assert [(each["rule"], each["allowance"]["share"]) for each in body["holding"]] == [
        ("battery", 0.0), ("input", 0.1), ("away", 1.0),
    ]  # fmt: skip
    assert {"rule": "battery", "note": "This computer has no battery."} in body["missing"]
    assert engine.snapshot.allowance.rule == "away"

    sensor.seen = HERE | {Condition.INPUT: answered(0.0)}
    sensor.happen()
    wait(lambda: engine.snapshot.allowance.rule == "input")
    code, out, _ = skep("explain")
    assert code == 0
    assert out.startswith("10 % while you use this computer.")
    assert "Not available here: This computer has no battery." in out


def test_status_tells_the_sentence_the_rules_and_the_reactions(skep, running):
    engine, sensor = running
    sensor.seen = HERE | {Condition.INPUT: answered(0.0), Condition.FULL_SCREEN: answered(value=True)}
    sensor.own = (*HERE, Condition.FULL_SCREEN)
    sensor.happen()
    wait(lambda: engine.snapshot.allowance.rule == "full_screen")
    engine.post(m.WorkerPaused(0.0, 0.01))
    wait(lambda: engine.snapshot.reactions)
    _, out, _ = skep("status")
    assert "A full-screen program is open." in out
    assert "10 % while you use this computer." in out
    assert "Gave your computer back in" in out
    body = json.loads(skep("status", "--json")[1])
    assert [each["rule"] for each in body["holding"]] == ["full_screen", "input", "away"]
    assert body["conditions"]["full_screen"]["value"] is True
    assert len(body["reactions"]) == 1


def test_status_and_explain_speak_german_where_the_system_does(skep, running):
    engine, sensor = running
    sensor.seen = HERE | {Condition.INPUT: answered(0.0)}
    sensor.happen()
    wait(lambda: engine.snapshot.allowance.rule == "input")
    _, out, _ = skep("status", LANG="de_DE.UTF-8")
    assert "10 %, während du diesen Computer nutzt." in out
    assert "herausgegeben von" in out
    _, out, _ = skep("explain", LANG="de_DE.UTF-8")
    assert out.startswith("10 %, während du diesen Computer nutzt.")
    assert "Hier nicht verfügbar: " in out
    assert "10 % while you use this computer." in skep("status", LANG="C")[1]


def test_without_a_running_skep_the_sensors_are_read_once(skep, monkeypatch):
    sensor = FakeSensor(HERE | {Condition.INPUT: answered(1.0)})
    monkeypatch.setattr(bootstrap, "all_sensors", lambda _home: (sensor,))
    body = json.loads(skep("explain", "--json")[1])
    assert (body["running"], body["allowance"]["rule"]) == (False, "input")
    assert sensor.closed


@pytest.mark.parametrize("what", ["rain", "input,rain"])
def test_what_cannot_be_imagined_is_refused_running_or_not(skep, running, what):
    code, out, err = skep("explain", "--if", what)
    assert (code, out) == (2, "")
    assert err.startswith("“rain” is not a known situation.")


def test_the_timeline_of_a_day_tells_each_change_with_its_reason(skep, home):
    now = datetime.now().astimezone()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    with bootstrap.ledger(home) as ledger:
        ledger.record_change(Change(midnight - 3600, "tiny", 1.0, "away", verbatim("Training at full share.")))
        ledger.record_change(Change(midnight, "tiny", 0.0, "battery", verbatim("On battery.")))
        ledger.record_change(Change(midnight + 86_400 * 3, "", 0.0, "", verbatim("Not in a project.")))
    body = json.loads(skep("timeline", "--json")[1])
    assert [each["rule"] for each in body["timeline"]] == ["battery"]
    assert body["timeline"][0]["begin"] == midnight
    yesterday = skep("timeline", "--day", "yesterday")[1]
    assert "23:00:00" in yesterday
    assert "Training at full share." in yesterday
    assert skep("timeline", "--day", "2001-02-03")[1] == "Nothing happened that day.\n"


@pytest.mark.parametrize("day", ["someday", "2026-13-01", "9999-12-31", ""])
def test_a_day_that_is_none_is_refused(skep, day):
    code, _, err = skep("timeline", "--day", day)
    assert code == 2
    assert err.splitlines()[0] == f"“{day}” is not a day."


def test_entries_are_cut_to_the_span():
    changes = [Change(5.0, "p", 1.0, "away", verbatim("x")), Change(20.0, "p", 0.0, "battery", verbatim("y"))]
    told = [(each["begin"], each["end"]) for each in entries(changes, 10.0, 30.0)]
    assert told == [(10.0, 20.0), (20.0, 30.0)]


def test_a_schedule_is_set_and_shown_in_words(skep):
    code, out, _ = skep("settings", "set", "when.schedule", "off mon-fri 9-17")
    assert code == 0
    assert "Off Monday to Friday from 9:00 to 17:00; full otherwise." in out
    assert "Off Monday to Friday" in skep("settings", "get", "when.schedule")[1]


def test_settings_that_do_not_go_together_are_remarked_on(skep):
    skep("settings", "set", "compute.share_away", "30")
    _, out, _ = skep("settings", "set", "compute.share_using", "60")
    assert "the lower one counts, 30 %" in out
    assert "the lower one counts, 30 %" in skep("settings")[1].replace("\n", " ")
