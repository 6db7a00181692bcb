"""Checks of the precision before any download."""

import pytest

from english import in_english
from manifests import raw
from skep.core.device import Device, DeviceKind
from skep.core.project.fit import lacking
from skep.core.settings.settings import check
from skep.core.text import verbatim
from skep.recipes.registry import parse_manifest

OLD = Device(DeviceKind.NVIDIA, 0, "Old card", bf16=False)
NEW = Device(DeviceKind.NVIDIA, 1, "New card", bf16=True)
UNKNOWN = Device(DeviceKind.AMD, 0, "Other card")
BROKEN = Device(DeviceKind.NVIDIA, 2, "Broken card", bf16=True, unusable=verbatim("No driver."))
MAC = Device(DeviceKind.APPLE, 0, "Apple GPU", bf16=False)
CPU = Device(DeviceKind.CPU, 0, "CPU")
REFUSED = "Tiny code model computes in bf16, which Old card does not support."


@pytest.mark.parametrize(
    ("precision", "devices", "wanted", "words"),
    [
        ("bf16", [OLD, CPU], "", REFUSED),
        ("bf16", [OLD, BROKEN, CPU], "", REFUSED),
        ("bf16", [OLD, CPU], "cuda", REFUSED),
        ("bf16", [OLD, NEW, CPU], "cuda:0", REFUSED),
        ("bf16", [MAC, CPU], "mps", "Tiny code model computes in bf16, which Apple GPU does not support."),
        ("bf16", [OLD, CPU], "all", REFUSED),
        ("bf16", [OLD, NEW, CPU], "cuda:0,cuda:1", REFUSED),
        ("bf16", [NEW, OLD, CPU], "cuda:1,cuda:0", REFUSED),
        ("bf16", [OLD, NEW, CPU], "all", ""),
        ("bf16", [OLD, NEW, CPU], "", ""),
        ("bf16", [OLD, NEW, CPU], "cuda:1", ""),
        ("bf16", [OLD, CPU], "cpu", ""),
        ("bf16", [OLD, CPU], "cuda:7", ""),  # the worker reports that the device does not exist
        ("bf16", [UNKNOWN, CPU], "", ""),
        ("bf16", [CPU], "", ""),
        ("fp16", [OLD, CPU], "", ""),
        ("auto", [OLD, CPU], "", ""),
    ],
)
def test_a_project_is_refused_where_every_device_is_known_to_lack_its_precision(precision, devices, wanted, words):
    assert in_english(lacking(parse_manifest(raw(precision=precision)), devices, wanted)) == words


def test_a_device_is_chosen_by_the_name_that_torch_has_for_it():
    assert [each.choice for each in (OLD, NEW, UNKNOWN, MAC, CPU)] == ["cuda:0", "cuda:1", "cuda:0", "mps", "cpu"]
    for each in (OLD, NEW, UNKNOWN, MAC, CPU):
        check("compute.device", each.choice)
