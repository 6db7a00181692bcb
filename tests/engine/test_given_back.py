"""From events at a real screen, on a real bus and on a card to the worker's orders: real sensors, a real engine.

Only the worker and the stores are stand-ins, and in the tests with a card the clock.
"""

import time
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from desktops import PrivateBus, Screen, need, need_dbusmock
from english import in_english
from fakes import (
    FakeClock,
    FakeDevices,
    FakeIdentity,
    FakeLedger,
    FakePauses,
    FakeSettings,
    FakeShards,
    FakeWorker,
    make_joined,
    make_project,
)
from skep import senses
from skep.adapters.clock import SystemClock
from skep.adapters.gpu.nvidia import NvidiaCard
from skep.adapters.linux import session
from skep.adapters.process.own_processes import OwnProcesses
from skep.core.device import Device, DeviceKind
from skep.core.policy.allowance import GpuMemory
from skep.core.policy.conditions import Condition
from skep.core.session import messages as m
from skep.core.settings.settings import DEFAULTS
from skep.engine import sensing
from skep.engine.engine import Engine

pytestmark = [
    pytest.mark.alone,
    # python-xlib leaves its socket to the garbage collector if the server ends during the handshake
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"),
]

SOON = 30.0
"""A deadline, not a duration: the machine may be busy."""
CAP = 80
CARD = Device(DeviceKind.NVIDIA, 0, "A card", memory_total=24 << 30)
PROCESSOR = Device(DeviceKind.CPU, 0, "A processor", memory_total=8 << 30)
QUICK = {
    "compute.idle_minutes": 0.05,
    "compute.ramp_seconds": 0.0,
    "when.calm_seconds": 0.5,
    "when.mains_calm_seconds": 0.5,
}
"""Short times, so that the tests need not wait for minutes."""
UPOWER, NETWORK = "org.freedesktop.UPower", "org.freedesktop.NetworkManager"


@dataclass
class Volunteer:
    """An engine that has joined and trains."""

    sensors: tuple
    settings: dict
    clock: object = field(default_factory=SystemClock)
    device: str = "CPU"
    ledger: FakeLedger = field(default_factory=FakeLedger)

    def __enter__(self):
        self.engine = Engine(
            clock=self.clock,
            make_worker=self._make_worker,
            open_ledger=lambda: self.ledger,
            shards=FakeShards(),
            settings=FakeSettings(dict(DEFAULTS) | self.settings),
            pauses=FakePauses(),
            identity=lambda _project: FakeIdentity(),
            sensors=self.sensors,
            graphical=True,
        )
        self.engine.start()
        self.engine.post(m.Join(make_project()))
        self.wait(lambda: self.worker.running)
        return self

    def __exit__(self, *_):
        self.engine.post(m.Quit())
        assert self.engine.join(SOON)

    def _make_worker(self, post):
        self.worker = FakeWorker(post, on_start=(make_joined(device=self.device),))
        return self.worker

    @property
    def allowance(self):
        return self.engine.snapshot.allowance

    @property
    def ordered(self):
        """The last SetShare sent to the worker."""
        return next((each for each in reversed(self.worker.told) if isinstance(each, m.SetShare)), None)

    def wait(self, condition):
        deadline = time.monotonic() + SOON
        while not condition():
            assert time.monotonic() < deadline, f"it did not come to that: {self.allowance}, {self.ordered}"
            self.engine.post(m.Tick())
            time.sleep(0.01)

    def later(self, seconds):
        """Advance a fake clock in steps too short for a sleep, each until the engine has seen it."""
        for _ in range(seconds):
            before = self.engine.snapshot.policy_state.steady
            self.clock.advance(1.0)
            self.wait(lambda before=before: self.engine.snapshot.policy_state.steady > before)

    def away(self):
        """Wait until the computer counts as not in use, and no other rule applies."""
        self.wait(lambda: self.allowance.rule == "away" and self.allowance.share == 1.0)

    @contextmanager
    def falling(self, rule, share):
        """The body makes this rule order this share, even if only for a short time."""
        told, changes = len(self.worker.told), len(self.ledger.timeline)
        yield
        self.wait(lambda: any(isinstance(each, m.SetShare) and each.share == share for each in self.worker.told[told:]))
        self.wait(lambda: any((each.rule, each.share) == (rule, share) for each in self.ledger.timeline[changes:]))


@pytest.fixture
def screen():
    need("Xvfb", "xdotool", "openbox", "xprop")
    made = Screen(window_manager="openbox")
    yield made
    made.close()


@pytest.fixture
def bus(monkeypatch):
    need_dbusmock()
    made = PrivateBus()
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", made.address)
    yield made
    made.close()


def at_the_processor():
    computer = senses.of_the_machine(lambda _message: None, str, FakeDevices(), OwnProcesses())
    # without the sensors for other programs' use of this machine
    return tuple(sensor for sensor in computer if "rocessor" not in sensor.name and sensor.name != "Device")


def test_what_happens_at_the_screen_reaches_the_worker(screen, bus):
    with Volunteer(tuple(session.of_the_person({**screen.environ, **bus.environ})), QUICK) as volunteer:
        volunteer.away()
        with volunteer.falling("input", 0.2):
            screen.touch()
        assert m.SetShare(0.2, present=True) in volunteer.worker.told
        volunteer.away()
        window = screen.window(1)  # of another program
        with volunteer.falling("full_screen", 0.0):
            window.tell("full")
        window.close()
        volunteer.away()
        screen.kill()  # it is now unknown whether the computer is in use
        volunteer.wait(lambda: volunteer.ordered.share == 0.2)
        assert "until it answers again" in in_english(volunteer.allowance.reason)


def test_battery_and_network_reach_the_worker(bus):
    upower, network = bus.template("upower", UPOWER), bus.template("networkmanager", NETWORK)
    network.ask("AddProperty", "ssv", (NETWORK, "Metered", ("u", 2)))
    with Volunteer(at_the_processor(), QUICK) as volunteer:
        volunteer.wait(lambda: volunteer.engine.snapshot.conditions[Condition.METERED].value is False)
        upower.ask("AddDischargingBattery", "ssdx", ("late", "Example", 80.0, 3600))  # a battery appears
        with volunteer.falling("battery", 0.0):
            upower.change({"OnBattery": ("b", True)})
        upower.change({"OnBattery": ("b", False)})
        volunteer.wait(lambda: volunteer.allowance.share > 0.0)
        network.change({"Metered": ("u", 1)})
        volunteer.wait(lambda: not volunteer.worker.running)  # no traffic on a metered connection
        assert not volunteer.allowance.network


@pytest.fixture
def trains_on_the_card(card, monkeypatch):
    monkeypatch.setattr(sensing, "PERIODS", dict.fromkeys(sensing.PERIODS, 0.02))
    devices = FakeDevices((PROCESSOR, CARD))
    computer = senses.of_the_machine(lambda _message: None, lambda: "cuda:0", devices, OwnProcesses())
    sensors = tuple(sensor for sensor in computer if sensor.name == "Device")
    settings = {"compute.device": "cuda:0", "compute.share_using": 1.0, "heat.cap_celsius": CAP}
    with Volunteer(sensors, settings, FakeClock(), CARD.name) as volunteer:
        yield volunteer


def test_a_card_that_heats_up_is_held_at_its_cap(card, trains_on_the_card):
    volunteer, degrees = trains_on_the_card, []
    card.say(share=100, ambient=35, rise=70, rate=1, clock=0)
    for second in range(1, 120):
        card.say(share=round(100 * volunteer.allowance.share), clock=second)
        degrees.append(read(card, volunteer))
        volunteer.later(1)
    assert max(degrees) <= CAP + 4
    assert min(degrees[-40:]) >= CAP - 8  # and not much below the cap
    assert 0.4 < volunteer.allowance.share < 0.9


def read(card, volunteer):
    """The card's temperature, when the engine has received it to within a degree."""
    told = NvidiaCard(0, OwnProcesses())
    try:
        now = told.read()[Condition.TEMPERATURE].value
    finally:
        told.close()
    volunteer.wait(lambda: abs((volunteer.engine.snapshot.conditions[Condition.TEMPERATURE].value or 0.0) - now) < 1.0)
    return now


def test_a_card_that_others_fill_is_given_back(card, trains_on_the_card):
    volunteer = trains_on_the_card
    card.say(used=4096)
    volunteer.wait(lambda: volunteer.engine.snapshot.conditions[Condition.GPU_MEMORY].value)
    card.say(used=24 * 1024 - 100)
    volunteer.wait(lambda: volunteer.ordered is not None and volunteer.ordered.memory is GpuMemory.SHRINK)
    with volunteer.falling("gpu_memory", 0.0):
        volunteer.later(4)
    assert volunteer.ordered.memory is GpuMemory.RELEASE


def test_a_card_that_is_lost_caps_the_share(card, trains_on_the_card):
    volunteer = trains_on_the_card
    volunteer.wait(lambda: volunteer.engine.snapshot.conditions[Condition.TEMPERATURE].value)
    volunteer.engine.post(m.ChangeSettings({"compute.share_using": 0.3}))
    card.say(lost=1)
    volunteer.wait(lambda: "until it answers again" in in_english(volunteer.allowance.reason))
    assert volunteer.allowance.share == 0.3
