"""Graphics cards of every kind and condition: a simulated sysfs, and the real pynvml with a stand-in library."""

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from english import in_english
from manifests import raw
from nvml_card import LIBRARY
from skep.adapters.gpu import amd, cpu, nvidia, pci
from skep.adapters.gpu.devices import LocalDevices
from skep.core.device import DeviceKind

GIB = 1 << 30
NVIDIA_CARD = {"vendor": "0x10de", "class": "0x030000"}
AMD_CARD = {"vendor": "0x1002", "class": "0x030000"}
LIST = """
import dataclasses, json, sys
from pathlib import Path
from skep.adapters.gpu.devices import LocalDevices
print(json.dumps([dataclasses.asdict(device) for device in LocalDevices(Path(sys.argv[1])).list()]))
"""


@pytest.fixture
def root(tmp_path):
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def plug(root):
    """Adds a card to the simulated bus: its files by name, and its driver."""

    def add(address, files, driver=None):
        card = root / "sys/bus/pci/devices" / address
        card.mkdir()
        for name, content in files.items():
            (card / name).parent.mkdir(parents=True, exist_ok=True)
            (card / name).write_text(f"{content}\n")
        if driver:
            held_by = root / "sys/bus/pci/drivers" / driver
            held_by.mkdir(parents=True, exist_ok=True)
            (card / "driver").symlink_to(held_by)
        return card

    return add


@pytest.fixture
def listed(root, library_folder):
    """Lists the NVIDIA cards in a process that loads the stand-in instead of the driver's library."""

    def run(library=library_folder, **behaviour):
        environ = os.environ | {"LD_LIBRARY_PATH": str(library)}
        environ |= {name: str(code) for name, code in behaviour.items()}
        told = subprocess.run(
            [sys.executable, "-W", "error", "-c", LIST, str(root)],
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return [SimpleNamespace(**device) for device in json.loads(told.stdout) if device["kind"] == "nvidia"]

    return run


# --- NVIDIA, with its library


def test_a_healthy_card_is_listed_with_every_reading(plug, listed):
    plug("0000:01:00.0", NVIDIA_CARD, driver="nvidia")
    (card,) = listed()
    assert (card.index, card.name, card.driver) == (0, "Stand-in RTX 1", "570.86.15")
    assert (card.memory_total, card.memory_free) == (24 * GIB, 20 * GIB)
    assert (card.temperature, card.power, card.utilisation) == (61.0, 187.5, 0.37)
    assert card.unusable is None


def test_only_cards_from_ampere_on_compute_in_bfloat16(listed):
    assert [listed(NVML_STUB_MAJOR=major)[0].bf16 for major in (7, 8, 12)] == [False, True, True]
    assert listed(nvmlDeviceGetCudaComputeCapability=3)[0].bf16 is None


def test_a_card_s_architecture_is_its_compute_capability(listed):
    assert [listed(NVML_STUB_MAJOR=major)[0].architecture for major in (7, 12)] == ["7.5", "12.5"]
    assert listed(nvmlDeviceGetCudaComputeCapability=3)[0].architecture is None


REFUSED = """
import json, sys
from skep import bootstrap
from skep.services import joining
from skep.adapters.storage.paths import Home
from skep.core.errors import DoesNotFit
from skep.core.project.manifest import VerifiedProject
from skep.recipes.registry import parse_manifest
from skep.core.text import as_data
home = Home(__import__("pathlib").Path(sys.argv[1]))
project = VerifiedProject("tiny", "Tiny", "tiny-0", "", 1, "", parse_manifest(sys.argv[2].encode()), sys.argv[2])
try:
    joining.check_fit(home, project)
except DoesNotFit as error:
    print(json.dumps(as_data(error.title)))
"""


def test_a_project_in_bf16_is_refused_before_the_join_on_an_older_card(home, library_folder):
    def refusal(major, precision):
        done = subprocess.run(
            [sys.executable, "-c", REFUSED, str(home.root), raw(precision=precision).decode()],
            env=os.environ | {"LD_LIBRARY_PATH": str(library_folder), "NVML_STUB_MAJOR": major},
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        return in_english(json.loads(done.stdout)) if done.stdout else ""

    assert refusal("7", "bf16") == "Tiny code model computes in bf16, which Stand-in RTX 1 does not support."
    assert refusal("7", "fp16") == refusal("8", "bf16") == ""


def test_an_older_driver_tells_its_temperature_the_older_way(listed):
    (card,) = listed(nvmlDeviceGetTemperatureV=13)
    assert card.temperature == 62.0


@pytest.mark.parametrize("code", [3, 4, 999])
def test_a_reading_that_is_refused_is_left_out_and_the_card_stays_usable(listed, code):
    (card,) = listed(nvmlDeviceGetPowerUsage=code)
    assert (card.power, card.unusable) == (None, None)
    assert (card.temperature, card.utilisation) == (61.0, 0.37)


def test_a_card_that_tells_nothing_is_still_listed(listed):
    calls = "Name MemoryInfo TemperatureV Temperature PowerUsage UtilizationRates PciInfo_v3"
    (card,) = listed(**{f"nvmlDeviceGet{call}": 999 for call in calls.split()}, nvmlSystemGetDriverVersion=999)
    assert (card.name, card.unusable) == ("NVIDIA graphics card", None)
    assert (card.memory_total, card.temperature, card.driver) == (None, None, None)


def test_a_library_that_ends_badly_does_not_cost_the_list(listed):
    (card,) = listed(nvmlShutdown=999)
    assert card.name == "Stand-in RTX 1"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (9, "The NVIDIA driver is installed but not loaded. Restarting the computer often helps."),
        (
            18,
            "The NVIDIA driver was updated while it was running, so driver and library no longer match. Restart the computer.",
        ),
        (4, "You have no permission to use it: the files /dev/nvidia* cannot be opened."),
        (999, "NVIDIA's driver library reports: Unknown Error."),
    ],
)
def test_a_library_that_does_not_start_is_the_reason_for_each_card(plug, listed, code, words):
    plug("0000:01:00.0", NVIDIA_CARD)
    plug("0000:02:00.0", NVIDIA_CARD | {"class": "0x030200"})
    first, second = listed(nvmlInitWithFlags=code)
    assert (in_english(first.unusable), in_english(second.unusable)) == (words, words)
    assert (first.index, second.index) == (0, 1)
    assert first.name == "NVIDIA graphics card at 0000:01:00.0"


def test_a_library_that_fails_later_is_the_reason_too(plug, listed):
    plug("0000:01:00.0", NVIDIA_CARD, driver="nvidia")
    (card,) = listed(nvmlDeviceGetCount_v2=999)
    assert in_english(card.unusable) == "NVIDIA's driver library reports: Unknown Error."


def test_a_mismatch_is_told_even_where_no_bus_can_be_seen(listed):
    (card,) = listed(nvmlInitWithFlags=18)
    assert card.name == "NVIDIA graphics card"
    assert "no longer match" in in_english(card.unusable)


def test_an_idle_driver_without_a_card_is_no_card(listed):
    assert listed(nvmlInitWithFlags=9) == []


def test_a_card_that_was_lost_is_told_beside_the_one_that_works(plug, listed):
    plug("0000:01:00.0", NVIDIA_CARD, driver="nvidia")
    plug("0000:02:00.0", NVIDIA_CARD, driver="nvidia")
    working, lost = listed(NVML_STUB_CARDS=2, NVML_STUB_FIRST_CARD=15)
    assert (working.index, working.name, in_english(working.unusable)) == (1, "Stand-in RTX 2", None)
    assert in_english(lost.unusable) == "The card has stopped answering. Restart the computer."
    assert lost.name.endswith("0000:01:00.0")
    assert lost.index != working.index


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        (None, "No driver is loaded for it."),
        ("nvidia", "The NVIDIA driver does not support it; the card may be too old for this driver."),
        ("nouveau", "It uses the nouveau driver, which cannot train. Install the NVIDIA driver."),
        ("vfio-pci", "It is reserved for a virtual machine."),
    ],
)
def test_a_card_beside_a_working_one_has_its_own_reason(plug, listed, driver, words):
    plug("0000:01:00.0", NVIDIA_CARD, driver="nvidia")
    plug("0000:0a:00.0", NVIDIA_CARD, driver=driver)
    working, other = listed()
    assert (in_english(working.unusable), in_english(other.unusable)) == (None, words)
    assert (working.index, other.index) == (0, 1)


def test_the_kernel_knows_the_name_of_a_card_that_its_library_cannot_reach(root, plug, listed):
    plug("0000:01:00.0", NVIDIA_CARD, driver="nvidia")
    known = root / "proc/driver/nvidia/gpus/0000:01:00.0"
    known.mkdir(parents=True)
    (known / "information").write_text("Model: \t\t NVIDIA GeForce RTX 4090\nIRQ:   \t\t 160\n")
    (card,) = listed(nvmlInitWithFlags=18)
    assert card.name == "NVIDIA GeForce RTX 4090"


# --- NVIDIA, without its library


@pytest.fixture
def no_library(tmp_path):
    """A folder with a file that is no library, used instead of one that this computer may have."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / LIBRARY).write_text("no library")
    return tmp_path / "lib"


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        (None, "No NVIDIA driver is installed."),
        (
            "nvidia",
            "The NVIDIA driver is loaded, but its library libnvidia-ml.so.1 is missing. Install the driver's libraries.",
        ),
        ("nouveau", "It uses the nouveau driver, which cannot train. Install the NVIDIA driver."),
    ],
)
def test_a_missing_library_is_told_by_what_holds_the_card(listed, plug, no_library, driver, words):
    plug("0000:01:00.0", NVIDIA_CARD, driver=driver)
    (card,) = listed(no_library)
    assert in_english(card.unusable) == words


def test_the_real_library_is_missing_without_a_complaint_where_there_is_no_card(root):
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", LIST, str(root)],
        env={name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert told.stderr == ""
    assert json.loads(told.stdout)[-1]["kind"] == "cpu"


# --- the bus


def test_only_graphics_of_the_vendor_are_cards(root, plug):
    plug("0000:01:00.0", NVIDIA_CARD)
    plug("0000:01:00.1", {"vendor": "0x10de", "class": "0x040300"})  # the card's audio device
    plug("0000:02:00.0", {"vendor": "0x8086", "class": "0x030000"})
    plug("0000:03:00.0", {"vendor": "0x10de"})
    assert [card.address for card in pci.cards(root, pci.NVIDIA)] == ["0000:01:00.0"]


def test_a_computer_without_a_bus_has_no_cards(tmp_path):
    assert pci.cards(tmp_path, pci.NVIDIA) == []


@pytest.mark.parametrize("content", ["", "many", "12 34", "\udc80".encode("utf-8", "surrogatepass")])
def test_a_reading_that_is_no_number_is_no_reading(tmp_path, content):
    path = tmp_path / "reading"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert pci.number(path) is None


# --- AMD


READINGS = AMD_CARD | {
    "mem_info_vram_total": 16 * GIB,
    "mem_info_vram_used": 3 * GIB,
    "gpu_busy_percent": 42,
    "hwmon/hwmon3/temp1_input": 55_000,
    "hwmon/hwmon3/power1_average": 120_500_000,
}


@pytest.fixture
def kfd(root):
    (root / "dev").mkdir()
    (root / "dev/kfd").touch(mode=0o600)
    return root / "dev/kfd"


def test_an_amd_card_is_listed_with_every_reading(root, plug, kfd):
    plug("0000:03:00.0", READINGS | {"product_name": "Instinct MI210"}, driver="amdgpu")
    (root / "sys/module/amdgpu").mkdir(parents=True)
    (root / "sys/module/amdgpu/version").write_text("6.12.12\n")
    (card,) = amd.devices(root)
    assert (card.kind, card.name, card.driver) == (DeviceKind.AMD, "Instinct MI210", "amdgpu 6.12.12")
    assert (card.memory_total, card.memory_free) == (16 * GIB, 13 * GIB)
    assert (card.temperature, card.power, card.utilisation) == (55.0, 120.5, 0.42)
    assert card.unusable is None


def test_an_amd_card_without_sensors_has_no_readings(root, plug, kfd):
    plug("0000:03:00.0", AMD_CARD | {"hwmon/hwmon1/temp1_input": ""}, driver="amdgpu")
    (card,) = amd.devices(root)
    assert (card.memory_total, card.memory_free, card.temperature) == (None, None, None)
    assert (card.power, card.utilisation, card.unusable) == (None, None, None)
    assert (card.name, card.driver) == ("AMD graphics card at 0000:03:00.0", "amdgpu")


@pytest.mark.parametrize(
    ("version", "name"),
    [(110000, "gfx1100"), (100300, "gfx1030"), (90010, "gfx90a"), (90402, "gfx942"), (120001, "gfx1201"), (0, None)],
)
def test_an_amd_card_s_architecture_is_in_the_topology(root, plug, kfd, version, name):
    plug("0000:03:00.0", AMD_CARD, driver="amdgpu")
    plug("0000:c4:00.1", AMD_CARD, driver="amdgpu")
    nodes = root / "sys/class/kfd/kfd/topology/nodes"
    # node 0 is the processor; the card at 03:00.0 is node 1, and none is the other one
    for number, (location, told) in enumerate([(0, 0), (0x0300, version)]):
        (nodes / str(number)).mkdir(parents=True)
        (nodes / str(number) / "properties").write_text(
            f"cpu_cores_count 0\ngfx_target_version {told}\nlocation_id {location}\ndomain 0\n"
        )
    assert [card.architecture for card in amd.devices(root)] == [name, None]
    (nodes / "1/properties").write_text(f"gfx_target_version {version}\nlocation_id {0xC401}\n")
    assert [card.architecture for card in amd.devices(root)] == [None, name]
    (nodes / "1/properties").write_text(f"gfx_target_version {version}\nlocation_id {0xC401}\ndomain 1\n")
    assert [card.architecture for card in amd.devices(root)] == [None, None]


def test_newer_amd_cards_tell_their_power_under_another_name(root, plug, kfd):
    plug("0000:03:00.0", AMD_CARD | {"hwmon/hwmon1/power1_input": 30_000_000}, driver="amdgpu")
    assert amd.devices(root)[0].power == 30.0


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        (None, "No driver is loaded for it."),
        ("radeon", "It uses the old radeon driver, which cannot train."),
        ("vfio-pci", "It is reserved for a virtual machine."),
        ("amdgpu", "Its driver does not support computing: /dev/kfd is missing. Install AMD's ROCm driver."),
    ],
)
def test_an_amd_card_that_cannot_compute_says_why(root, plug, driver, words):
    plug("0000:03:00.0", AMD_CARD, driver=driver)
    assert in_english(amd.devices(root)[0].unusable) == words


@contextlib.contextmanager
def as_nobody():
    """Without root's rights; does nothing for other users."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_an_amd_card_closed_to_the_user_says_so(plug, root, kfd):
    plug("0000:03:00.0", AMD_CARD, driver="amdgpu")
    with tempfile.TemporaryDirectory(prefix="open-") as folder:
        copy = Path(folder) / "root"  # the user "nobody" has no access to pytest's folders
        shutil.copytree(root, copy, symlinks=True)
        for place in (copy, copy.parent):
            place.chmod(0o755)
        (copy / "dev/kfd").chmod(0o000)
        with as_nobody():
            (card,) = amd.devices(copy)
    assert card.unusable is not None
    assert "Join the group render" in in_english(card.unusable)


@pytest.fixture
def amdsmi(tmp_path, monkeypatch):
    """Creates a module amdsmi that Python can import."""

    def put(source):
        folder = tmp_path / "amdsmi_here"
        folder.mkdir()
        (folder / "amdsmi.py").write_text(source)
        monkeypatch.syspath_prepend(folder)
        monkeypatch.delitem(sys.modules, "amdsmi", raising=False)

    yield put
    sys.modules.pop("amdsmi", None)


WORKING_AMDSMI = """
amdsmi_init = amdsmi_shut_down = lambda: None
amdsmi_get_processor_handles = lambda: ["one"]
amdsmi_get_gpu_device_bdf = lambda handle: "0000:03:00.0"
amdsmi_get_gpu_asic_info = lambda handle: {"market_name": "Radeon RX 7900 XTX"}
"""


def test_amdsmi_knows_the_market_name(root, plug, kfd, amdsmi):
    amdsmi(WORKING_AMDSMI)
    plug("0000:03:00.0", READINGS, driver="amdgpu")
    assert amd.devices(root)[0].name == "Radeon RX 7900 XTX"


@pytest.mark.parametrize(
    "source",
    [
        "raise KeyError('libamd_smi.so')",
        "raise OSError('libamd_smi.so: cannot open shared object file')",
        "raise ImportError('no library')",
        WORKING_AMDSMI + "\ndef amdsmi_init(): raise RuntimeError('not initialised')",
        WORKING_AMDSMI + "\ndef amdsmi_get_processor_handles(): raise RuntimeError('no device')",
        WORKING_AMDSMI + "\namdsmi_get_gpu_asic_info = lambda handle: {}",
    ],
)
def test_a_broken_amdsmi_costs_only_the_name(root, plug, kfd, amdsmi, source):
    amdsmi(source)
    plug("0000:03:00.0", READINGS, driver="amdgpu")
    (card,) = amd.devices(root)
    assert (card.name, card.temperature, card.unusable) == ("AMD graphics card at 0000:03:00.0", 55.0, None)


# --- Apple


@pytest.fixture
def sysctl(tmp_path, monkeypatch):
    """Creates a program sysctl on the PATH that runs this line of shell."""

    def put(line):
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "sysctl").write_text(f"#!/bin/sh\n{line}\n")
        (folder / "sysctl").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    return put


def test_an_apple_chip_shares_the_computers_memory(sysctl):
    sysctl('test "$*" = "-n machdep.cpu.brand_string" && echo "Apple M2 Pro"')
    (chip,) = cpu.apple_devices("Darwin", "arm64")
    assert (chip.kind, chip.name, in_english(chip.unusable)) == (DeviceKind.APPLE, "Apple M2 Pro", None)
    assert chip.memory_total == psutil.virtual_memory().total
    assert (chip.temperature, chip.power, chip.utilisation) == (None, None, None)


def test_an_apple_chip_whose_name_cannot_be_had_is_still_listed(sysctl):
    sysctl("exit 1")
    assert cpu.apple_devices("Darwin", "arm64")[0].name == "Apple chip"


@pytest.mark.parametrize(("system", "machine"), [("Linux", "aarch64"), ("Darwin", "x86_64"), ("Linux", "arm64")])
def test_other_computers_have_no_apple_chip(system, machine):
    assert cpu.apple_devices(system, machine) == []


# --- the processor


def test_the_processor_is_named_as_linux_names_it(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nmodel name\t: Example 9000: Eight-Core\n\nprocessor\t: 1\n")
    (processor,) = cpu.devices(tmp_path)
    assert processor.name == "Example 9000: Eight-Core"
    assert processor.memory_total == psutil.virtual_memory().total
    assert 0 < processor.memory_free <= processor.memory_total
    assert 0 <= processor.utilisation <= 1
    assert (in_english(processor.unusable), processor.power) == (None, None)


def test_a_processor_without_a_name_is_named_by_its_kind(tmp_path):
    assert cpu.devices(tmp_path)[0].name == f"{os.uname().machine} processor"


def reading(current):
    return SimpleNamespace(current=current)


@pytest.mark.parametrize(
    ("sensors", "expected"),
    [
        ({}, None),
        ({"coretemp": [reading(51.0), reading(58.0)], "nvme": [reading(70.0)]}, 58.0),
        ({"k10temp": [reading(None), reading(0.0)]}, None),
        ({"nvme": [reading(40.0)]}, None),
    ],
)
def test_the_processors_heat_is_its_own_hottest_sensor(sensors, expected):
    assert cpu.hottest(sensors) == expected


@pytest.mark.parametrize("behaviour", ["missing", "refused"])
def test_a_system_without_sensors_has_no_heat(tmp_path, monkeypatch, behaviour):
    def refuse():
        raise PermissionError

    if behaviour == "missing":
        monkeypatch.delattr(psutil, "sensors_temperatures", raising=False)
    else:
        monkeypatch.setattr(psutil, "sensors_temperatures", refuse, raising=False)
    assert cpu.devices(tmp_path)[0].temperature is None


# --- all together


def test_this_computer_has_at_least_a_processor():
    last = LocalDevices().list()[-1]
    assert (last.kind, in_english(last.unusable)) == (DeviceKind.CPU, None)


def test_whatever_goes_wrong_with_one_kind_the_others_are_listed(root, plug, kfd, monkeypatch):
    plug("0000:03:00.0", READINGS, driver="amdgpu")

    def fail(_root):
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    monkeypatch.setattr(nvidia, "devices", fail)
    broken, card, _processor = LocalDevices(root).list()
    assert (broken.kind, broken.name) == (DeviceKind.NVIDIA, "NVIDIA graphics")
    assert in_english(broken.unusable).startswith("It could not be examined: ")
    assert card.temperature == 55.0


def test_a_device_can_be_told_as_json():
    assert json.dumps([dataclasses.asdict(device) for device in LocalDevices().list()])


def test_looking_for_devices_loads_no_torch():
    told = subprocess.run(
        [sys.executable, "-c", LIST + "print('torch' in sys.modules)", "/"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert told.stdout.splitlines()[-1] == "False"
