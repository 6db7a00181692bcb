"""Readings of the training device: the real pynvml with a stand-in card, a simulated sysfs, and no card."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pynvml
import pytest

from english import in_english
from fakes import StillClock
from skep.adapters.gpu import device_sensor
from skep.adapters.gpu.device_sensor import (
    HEAT_SECONDS,
    LIST_SECONDS,
    DeviceSensor,
    ProcessorReader,
    choose,
    choose_all,
    stands_in,
    together,
)
from skep.adapters.gpu.devices import LocalDevices
from skep.adapters.gpu.nvidia import STALE_SECONDS, NvidiaCard
from skep.adapters.process.own_processes import OwnProcesses
from skep.core.device import Device, DeviceKind
from skep.core.policy.conditions import Condition, Source, answered, silent
from skep.core.text import verbatim

GIB = 1 << 30
US, PLAYER, BROWSER = os.getpid(), 3_999_001, 3_999_002
"""Process ids; the last two are not in use."""
GPU = (Condition.GPU_USE, Condition.GPU_MEMORY, Condition.TEMPERATURE, Condition.POWER)


@pytest.fixture
def clock():
    return StillClock(100.0)


@pytest.fixture
def nvidia(card, clock):
    made = NvidiaCard(0, OwnProcesses(), clock)
    yield made
    made.close()


def use(nvidia):
    return nvidia.read()[Condition.GPU_USE]


# --- NVIDIA: readings


def test_a_card_tells_everything(card, nvidia):
    seen = nvidia.read()
    assert {reading.source for reading in seen.values()} == {Source.ANSWERS}
    assert seen[Condition.GPU_MEMORY].value == 20 * GIB
    assert seen[Condition.TEMPERATURE].value == 61.0
    assert seen[Condition.POWER].value == 187.5
    assert seen[Condition.GPU_USE].value == 0.0


def test_a_card_heats_up_while_somebody_computes_and_cools_again(card, nvidia):
    card.say(share=100, ambient=35, rise=50, rate=2, clock=0)

    def degrees(second):
        card.say(clock=second)
        return nvidia.read()[Condition.TEMPERATURE].value

    assert [degrees(second) for second in (0, 10, 20, 100)] == [35, 55, 75, 85]
    card.say(share=20)
    assert [degrees(second) for second in (110, 1000)] == [65, 45]


def test_memory_fills(card, nvidia):
    card.say(used=4096, fills=1024, clock=0)
    assert nvidia.read()[Condition.GPU_MEMORY].value == 20 * GIB
    card.say(clock=10)
    assert nvidia.read()[Condition.GPU_MEMORY].value == 10 * GIB
    card.say(clock=60)
    assert nvidia.read()[Condition.GPU_MEMORY].value == 0


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_NO_PERMISSION])
def test_what_a_card_never_tells_is_missing_and_the_rest_is_there(card, nvidia, code):
    card.say(nvmlDeviceGetPowerUsage=code)
    seen = nvidia.read()
    assert (seen[Condition.POWER].source, in_english(seen[Condition.POWER].note)) == (
        Source.MISSING,
        "The graphics card does not report its power.",
    )
    assert seen[Condition.TEMPERATURE].value == 61.0


# --- NVIDIA: other programs


def test_our_own_use_of_the_card_is_no_other_programs(card, nvidia):
    card.share_with((US, 90, 1000))
    assert use(nvidia).value == 0.0


def test_other_programs_are_summed_up_without_us(card, nvidia):
    card.share_with((US, 60, 1000), (PLAYER, 25, 1000), (BROWSER, 5, 1001))
    assert use(nvidia).value == pytest.approx(0.30)


def test_of_several_samples_of_a_program_the_latest_counts(card, nvidia):
    card.share_with((PLAYER, 80, 1000), (PLAYER, 10, 2000), (PLAYER, 70, 1500))
    assert use(nvidia).value == pytest.approx(0.10)


def test_nonsense_from_the_driver_stays_within_bounds(card, nvidia):
    card.share_with((0, 100, 5), (PLAYER, 4_000_000_000, 7), (BROWSER, 90, 7))
    assert use(nvidia).value == 1.0


def test_what_the_driver_repeats_about_a_program_gone_idle_does_not_count_for_long(card, nvidia, clock):
    card.share_with((PLAYER, 80, 1000))
    assert use(nvidia).value == pytest.approx(0.8)
    clock.now += STALE_SECONDS
    assert use(nvidia).value == pytest.approx(0.8)
    clock.now += 0.1
    assert use(nvidia).value == 0.0
    card.share_with((PLAYER, 80, 2000))
    assert use(nvidia).value == pytest.approx(0.8)


def test_a_card_that_tells_its_use_only_as_a_whole_is_believed_while_we_are_not_on_it(card, nvidia):
    card.say(nvmlDeviceGetProcessUtilization=pynvml.NVML_ERROR_NOT_SUPPORTED, busy=42, running=PLAYER)
    assert use(nvidia).value == pytest.approx(0.42)
    card.say(running=US)
    seen = use(nvidia)
    assert (seen.source, in_english(seen.note)) == (
        Source.MISSING,
        "The driver reports only the total use of this card, with skep's own use in it.",
    )


def test_a_driver_that_does_not_say_who_is_on_the_card_is_not_guessed_at(card, nvidia):
    never = pynvml.NVML_ERROR_NOT_SUPPORTED
    card.say(nvmlDeviceGetProcessUtilization=never, nvmlDeviceGetComputeRunningProcesses_v3=never, busy=42)
    assert use(nvidia).source is Source.MISSING


# --- NVIDIA: failures


def test_a_card_that_is_lost_is_silent_and_is_heard_again_when_it_is_back(card, nvidia):
    nvidia.read()
    card.say(lost=1)
    for _ in range(2):  # in use, then opened again
        seen = nvidia.read()
        assert {reading.source for reading in seen.values()} == {Source.SILENT}
        assert {in_english(reading.note) for reading in seen.values()} == {
            "The card has stopped answering. Restart the computer."
        }
    card.say(lost=0)
    assert {reading.source for reading in nvidia.read().values()} == {Source.ANSWERS}


def test_a_driver_that_was_updated_meanwhile_is_silent_in_words(card, nvidia):
    nvidia.read()
    card.say(nvmlDeviceGetMemoryInfo=999, nvmlInitWithFlags=pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)
    assert in_english(nvidia.read()[Condition.GPU_MEMORY].note) == "NVIDIA's driver library reports: Unknown Error."
    assert "no longer match" in in_english(nvidia.read()[Condition.GPU_MEMORY].note)


def test_the_library_is_let_go_of_as_often_as_it_is_opened(card, nvidia):
    before = pynvml._nvmlLib_refcount
    nvidia.read()
    nvidia.read()
    card.say(lost=1)
    nvidia.read()
    nvidia.read()
    card.say(lost=0)
    nvidia.read()
    nvidia.close()
    nvidia.close()
    assert pynvml._nvmlLib_refcount == before


# --- which device


def device(kind, index=0, memory=8, unusable=None):
    return Device(kind, index, f"{kind} {index}", memory_total=memory * GIB, unusable=unusable)


CPU = device(DeviceKind.CPU, memory=64)
SMALL, LARGE = device(DeviceKind.NVIDIA), device(DeviceKind.NVIDIA, 1, memory=24)
BROKEN = device(DeviceKind.NVIDIA, 2, memory=48, unusable=verbatim("The card has stopped answering."))
APPLE = device(DeviceKind.APPLE, memory=96)


@pytest.mark.parametrize(
    ("devices", "wanted", "chosen"),
    [
        ([CPU], "", CPU),
        ([SMALL, LARGE, BROKEN, CPU], "", LARGE),
        ([SMALL, LARGE, CPU], "cuda:0", SMALL),
        ([SMALL, LARGE, CPU], "cuda", SMALL),
        ([SMALL, LARGE, CPU], "cpu", CPU),
        ([SMALL, CPU], "cuda:7", CPU),
        ([BROKEN, CPU], "", CPU),
        ([APPLE, CPU], "", APPLE),
        ([APPLE, SMALL, CPU], "", SMALL),
        ([APPLE, SMALL, CPU], "mps", APPLE),
        ([device(DeviceKind.AMD), CPU], "cuda:0", device(DeviceKind.AMD)),
    ],
)
def test_the_device_that_is_read_is_the_one_that_trains(devices, wanted, chosen):
    assert choose(devices, wanted) == chosen


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("all", [LARGE, SMALL]),
        ("cuda:0,cuda:1", [SMALL, LARGE]),
        ("cuda:1,cuda:2", [LARGE, CPU]),
        ("cpu*3", [CPU]),
        ("", [LARGE]),
    ],
)
def test_of_several_devices_all_are_read(wanted, chosen):
    assert choose_all([SMALL, LARGE, BROKEN, CPU], wanted) == chosen


def test_without_a_card_all_is_the_processor():
    assert choose_all([CPU], "all") == [CPU]


def seen(use, celsius, memory=GIB, watts=100.0):
    values = zip(GPU, (use, memory, celsius, watts), strict=True)
    return {
        condition: answered(value) if value is not None else silent(verbatim("Gone.")) for condition, value in values
    }


def test_of_several_cards_the_busiest_the_fullest_and_the_warmest_count_and_the_power_of_all():
    joint = together([("cuda:0", seen(0.0, 60.0)), ("cuda:1", seen(0.9, 50.0, 0, 300.0)), ("cuda:2", seen(0.1, 80.0))])
    assert [joint[each].value for each in GPU] == [0.9, 0, 80.0, 500.0]


def test_the_reading_of_each_card_is_told_by_its_name():
    joint = together([("cuda:0", seen(0.0, 60.0)), ("cuda:2", seen(0.9, None, 0, 300.0))])
    assert joint[Condition.GPU_MEMORY].each == {"cuda:0": GIB, "cuda:2": 0}
    assert joint[Condition.TEMPERATURE].each == {"cuda:0": 60.0}


def test_a_card_that_does_not_answer_hides_no_other():
    lost, other = ("cuda:0", seen(None, None)), ("cuda:1", seen(0.9, 50.0))
    assert together([lost, other])[Condition.GPU_USE].value == 0.9
    assert together([lost, lost])[Condition.TEMPERATURE].source is Source.SILENT


class Listed:
    def __init__(self, *devices):
        self.devices, self.asked = devices, 0

    def list(self):
        self.asked += 1
        return self.devices


@pytest.fixture
def sensor():
    """Makes a sensor of the wanted device, which the test may change."""
    opened = []

    def make(devices, wanted=lambda: "", root=Path("/"), **more):
        opened.append(DeviceSensor(wanted, devices, OwnProcesses(), root, **more))
        return opened[-1]

    yield make
    for each in opened:
        each.close()
        each.wait(0)


@pytest.mark.parametrize("wanted", ["cuda:0", "", "all"])
def test_a_card_that_can_be_used_only_later_is_found(card, sensor, clock, wanted):
    useless = Device(DeviceKind.NVIDIA, 0, "Stand-in RTX 1", unusable=verbatim("The driver does not answer."))
    listed = [[CPU, useless]]
    made = sensor(SimpleNamespace(list=lambda: listed[-1]), lambda: wanted, clock=clock)
    made.read()
    assert made.name == CPU.name
    listed.append([CPU, replace(useless, unusable=None)])
    clock.now += LIST_SECONDS - 1
    made.read()
    assert made.name == CPU.name
    clock.now += 1
    assert made.read()[Condition.TEMPERATURE].value == 61.0
    assert made.name == "Stand-in RTX 1"


@pytest.mark.parametrize(
    ("devices", "listed", "wanted", "expected"),
    [
        ([CPU], [CPU], "", False),
        ([CPU], [CPU], "cpu*2", False),
        ([CPU], [CPU, BROKEN], "cpu", False),
        ([CPU], [CPU, BROKEN], "", True),
        ([CPU], [CPU], "cuda:1", True),
        ([BROKEN], [CPU, BROKEN], "cuda:0", False),
    ],
)
def test_devices_are_listed_again_only_while_a_card_is_waited_for(devices, listed, wanted, expected):
    assert stands_in(devices, listed, wanted) == expected


def test_this_computers_own_list_leads_to_the_card(card, sensor, tmp_path):
    card.share_with((PLAYER, 33, 1))
    made = sensor(LocalDevices(tmp_path))
    assert made.read()[Condition.GPU_USE].value == pytest.approx(0.33)
    assert made.name == "Stand-in RTX 1"


def test_a_card_that_is_lost_in_mid_training_is_not_taken_for_the_processor(card, sensor, tmp_path):
    made = sensor(LocalDevices(tmp_path))
    made.read()
    card.say(lost=1)
    assert {reading.source for reading in made.read().values()} == {Source.SILENT}
    assert {reading.source for reading in made.read().values()} == {Source.SILENT}
    card.say(lost=0)
    assert made.read()[Condition.TEMPERATURE].value == 61.0


def test_another_choice_in_the_settings_is_another_device(card, sensor):
    wanted = ["cpu"]
    listed = Listed(device(DeviceKind.NVIDIA), CPU)
    made = sensor(listed, lambda: wanted[0])
    assert made.read()[Condition.GPU_USE].source is Source.MISSING
    made.read()
    assert listed.asked == 1
    assert made.tells  # there is no card whose events it could miss
    wanted[0] = "cuda:0"
    assert made.read()[Condition.GPU_USE].source is Source.ANSWERS
    assert not made.tells
    assert listed.asked == 2


def test_all_cards_of_the_choice_are_read(sensor, monkeypatch):
    readings = {0: seen(0.0, 60.0), 1: seen(0.9, 50.0)}
    card = SimpleNamespace
    monkeypatch.setattr(
        device_sensor, "NvidiaCard", lambda index, _ours: card(read=lambda: readings[index], close=lambda: None)
    )
    made = sensor(Listed(SMALL, LARGE, CPU), lambda: "cuda:0,cuda:1")
    assert made.read()[Condition.GPU_USE].value == 0.9
    assert made.read()[Condition.TEMPERATURE].value == 60.0
    assert made.name == "nvidia 0, nvidia 1"


def test_the_card_is_let_go_of_when_the_sensor_is_closed(card, sensor):
    before = pynvml._nvmlLib_refcount
    made = sensor(Listed(SMALL, CPU))
    made.read()
    made.close()
    made.wait(60)
    assert pynvml._nvmlLib_refcount == before


# --- without a card


@pytest.mark.parametrize(
    ("degrees", "source", "note"),
    [
        (71.0, Source.ANSWERS, "the operating system"),
        (None, Source.MISSING, "This computer has no sensor for the processor's temperature, or does not report it."),
    ],
)
def test_on_the_processor_its_own_heat_counts(degrees, source, note):
    seen = ProcessorReader(lambda: degrees).read()
    assert (seen[Condition.TEMPERATURE].value, seen[Condition.TEMPERATURE].source) == (degrees, source)
    assert in_english(seen[Condition.TEMPERATURE].note) == note
    assert in_english(seen[Condition.GPU_USE].note) == "Training runs on the processor here."


def test_without_a_card_the_processor_is_read(sensor):
    seen = sensor(Listed(CPU)).read()
    assert in_english(seen[Condition.GPU_USE].note) == "Training runs on the processor here."


def test_the_processors_heat_is_not_read_more_often_than_it_changes(clock):
    readings = iter([50.0, 60.0])
    processor = ProcessorReader(lambda: next(readings), clock)

    def degrees():
        return processor.read()[Condition.TEMPERATURE].value

    assert [degrees(), degrees()] == [50.0, 50.0]
    clock.now += HEAT_SECONDS
    assert degrees() == 60.0


def test_a_mac_keeps_it_to_itself(sensor):
    assert {reading.source for reading in sensor(Listed(APPLE, CPU)).read().values()} == {Source.MISSING}


# --- AMD


@pytest.fixture
def amd(tmp_path):
    """The folder of an AMD card in a simulated sysfs."""
    folder = tmp_path / "sys/bus/pci/devices/0000:03:00.0"
    (folder / "hwmon/hwmon3").mkdir(parents=True)
    readings = {
        "vendor": "0x1002",
        "class": "0x030000",
        "mem_info_vram_total": 16 * GIB,
        "mem_info_vram_used": 3 * GIB,
        "gpu_busy_percent": 42,
        "hwmon/hwmon3/temp1_input": 55_000,
        "hwmon/hwmon3/power1_average": 120_500_000,
    }
    for name, content in readings.items():
        (folder / name).write_text(f"{content}\n")
    return folder


@pytest.fixture
def radeon(amd, sensor, tmp_path):
    return sensor(Listed(device(DeviceKind.AMD), CPU), root=tmp_path)


def test_an_amd_card_tells_everything_while_we_are_not_on_it(radeon):
    seen = radeon.read()
    assert [seen[condition].value for condition in GPU] == [0.42, 13 * GIB, 55.0, 120.5]


def test_an_amd_cards_use_is_not_told_apart_from_ours(radeon, tmp_path):
    (tmp_path / f"sys/class/kfd/kfd/proc/{US}").mkdir(parents=True)
    seen = radeon.read()
    assert seen[Condition.GPU_USE].source is Source.MISSING
    assert seen[Condition.TEMPERATURE].value == 55.0


def test_an_amd_card_without_sensors_says_so(radeon, amd):
    (amd / "hwmon/hwmon3/temp1_input").unlink()
    assert in_english(radeon.read()[Condition.TEMPERATURE].note) == "The graphics card does not report its temperature."


def test_an_amd_card_that_was_pulled_out_is_silent_until_it_is_back(radeon, amd, tmp_path):
    radeon.read()
    amd.rename(tmp_path / "elsewhere")
    seen = radeon.read()
    assert {reading.source for reading in seen.values()} == {Source.SILENT}
    (tmp_path / "elsewhere").rename(amd)
    assert radeon.read()[Condition.GPU_USE].value == 0.42
