import pytest

from english import in_english
from manifests import raw
from skep.core.project.fit import lone_processor_rate, warnings
from skep.recipes.registry import parse_manifest

MANIFEST = parse_manifest(raw(sync__target_batch_size=300, sync__matchmaking_seconds=5))
AFTERMATH = "computers that join or return may need several epochs before they average with others."
SMALL = {"recipe__model": {"type": "gpt2", "layers": 2, "heads": 4, "width": 128, "vocabulary": 256}}


def test_a_long_epoch_is_no_reason_to_warn():
    assert warnings(MANIFEST, 19.0) == ()


def test_an_epoch_of_up_to_three_times_matchmaking_is_warned_of():
    assert in_english(warnings(MANIFEST, 20.0)) == (
        f"An epoch of this project takes about 15 s, and finding peers takes up to 5 s: {AFTERMATH}",
    )


def test_a_very_short_epoch_is_not_said_to_take_no_time():
    assert "takes less than 1 s, and" in in_english(warnings(MANIFEST, 1000.0)[0])


@pytest.mark.parametrize("rate", [None, 0.0, -1.0])
def test_without_a_measured_rate_a_single_processor_stands_in(rate):
    assert warnings(parse_manifest(raw()), rate) == ()
    short = parse_manifest(raw(**SMALL, recipe__sequence_length=128, sync__target_batch_size=1024))
    assert lone_processor_rate(short) == pytest.approx(150, rel=0.1)  # as measured for this model
    (sentence,) = in_english(warnings(short, rate))
    assert "takes only about 7 s even with one computer without a GPU, and finding peers takes up to 5 s" in sentence
