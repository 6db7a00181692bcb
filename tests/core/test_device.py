"""The setting compute.device: one device or several, and how several are named."""

import pytest

from skep.core.device import PowerCap, chosen, first_chosen, labelled, names_of, numbered, refusals
from skep.core.errors import SettingsError
from skep.core.settings import settings
from skep.core.text import verbatim


@pytest.mark.parametrize(
    ("wanted", "names", "first"),
    [
        ("", ("",), ""),
        ("all", ("all",), ""),
        ("cpu", ("cpu",), "cpu"),
        ("cpu*2", ("cpu", "cpu"), "cpu"),
        ("cpu*16", ("cpu",) * 16, "cpu"),
        ("cuda", ("cuda",), "cuda"),
        ("cuda:1", ("cuda:1",), "cuda:1"),
        ("cuda:2,cuda:0", ("cuda:2", "cuda:0"), "cuda:2"),
        ("mps", ("mps",), "mps"),
    ],
)
def test_the_setting_names_one_or_several_devices(wanted: str, names: tuple[str, ...], first: str) -> None:
    assert settings.parse("compute.device", wanted) == wanted
    assert chosen(wanted) == names
    assert first_chosen(wanted) == first


@pytest.mark.parametrize(
    "wanted",
    [
        *(
            "cpu*0",
            "cpu*17",
            "cpu*",
            "cpu,cpu",
            "cuda,cuda:1",
            "cuda:0,",
            "cuda:0,cpu",
            "mps*2",
            "everything",
            "all,cpu",
        ),
        *("cuda:0,cuda:0", "cuda:1,cuda:0,cuda:1", "cuda:00", "cuda:0,cuda:01"),
    ],
)
def test_anything_else_is_refused(wanted: str) -> None:
    with pytest.raises(SettingsError):
        settings.parse("compute.device", wanted)


@pytest.mark.parametrize(
    ("devices", "shown"),
    [
        ((), ""),
        (("CPU",), "CPU"),
        (("CPU", "CPU"), "2 \N{MULTIPLICATION SIGN} CPU"),
        (("RTX 4090", "RTX 3090", "RTX 4090"), "2 \N{MULTIPLICATION SIGN} RTX 4090, RTX 3090"),
    ],
)
def test_each_name_is_shown_once(devices: tuple[str, ...], shown: str) -> None:
    assert names_of(devices) == shown


@pytest.mark.parametrize(
    ("devices", "names"),
    [
        (("cpu",), ("cpu",)),
        (("cpu", "cpu", "cpu"), ("cpu:0", "cpu:1", "cpu:2")),
        (("cuda:2", "cuda:0"), ("cuda:2", "cuda:0")),
        ((), ()),
    ],
)
def test_each_rank_has_a_name_of_its_own(devices: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert numbered(devices) == names


def test_a_reason_that_two_cards_give_is_told_once() -> None:
    refused = PowerCap(refused=verbatim("No."))
    assert refusals([PowerCap(200.0), refused, refused]) == [verbatim("No.")]


def test_two_cards_of_a_model_are_told_apart() -> None:
    assert settings.parse("compute.device", "cuda:1,cuda:11") == "cuda:1,cuda:11"
    assert labelled("RTX 4090", "cuda:1") == "RTX 4090 (cuda:1)"
    assert (labelled("", "cuda:1"), labelled("CPU", "cpu")) == ("cuda:1", "CPU")
