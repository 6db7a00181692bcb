"""The setting compute.device_limits: what may be written, and what it means."""

import pytest

from english import in_english
from skep.core.errors import SettingsError
from skep.core.policy.device_shares import DeviceLimits, ceilings, heat_of_all, limits_of, of_all
from skep.core.policy.regulators import Heat
from skep.core.settings import settings
from skep.core.settings.device_limits import read, written

KEY = "compute.device_limits"
ALL = {"heat.cap_celsius": 70, "heat.power_cap_watts": 250, "memory.leave_gpu_gb": 1.5}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cuda:0 50%",
        "cuda:0 100% 95C 1500W 255.9GB; cuda:1 5% 50C 20W 0GB",
        "cuda:1 75C; cuda:11 60C",
        "cpu:1 50%",
        "; ".join(f"cuda:{number} 100% 95C 1500W 10.5GB" for number in range(14)),
    ],
)
def test_what_is_written_is_understood_and_written_the_same(text):
    assert settings.parse(KEY, text) == text
    assert written(read(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "cuda:0",
        "cuda:0 50",
        "cuda:0 4%",
        "cuda:0 101%",
        "cuda:0 49C",
        "cuda:0 96C",
        "cuda:0 19W",
        "cuda:0 1501W",
        "cuda:0 256GB",
        "cuda:0 75C 50%",
        "cuda:0 50% 60%",
        "cuda:0 50%; cuda:0 75C",
        "cuda:0 50%; cuda:1 50%; cuda:0 75C",
        "cuda:0 50% cuda:1 50%",
        "cuda:0 50%,cuda:1 50%",
        "cuda 50%",
        "mps 50%",
        "everything 50%",
    ],
)
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(SettingsError) as refused:
        settings.parse(KEY, text)
    assert "such as cuda:0 80% 75C 200W 2GB; cuda:1 50%" in in_english(refused.value.problem.title)


def test_a_device_has_its_own_limits_and_for_the_rest_those_of_all():
    values = ALL | {KEY: "cuda:1 50% 200W"}
    assert limits_of(values, "cuda:1") == DeviceLimits(0.5, 70.0, 200.0, 1.5e9)
    assert limits_of(values, "cuda:0") == DeviceLimits(1.0, 70.0, 250.0, 1.5e9)
    assert limits_of({KEY: "cuda:0 80C 3GB"}, "cuda:0") == DeviceLimits(1.0, 80.0, 0.0, 3e9)


def test_a_device_without_a_limit_is_not_written():
    assert written({"cuda:0": {}, "cuda:1": {"C": 70.0}}) == "cuda:1 70C"


@pytest.mark.parametrize(
    ("text", "heat", "said"),
    [
        ("", 1.0, None),
        ("cuda:0 50%", 1.0, "50 % at most, your limit."),
        ("cuda:0 50%", 0.4, "40 % at most, to stay below 70 °C."),
        ("cuda:0 75C", 0.4, "40 % at most, to stay below 75 °C."),
        ("cuda:0 50%", 0.6, "50 % at most, your limit."),
    ],
)
def test_a_ceiling_says_what_it_is_for(text, heat, said):
    found = ceilings(ALL | {KEY: text}, {"cuda:0": Heat(heat)}).get("cuda:0")
    assert (found and in_english(found.reason)) == said


def test_before_any_device_is_known_nothing_is_limited():
    assert of_all({}, in_step=True) == 1.0
    assert heat_of_all({}, {}, in_step=False) == (1.0, "")
