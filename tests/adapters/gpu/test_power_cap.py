"""The power cap: set while skep computes, always restored, refused with a message. The card is a stand-in."""

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from english import in_english
from fakes import (
    FakeClock,
    FakeIdentity,
    FakeLedger,
    FakePauses,
    FakeSettings,
    FakeShards,
    FakeWorker,
    make_joined,
    make_project,
)
from skep import bootstrap, senses
from skep.adapters.gpu import power_limit
from skep.adapters.gpu.power_limit import NvidiaLimiter, PowerCapKeeper
from skep.core.device import ComputingDevice, Device, DeviceKind, PowerCap
from skep.core.policy.allowance import Allowance
from skep.core.session import messages as m
from skep.core.session.snapshot import Snapshot, WorkerRun
from skep.core.text import verbatim
from skep.engine.engine import Engine

SOON = 20.0
POWER = "heat.power_cap_watts"
OWN = 320.0
"""The stand-in card's limit if none was set."""
NOT_PERMITTED = "Only an administrator may limit the power of the card on this system."
GPU, CPU = Device(DeviceKind.NVIDIA, 0, "Stand-in RTX 1"), Device(DeviceKind.CPU, 0, "CPU")


class Listed:
    def __init__(self, *devices):
        self.devices = devices

    def list(self):
        return self.devices


def computing(watts, share=1.0):
    return Snapshot(settings={POWER: watts}, worker=WorkerRun(), allowance=Allowance(share, verbatim("Because.")))


class House:
    """A keeper, its messages, and methods that wait for its reactions."""

    def __init__(self, note, devices, wanted=""):
        self.said, self.note = [], note
        self._heard = threading.Condition()
        self.keeper = PowerCapKeeper(lambda: senses.limited_cards(devices, wanted), note, self._post)

    def _post(self, message):
        with self._heard:
            self.said.append(message)
            self._heard.notify_all()

    def see(self, snapshot):
        """Pass the snapshot to the keeper; returns its next report."""
        before = len(self.said)
        self.keeper.observe(m.Tick(), snapshot)
        with self._heard:
            assert self._heard.wait_for(lambda: len(self.said) > before, SOON)
        return self.said[-1].caps.get("cuda:0")

    def hear(self, watts):
        """Wait until its last report has this limit."""
        with self._heard:
            assert self._heard.wait_for(
                lambda: self.said[-1].caps and self.said[-1].caps["cuda:0"].watts == watts, SOON
            )


@pytest.fixture
def make_house(tmp_path):
    made = []

    def make(*devices):
        made.append(House(tmp_path / "power_limit.json", Listed(*devices or (GPU, CPU))))
        made[-1].keeper.start()
        return made[-1]

    yield make
    for house in made:
        house.keeper.close()


def test_a_permitted_cap_is_set_and_put_back_when_skep_ends(card, make_house):
    house = make_house()
    assert house.see(computing(200)) == PowerCap(watts=200.0, lowest=100.0, highest=350.0)
    assert card.limit == 200.0
    house.keeper.close()
    assert card.limit == OWN
    assert not in_english(house.note).exists()


@pytest.mark.parametrize(
    "later",
    [computing(0), computing(200, share=0.0), replace(computing(200), worker=None)],
    ids=["setting off", "paused", "left"],
)
def test_the_card_has_its_own_limit_again_as_soon_as_skep_does_not_compute(card, make_house, later):
    house = make_house()
    house.see(computing(200))
    assert house.see(later) is None
    assert card.limit == OWN
    assert house.see(computing(200)).watts == 200.0


def test_another_cap_replaces_the_first_and_what_comes_back_is_the_cards_own(card, make_house):
    house = make_house()
    card.limit = 300.0
    house.see(computing(200))
    house.keeper.observe(m.Tick(), computing(150))
    house.hear(150.0)
    assert card.limit == 150.0
    house.keeper.close()
    assert card.limit == 300.0


@pytest.mark.parametrize(("asked", "set_to"), [(20, 100.0), (1500, 350.0)])
def test_the_cards_bounds_hold(card, make_house, asked, set_to):
    house = make_house()
    assert house.see(computing(asked)).watts == set_to
    assert card.limit == set_to
    house.keeper.close()
    assert card.limit == OWN


def test_a_cap_that_is_not_permitted_is_told_and_nothing_is_changed(card, make_house):
    card.say(nvmlDeviceSetPowerManagementLimit=4)
    house = make_house()
    told = house.see(computing(200))
    assert (in_english(told.refused), told.watts) == (NOT_PERMITTED, OWN)
    assert card.limit is None
    assert not in_english(house.note).exists()


def test_a_card_without_a_limit_says_so(card, make_house):
    card.say(nvmlDeviceGetPowerManagementLimit=3)
    assert in_words(make_house().see(computing(200))) == PowerCap(refused="This card's power cannot be limited.")


def test_a_card_that_is_lost_meanwhile_ends_nothing_else(card, make_house):
    house = make_house()
    house.see(computing(200))
    card.say(lost=1)
    house.see(computing(0))
    card.say(lost=0)
    assert house.see(computing(180)).watts == 180.0


def test_a_limit_that_somebody_else_set_meanwhile_stays(card, make_house):
    house = make_house()
    house.see(computing(200))
    card.limit = 275.0
    house.keeper.close()
    assert card.limit == 275.0


def test_without_a_card_there_is_nothing_to_limit(make_house, tmp_path):
    house = make_house(CPU)
    house.keeper.observe(m.Tick(), computing(200))
    house.keeper.close()
    assert house.said == []


# --- several cards


SECOND = Device(DeviceKind.NVIDIA, 1, "Stand-in RTX 2")
LIMITS = "compute.device_limits"


@pytest.fixture
def both(card, tmp_path):
    """A house of two cards, both of which train."""
    card.say(cards=2)
    made = House(tmp_path / "power_limit.json", Listed(GPU, SECOND, CPU), "all")
    made.keeper.start()
    yield made
    made.keeper.close()


def with_limits(watts, limits, **more):
    return replace(computing(watts, **more), settings={POWER: watts, LIMITS: limits})


def test_each_card_that_trains_is_capped_and_put_back(card, both):
    both.see(computing(200))
    assert {device: cap.watts for device, cap in both.said[-1].caps.items()} == {"cuda:0": 200.0, "cuda:1": 200.0}
    assert (card.limit_of(1), card.limit_of(2)) == (200.0, 200.0)
    both.keeper.close()
    assert (card.limit_of(1), card.limit_of(2)) == (OWN, OWN)
    assert not both.note.exists()


@pytest.mark.parametrize(
    ("watts", "limits", "caps"),
    [
        (200, "cuda:1 150W", {"cuda:0": 200.0, "cuda:1": 150.0}),
        (0, "cuda:1 50% 150W", {"cuda:1": 150.0}),
        (200, "cuda:0 300W; cuda:1 70C", {"cuda:0": 300.0, "cuda:1": 200.0}),
    ],
)
def test_a_card_has_its_own_cap(card, both, watts, limits, caps):
    both.see(with_limits(watts, limits))
    assert {device: cap.watts for device, cap in both.said[-1].caps.items()} == caps
    assert (card.limit_of(1) or OWN, card.limit_of(2) or OWN) == (caps.get("cuda:0", OWN), caps.get("cuda:1", OWN))


def test_a_limit_of_another_kind_leaves_the_power_as_it_is(card, both, monkeypatch):
    both.see(with_limits(200, "cuda:1 150W"))
    touched, limit = [], NvidiaLimiter.limit
    monkeypatch.setattr(NvidiaLimiter, "limit", lambda self, watts: touched.append(watts) or limit(self, watts))
    both.keeper.observe(m.Tick(), with_limits(200, "cuda:1 50% 150W"))
    both.see(with_limits(200, "cuda:1 50% 160W"))
    assert touched == [OWN, 160.0]
    assert {device: cap.watts for device, cap in both.said[-1].caps.items()} == {"cuda:0": 200.0, "cuda:1": 160.0}


def test_the_caps_follow_the_cards_that_are_known_to_train_later(card, tmp_path):
    card.say(cards=2)
    trains = ["cuda:0"]
    house = House(tmp_path / "power_limit.json", Listed(GPU, SECOND, CPU))
    house.keeper._find = lambda: senses.limited_cards(Listed(GPU, SECOND, CPU), trains[0])
    house.keeper.start()
    house.see(computing(200))
    trains[0] = "cuda:1"
    house.see(replace(computing(200), devices=(ComputingDevice("cuda:1", "Card"),)))
    assert list(house.said[-1].caps) == ["cuda:1"]
    assert (card.limit_of(1), card.limit_of(2)) == (OWN, 200.0)
    house.keeper.close()


def test_a_card_of_another_maker_says_that_it_cannot_be_limited(card, tmp_path):
    house = House(tmp_path / "power_limit.json", Listed(Device(DeviceKind.AMD, 0, "Radeon"), CPU), "cuda:0")
    house.keeper.start()
    assert in_english(house.see(computing(200)).refused) == "skep can limit the power of NVIDIA cards only."
    house.keeper.close()


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["cuda:1", "cuda:0"], "cuda:1,cuda:0"),
        (["cuda:1"], "cuda:1"),
        (["cpu"], "cpu"),
        (["cpu:0", "cpu:1"], "all"),
    ],
)
def test_what_trains_is_watched_and_capped_whatever_is_chosen_now(ids, names):
    devices = tuple(ComputingDevice(each, "Card") for each in ids)
    snapshot = Snapshot(settings={"compute.device": "all"}, worker=WorkerRun(joined_at=1.0), devices=devices)
    assert senses._device(SimpleNamespace(snapshot=snapshot)) == names
    assert senses._device(SimpleNamespace(snapshot=replace(snapshot, worker=None))) == "all"


def test_a_card_that_does_not_train_is_left_alone(card, tmp_path):
    card.say(cards=2)
    house = House(tmp_path / "power_limit.json", Listed(GPU, SECOND, CPU), "cuda:1")
    house.keeper.start()
    house.see(with_limits(0, "cuda:0 150W; cuda:1 160W"))
    house.keeper.close()
    assert list(house.said[0].caps) == ["cuda:1"]
    assert card.limit_of(1) is None


def test_what_was_refused_is_told_until_nothing_is_wanted_any_more(card, both):
    card.say(nvmlDeviceSetPowerManagementLimit=4)
    both.see(computing(200))
    assert [in_english(cap.refused) for cap in both.said[-1].caps.values()] == [NOT_PERMITTED] * 2
    both.see(computing(0))
    assert both.said[-1].caps == {}


def test_all_that_a_killed_skep_left_is_put_back_whatever_is_chosen_now(card, make_house, tmp_path):
    card.say(cards=2)
    for device in (GPU, SECOND):
        NvidiaLimiter(device.index).limit(200.0)
    (tmp_path / "power_limit.json").write_text(
        json.dumps(
            [{"card": f"{each.name}, nvidia:{each.index}", "before": OWN, "ours": 200.0} for each in (GPU, SECOND)]
        )
    )
    house = make_house(GPU, SECOND, CPU)
    house.keeper.close()
    assert (card.limit_of(1), card.limit_of(2)) == (OWN, OWN)
    assert not house.note.exists()


def test_the_note_of_an_earlier_skep_about_one_card_is_understood(card, make_house, tmp_path):
    card.limit = 200.0
    (tmp_path / "power_limit.json").write_text('{"card": "Stand-in RTX 1, nvidia:0", "before": 320, "ours": 200}')
    make_house().keeper.close()
    assert card.limit == OWN


KILLED = """
import os, sys, time
from pathlib import Path
from skep.senses import limited_cards
from skep.adapters.gpu.power_limit import PowerCapKeeper
from skep.core.session import messages as m
from skep.core.policy.allowance import Allowance
from skep.core.device import Device, DeviceKind
from skep.core.session.snapshot import Snapshot, WorkerRun

class Listed:
    def list(self):
        return [Device(DeviceKind.NVIDIA, 0, "Stand-in RTX 1"), Device(DeviceKind.CPU, 0, "CPU")]

def post(message):
    os._exit(9)

keeper = PowerCapKeeper(lambda: limited_cards(Listed(), ""), Path(sys.argv[1]), post)
keeper.start()
settings = {"heat.power_cap_watts": 200}
keeper.observe(m.Tick(), Snapshot(settings=settings, worker=WorkerRun(), allowance=Allowance(1.0, "")))
time.sleep(60)
"""


@pytest.fixture
def killed(card, library_folder, tmp_path):
    """A skep that was killed while its cap was set."""
    environ = os.environ | {"LD_LIBRARY_PATH": str(library_folder), "NVML_STUB_FILE": str(card.file)}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "power_limit.json")], env=environ, timeout=60, check=False
    )
    assert done.returncode == 9
    assert card.limit == 200.0


def test_the_next_start_puts_back_what_a_killed_one_left(card, killed, make_house):
    house = make_house()
    house.keeper.close()
    assert card.limit == OWN
    assert not in_english(house.note).exists()


def test_a_limit_that_could_not_be_put_back_stays_noted_for_the_next_start(card, make_house):
    house = make_house()
    house.see(computing(200))
    card.say(nvmlDeviceSetPowerManagementLimit=4)
    house.keeper.close()
    assert card.limit == 200.0
    assert house.note.exists()
    card.say(nvmlDeviceSetPowerManagementLimit=0)
    make_house().keeper.close()
    assert card.limit == OWN
    assert not house.note.exists()


def test_a_note_of_a_killed_skep_stays_until_the_card_answers(card, killed, make_house):
    card.say(lost=1)
    house = make_house()
    house.keeper.close()
    assert house.note.exists()
    card.say(lost=0)
    make_house().keeper.close()
    assert card.limit == OWN
    assert not house.note.exists()


def test_a_limit_of_ours_that_could_not_be_removed_is_not_taken_for_the_cards_own(card, make_house, monkeypatch):
    house = make_house()
    house.see(computing(200))
    with monkeypatch.context() as failing:
        failing.setattr(power_limit, "_restore", lambda _held, _limiter: False)
        house.keeper.observe(m.Tick(), computing(150))
        house.hear(150.0)
    house.keeper.close()
    assert card.limit == OWN


def test_what_was_left_is_put_back_before_anything_new_is_set(card, killed, make_house):
    house = make_house()
    house.see(computing(180))
    assert card.limit == 180.0
    house.keeper.close()
    assert card.limit == OWN


def test_a_restarted_computer_has_nothing_to_put_back(card, killed, make_house):
    card.limit = 340.0
    house = make_house()
    house.keeper.close()
    assert card.limit == 340.0


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"card": "x", "before": "many", "ours": 1}', "\\udcff"])
def test_a_note_that_means_nothing_is_forgotten(card, make_house, tmp_path, text):
    (tmp_path / "power_limit.json").write_text(text)
    house = make_house()
    assert house.see(computing(200)).watts == 200.0
    house.keeper.close()
    assert card.limit == OWN


def test_the_note_says_no_more_than_needed(card, make_house):
    house = make_house()
    house.see(computing(200))
    assert json.loads(in_english(house.note).read_text()) == [
        {"card": "Stand-in RTX 1, nvidia:0", "before": 320.0, "ours": 200.0}
    ]
    assert in_english(house.note).stat().st_mode & 0o777 == 0o600


# --- in the engine


def test_a_running_engine_holds_the_cap_while_it_computes(card, home):
    engine = Engine(
        clock=FakeClock(),
        make_worker=lambda post: FakeWorker(post, on_start=(make_joined(),)),
        open_ledger=FakeLedger,
        shards=FakeShards(),
        settings=FakeSettings({POWER: 200}),
        pauses=FakePauses(),
        identity=lambda _project: FakeIdentity(),
    )
    with senses.power_capped(home, engine):
        engine.start()
        engine.post(m.Join(make_project()))
        until_in_time(lambda: engine.snapshot.power_caps)
        assert card.limit == engine.snapshot.power_caps["cuda:0"].watts == 200.0
        assert in_english(engine.snapshot.allowance.reason) == "Limited to 200 W."
        engine.post(m.Pause())
        until_in_time(lambda: not engine.snapshot.power_caps)
        assert card.limit == OWN
        engine.post(m.Resume())
        until_in_time(lambda: engine.snapshot.power_caps)
        engine.post(m.Quit())
        assert engine.join(SOON)
    assert card.limit == OWN


def until_in_time(condition):
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# --- reports to front ends


def in_words(cap):
    return None if cap is None else replace(cap, refused=in_english(cap.refused))


def test_whether_a_cap_is_permitted_is_known_without_changing_it(card):
    card.limit = 250.0
    assert senses.power_cap(GPU) == PowerCap(watts=250.0, lowest=100.0, highest=350.0)
    card.say(nvmlDeviceSetPowerManagementLimit=4)
    assert in_english(senses.power_cap(GPU).refused) == NOT_PERMITTED
    assert card.limit == 250.0


@pytest.mark.parametrize(
    ("device", "told"),
    [
        (CPU, None),
        (
            Device(DeviceKind.AMD, 0, "AMD"),
            PowerCap(refused="skep can limit the power of NVIDIA cards only."),
        ),
        (
            Device(DeviceKind.APPLE, 0, "M2"),
            PowerCap(refused="skep can limit the power of NVIDIA cards only."),
        ),
        (
            replace(GPU, unusable=verbatim("No driver is loaded for it.")),
            PowerCap(refused="No driver is loaded for it."),
        ),
    ],
)
def test_other_devices_say_what_they_cannot(device, told):
    assert in_words(bootstrap.power_cap(device)) == told


def test_a_driver_that_fails_says_so(card):
    card.say(nvmlDeviceSetPowerManagementLimit=999)
    assert in_english(NvidiaLimiter(0).limit(200).refused) == "NVIDIA's driver library reports: Unknown Error."
