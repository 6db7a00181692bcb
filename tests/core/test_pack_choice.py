"""The pack of a computer, as a table of real cards, drivers and systems.

Sources. A: CUDA Toolkit release notes, table "CUDA Toolkit and Minimum Required Driver Version for CUDA Minor Version
Compatibility": CUDA 13.x needs driver 580 or newer, CUDA 12.x 525 (Linux) or 528.33 (Windows). B: NVIDIA's pages "CUDA
GPU Compute Capability" and "Legacy CUDA GPU Compute Capability". C: PyTorch's `.ci/manywheel/build_cuda.sh`, the
kinds of cards that its wheels for a CUDA line have code for. D: PyTorch's `.ci/docker/common/install_rocm.sh` and
`.ci/manywheel/build_rocm.sh`, likewise for ROCm. E: ROCm's "Accelerator and GPU hardware specifications" (LLVM target
names). F: PyTorch's "MPS backend": macOS 14 or newer. G: "CUDA on WSL User Guide": NVML there tells Windows' driver.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from english import in_english
from skep.core.device import Device, DeviceKind
from skep.core.pack_choice import PassedOver, choose, driver_numbers, stands_in
from skep.core.packs import Pack, PackKind, Wheel
from skep.core.text import Text

WHEELS = tuple(
    Wheel(name, "2.13.0", f"{name}-2.13.0-py3-none-any.whl", digit * 64, 10, 20)
    for name, digit in zip(
        ("torch-cuda13", "torch-cuda12", "torch-rocm", "torch-mps", "torch-cpu"), "abcde", strict=True
    )
)
CUDA_13_CARDS = ("7.5", "8.0", "8.6", "9.0", "10.0", "12.0")
CUDA_12_CARDS = ("5.0", "6.0", "7.0", "7.5", "8.0", "8.6", "9.0")
ROCM_CARDS = ("gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201")


def pack(name, kind, wheel, **facts):
    return Pack(name, kind, "2.13.0", (wheel,), **facts)


CUDA_13 = pack("cuda-13.0", PackKind.CUDA, WHEELS[0], driver=(580,), cards=CUDA_13_CARDS)
CUDA_12 = pack("cuda-12.6", PackKind.CUDA, WHEELS[1], driver=(525,), cards=CUDA_12_CARDS)
CUDA_12_ON_WINDOWS = pack("cuda-12.6", PackKind.CUDA, WHEELS[1], driver=(528, 33), cards=CUDA_12_CARDS)
ROCM = pack("rocm-6.4", PackKind.ROCM, WHEELS[2], cards=ROCM_CARDS)
MPS = pack("mps", PackKind.MPS, WHEELS[3], driver=(14, 0))
CPU = pack("cpu", PackKind.CPU, WHEELS[4])
# in an order that is not the one of preference
LINUX, WINDOWS, MAC = (CPU, CUDA_12, ROCM, CUDA_13), (CPU, CUDA_12_ON_WINDOWS, CUDA_13), (CPU, MPS)
PROCESSOR = Device(DeviceKind.CPU, 0, "AMD Ryzen 7 5800X")


def nvidia(name, architecture, driver, **facts):
    return Device(DeviceKind.NVIDIA, 0, f"NVIDIA {name}", driver=driver, architecture=architecture, **facts)


def amd(name, architecture, **facts):
    return Device(DeviceKind.AMD, 0, f"AMD {name}", driver="amdgpu", architecture=architecture, **facts)


def apple(name, macos):
    return Device(DeviceKind.APPLE, 0, f"Apple {name}", driver=f"macOS {macos}")


NO_DRIVER = Text("nvidia.no_nvidia_driver_installed")
NO_KFD = Text("amd.driver_offers_no_computing_dev")
COMPUTERS = [
    # system, cards, pack
    (LINUX, [nvidia("GeForce RTX 5090", "12.0", "580.65.06")], "cuda-13.0"),  # A, B, C
    (LINUX, [nvidia("GeForce RTX 5090", "12.0", "570.86.15")], "cpu"),  # A: no CUDA 13; C: CUDA 12.6 has no 12.0
    (LINUX, [nvidia("GeForce RTX 4090", "8.9", "580.82.07")], "cuda-13.0"),  # A, B, C: runs the code for 8.6
    (LINUX, [nvidia("GeForce RTX 4060 Laptop GPU", "8.9", "550.163.01")], "cuda-12.6"),  # A, B, C
    (LINUX, [nvidia("GeForce RTX 3090", "8.6", "590.44.01")], "cuda-13.0"),  # A, B, C
    (LINUX, [nvidia("GeForce RTX 3060", "8.6", "535.183.01")], "cuda-12.6"),  # A, B, C
    (LINUX, [nvidia("GeForce RTX 3060", "8.6", "470.256.02")], "cpu"),  # A: CUDA 11 only
    (LINUX, [nvidia("GeForce RTX 2080 Ti", "7.5", "580.65.06")], "cuda-13.0"),  # A, B, C
    (LINUX, [nvidia("GeForce GTX 1660 SUPER", "7.5", "525.60.13")], "cuda-12.6"),  # A, B, C
    (LINUX, [nvidia("TITAN V", "7.0", "580.65.06")], "cuda-12.6"),  # B, C: no Volta in CUDA 13
    (LINUX, [nvidia("Tesla V100-SXM2-32GB", "7.0", "535.104.05")], "cuda-12.6"),  # B, C
    (LINUX, [nvidia("GeForce GTX 1080 Ti", "6.1", "580.65.06")], "cuda-12.6"),  # B, C: 6.1 runs the code for 6.0
    (LINUX, [nvidia("Tesla P100-PCIE-16GB", "6.0", "550.54.15")], "cuda-12.6"),  # B, C
    (LINUX, [nvidia("GeForce GTX 970", "5.2", "550.54.15")], "cuda-12.6"),  # B, C: 5.2 runs the code for 5.0
    (LINUX, [nvidia("Tesla K80", "3.7", "470.256.02")], "cpu"),  # A, B: Kepler's last driver is 470
    (LINUX, [nvidia("A100-SXM4-80GB", "8.0", "580.65.06")], "cuda-13.0"),  # A, B, C
    (LINUX, [nvidia("H100 80GB HBM3", "9.0", "535.129.03")], "cuda-12.6"),  # A, B, C
    (LINUX, [nvidia("H200", "9.0", "580.95.05")], "cuda-13.0"),  # A, B, C
    (LINUX, [nvidia("B200", "10.0", "580.65.06")], "cuda-13.0"),  # A, B, C
    (LINUX, [nvidia("GB10", "12.1", "580.95.05")], "cuda-13.0"),  # B, C: 12.1 runs the code for 12.0
    (LINUX, [nvidia("Thor", "11.0", "580.00")], "cpu"),  # B, C: no code for 11.0 in the wheels for x86-64
    (LINUX, [nvidia("GeForce RTX 3090", None, None, unusable=NO_DRIVER)], "cpu"),  # nouveau or no driver at all
    (LINUX, [nvidia("GeForce RTX 4070", "8.9", "581.29")], "cuda-13.0"),  # A, G: WSL with Windows' driver
    (LINUX, [amd("Radeon RX 7900 XTX", "gfx1100")], "rocm-6.4"),  # D, E
    (LINUX, [amd("Radeon RX 6800 XT", "gfx1030")], "rocm-6.4"),  # D, E
    (LINUX, [amd("Radeon RX 6700 XT", "gfx1031")], "cpu"),  # D, E: no code for gfx1031
    (LINUX, [amd("Radeon RX 9070 XT", "gfx1201")], "rocm-6.4"),  # D, E
    (LINUX, [amd("Instinct MI210", "gfx90a")], "rocm-6.4"),  # D, E
    (LINUX, [amd("Instinct MI300X", "gfx942")], "rocm-6.4"),  # D, E
    (LINUX, [amd("Radeon RX 580", "gfx803")], "cpu"),  # D, E: no Polaris
    (LINUX, [amd("Radeon Graphics", "gfx1036", unusable=NO_KFD)], "cpu"),  # E: graphics in a Ryzen 7000
    (LINUX, [nvidia("GeForce RTX 3060", "8.6", "580.65.06"), amd("Radeon RX 7900 XTX", "gfx1100")], "cuda-13.0"),  # A-E
    (LINUX, [], "cpu"),
    (WINDOWS, [nvidia("GeForce RTX 4080", "8.9", "581.29")], "cuda-13.0"),  # A, B, C
    (WINDOWS, [nvidia("GeForce RTX 3070", "8.6", "560.94")], "cuda-12.6"),  # A, B, C
    (WINDOWS, [nvidia("GeForce RTX 3070", "8.6", "528.02")], "cpu"),  # A: older than 528.33
    (WINDOWS, [nvidia("GeForce GTX 1070", "6.1", "581.29")], "cuda-12.6"),  # A, B, C
    (WINDOWS, [amd("Radeon RX 7900 XTX", "gfx1100")], "cpu"),  # D: PyTorch has no ROCm wheels for Windows
    (MAC, [apple("M3 Pro", "15.2")], "mps"),  # F
    (MAC, [apple("M1", "13.7.1")], "cpu"),  # F
    (MAC, [], "cpu"),  # a Mac with an Intel processor
]


@pytest.mark.parametrize(("packs", "cards", "name"), COMPUTERS)
def test_each_computer_gets_its_pack(packs, cards, name):
    found = choose([*cards, PROCESSOR], packs)
    assert found.pack is not None
    assert found.pack.name == name
    assert found.device == (PROCESSOR if name == "cpu" else cards[0])
    assert in_english(found.why)
    better = [each.name for each in packs if each.kind is not PackKind.CPU]
    assert {each.pack.name for each in found.passed_over} <= set(better)
    assert all(in_english(each.why) for each in found.passed_over)
    if name == "cpu":
        assert len(found.passed_over) == len(better)


def test_the_table_is_long_enough():
    assert len(COMPUTERS) >= 25


def said(cards, packs=LINUX, **options):
    found = choose([*cards, PROCESSOR], packs, **options)
    return {each.pack.name: in_english(each.why) for each in found.passed_over}, in_english(found.why)


def test_what_was_found_is_said():
    assert said([nvidia("GeForce GTX 1080 Ti", "6.1", "580.65.06")]) == (
        {"cuda-13.0": "The pack has no code for NVIDIA GeForce GTX 1080 Ti (6.1)."},
        "The pack cuda-12.6 suits NVIDIA GeForce GTX 1080 Ti with driver 580.65.06.",
    )
    over, why = said([nvidia("GeForce RTX 3060", "8.6", "470.256.02")])
    assert over == {
        "cuda-13.0": "NVIDIA GeForce RTX 3060 has driver 470.256.02; the pack needs 580 or newer.",
        "cuda-12.6": "NVIDIA GeForce RTX 3060 has driver 470.256.02; the pack needs 525 or newer.",
        "rocm-6.4": "This computer has no AMD device.",
    }
    assert why == "The pack cpu computes on the processor."
    assert said([amd("Radeon RX 7900 XTX", "gfx1100")])[1] == "The pack rocm-6.4 suits AMD Radeon RX 7900 XTX."


def test_a_card_that_cannot_be_used_says_why():
    over, _ = said([nvidia("GeForce RTX 3090", None, None, unusable=NO_DRIVER)])
    assert over["cuda-13.0"] == f"NVIDIA GeForce RTX 3090 cannot be used: {in_english(NO_DRIVER)}"


def test_what_the_driver_does_not_tell_is_not_guessed():
    assert said([nvidia("card", "8.6", None)])[0]["cuda-13.0"] == (
        "The driver of NVIDIA card does not report its version; the pack needs 580 or newer."
    )
    assert said([nvidia("card", None, "580.65.06")])[0]["cuda-13.0"] == (
        "The driver of NVIDIA card does not report what kind of card it is."
    )


def test_of_several_cards_the_first_that_suits_computes():
    old, new = nvidia("GeForce GTX 1080", "6.1", "580.65.06"), nvidia("GeForce RTX 3090", "8.6", "580.65.06")
    found = choose([old, new, PROCESSOR], LINUX)
    assert (found.pack, found.device, found.passed_over) == (CUDA_13, new, ())


def test_a_pack_that_failed_is_passed_over_with_its_reason():
    card = nvidia("GeForce RTX 3090", "8.6", "580.65.06")
    fell = Text("packs.none_suits")
    over, why = said([card], failed={CUDA_13.digest: fell, CUDA_12.digest: fell})
    assert list(over) == ["cuda-13.0", "cuda-12.6", "rocm-6.4"]
    assert over["cuda-12.6"] == in_english(fell)
    assert why == "The pack cpu computes on the processor."


def test_no_pack_suits_where_none_is_offered():
    found = choose([PROCESSOR], ())
    assert (found.pack, found.device, in_english(found.why)) == (
        None,
        None,
        "No compute pack suits this computer.",
    )
    assert choose([], (CPU,)).pack is None


def test_a_driver_is_as_new_as_its_numbers_say():
    asked = pack("cuda-13.0", PackKind.CUDA, WHEELS[0], driver=(580, 0))
    assert choose([nvidia("card", "8.6", "580")], (asked,)).pack is asked
    assert choose([nvidia("card", "8.6", "1000.1")], (asked,)).pack is asked
    assert choose([nvidia("card", "8.6", "579.99.99")], (asked,)).pack is None


def test_code_for_one_stepping_runs_on_that_only():
    asked = pack("cuda-13.0", PackKind.CUDA, WHEELS[0], cards=("9.0a",))
    assert choose([nvidia("H100 PCIe", "9.0", "580.65.06")], (asked,)).pack is None


@given(st.text())
def test_any_driver_version_is_read(text):
    assert all(number >= 0 for number in driver_numbers(text))


def test_versions_are_read_from_what_the_systems_tell():
    assert driver_numbers("580.65.06") == (580, 65, 6)
    assert driver_numbers("macOS 14.5") == (14, 5)
    assert driver_numbers(None) == driver_numbers("amdgpu") == ()


@pytest.mark.parametrize(
    ("used", "chosen", "over", "expected"),
    [
        (CUDA_13, CPU, [CUDA_13], True),
        (CUDA_13, CPU, [CUDA_12], True),  # of the same kind: the one that was used may be older than the list
        (CUDA_13, CUDA_12, [CUDA_13], False),
        (CUDA_13, CPU, [], False),
        (CPU, CUDA_13, [], False),
        (None, CPU, [CUDA_13], False),
    ],
)
def test_a_pack_stands_in_for_one_of_a_kind_that_was_passed_over(used, chosen, over, expected):
    assert stands_in(used, chosen, [PassedOver(each, Text("packs.none_suits")) for each in over]) == expected
