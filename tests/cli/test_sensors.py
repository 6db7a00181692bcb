"""`skep sensors`, and the power cap in `skep devices` and `skep settings`, as text and as JSON."""

import io
import json
import threading

import psutil
import pytest

from english import in_english
from skep import bootstrap
from skep.cli.application import main
from skep.cli.show.terminal import Terminal
from skep.cli.verbs import computer
from skep.core.policy.conditions import Condition, answered, missing, silent
from skep.core.text import NOTHING, verbatim

NOT_PERMITTED = "Only an administrator may limit the power of the card on this system."


class Fake:
    def __init__(self, name, conditions, read):
        self.name, self.conditions, self._read = name, conditions, read
        self.closed = threading.Event()

    def read(self):
        return self._read(self)

    def wait(self, seconds):
        self.closed.wait(seconds)

    def close(self):
        self.closed.set()


def fail(_sensor):
    raise OSError("broken pipe")


def hang(sensor):
    sensor.closed.wait(60)
    return {}


def shown(*fakes, json, within=computer.WITHIN):
    """The verb's output with these sensors."""
    out = io.StringIO()
    computer.show_sensors(Terminal(json=json, out=out, error=io.StringIO()), fakes, within)
    for fake in fakes:
        fake.close()
    return out.getvalue()


def test_each_source_is_listed_with_what_it_tells_or_why_it_cannot():
    battery = Fake(
        "UPower", [Condition.BATTERY], lambda _: {Condition.BATTERY: answered(value=True, note=verbatim("UPower"))}
    )
    metered = Fake("Nobody", [Condition.METERED], lambda _: {Condition.METERED: missing(verbatim("Nobody knows."))})
    told = json.loads(shown(battery, metered, Fake("Sleep", [], lambda _: {}), json=True))
    assert told == {
        "sensors": [
            {"condition": "battery", "sensor": "UPower", "source": "answers", "value": True, "note": "UPower"},
            {"condition": "metered", "sensor": "Nobody", "source": "missing", "value": None, "note": "Nobody knows."},
        ],
        "watches": ["Sleep"],
    }
    text = shown(battery, metered, json=False)
    assert "on battery" in text
    assert "not available" in text
    assert "Nobody knows." in text


def test_a_source_that_fails_or_hangs_is_silent_and_holds_up_nobody():
    broken, stuck = Fake("Broken", [Condition.POWER], fail), Fake("Stuck", [Condition.LOCKED], hang)
    told = json.loads(shown(broken, stuck, json=True, within=2))["sensors"]
    assert [(each["condition"], each["source"]) for each in told] == [("power", "silent"), ("locked", "silent")]
    assert told[0]["note"] == "It could not be read: broken pipe."
    assert told[1]["note"].startswith("It did not answer within")


@pytest.mark.parametrize(
    ("condition", "value", "text"),
    [
        (Condition.INPUT, 65.0, "1 min 5 s ago"),
        (Condition.LOCKED, True, "yes"),
        (Condition.FULL_SCREEN, False, "no"),
        (Condition.INHIBITED, True, "yes"),
        (Condition.GPU_USE, 0.42, "42 %"),
        (Condition.PROCESSOR_USE, 0.0, "0 %"),
        (Condition.GPU_MEMORY, 20_000_000_000, "20.0 GB"),
        (Condition.MEMORY, 500_000_000, "500.0 MB"),
        (Condition.TEMPERATURE, 61.4, "61 °C"),
        (Condition.POWER, 187.5, "188 W"),
        (Condition.BATTERY, False, "on mains"),
        (Condition.METERED, False, "no"),
    ],
)
def test_readings_are_shown_with_their_units(condition, value, text):
    assert computer.shown(condition, answered(value)).replace("\N{THIN SPACE}", " ") == text
    assert computer.shown(condition, silent(NOTHING)) == "silent"
    assert in_english(condition.spec.names.title)


@pytest.fixture
def skep(home, capsys):
    def run(*arguments):
        code = main(["--home", str(home.root), *arguments], {})
        return code, capsys.readouterr()

    return run


def test_this_computers_own_sensors_all_say_something(skep):
    code, printed = skep("sensors", "--json")
    told = json.loads(printed.out)
    assert code == 0
    names = [each["condition"] for each in told["sensors"]]
    machines = ["battery", "metered", "processor_use", "memory", "gpu_use", "gpu_memory", "temperature", "power"]
    assert [name for name in names if name in machines] == machines
    assert len(told["watches"]) == 1
    assert all(each["note"] for each in told["sensors"])
    memory = next(each for each in told["sensors"] if each["condition"] == "memory")
    assert 0 < memory["value"] < psutil.virtual_memory().total


def test_devices_tells_whether_the_power_can_be_capped(card, skep):
    assert "its power can be capped between 100 and 350" in skep("devices")[1].out
    card.say(nvmlDeviceSetPowerManagementLimit=4)
    assert NOT_PERMITTED in skep("devices")[1].out.replace("\n", " ")
    listed = json.loads(skep("devices", "--json")[1].out)["devices"]
    assert listed[0]["power_cap"]["refused"] == NOT_PERMITTED
    assert listed[-1]["power_cap"] is None


def test_asking_for_a_cap_that_is_not_permitted_is_kept_and_said(card, skep):
    code, printed = skep("settings", "set", "heat.power_cap_watts", "200")
    assert (code, printed.err) == (0, "")
    card.say(nvmlDeviceSetPowerManagementLimit=4)
    code, printed = skep("settings", "set", "heat.power_cap_watts", "200")
    assert code == 0
    assert NOT_PERMITTED in printed.err.replace("\n", " ")
    assert skep("settings", "set", "heat.power_cap_watts", "0")[1].err == ""


def test_asking_for_a_cap_without_a_card_says_that_it_does_nothing(skep, monkeypatch):
    class Listed:
        def list(self):
            return [each for each in real.list() if each.kind == "cpu"]

    real = bootstrap.devices()
    monkeypatch.setattr(bootstrap, "devices", Listed)
    assert "no graphics card here" in skep("settings", "set", "heat.power_cap_watts", "200")[1].err
