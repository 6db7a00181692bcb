"""Parsing of the arguments after a verb."""

import math
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from english import in_english, raises
from skep.cli import arguments
from skep.core.errors import BadInput

PEER = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("60s", 60), ("15m", 900), ("15min", 900), ("1h", 3600), ("1h30m", 5400), ("2d", 172_800), ("0.5h", 1800)],
)
def test_a_span_of_time_becomes_seconds(text: str, expected: float) -> None:
    assert arguments.seconds(text) == expected


@pytest.mark.parametrize(
    "text", ["", "60", "10x", "nan", "infs", "-5s", "1h 30m", "s", "1e3s", "٣s", "0s", "999d", "5m3"]
)
def test_what_is_no_span_of_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        arguments.seconds(text)
    assert in_english(refused.value.title).endswith(".")
    assert in_english(refused.value.hint)


@pytest.mark.parametrize(
    ("text", "expected"), [("30", 0.3), ("30%", 0.3), ("30 %", 0.3), ("100", 1.0), ("0", 0.0), ("12.5", 0.125)]
)
def test_a_percentage_becomes_a_fraction(text: str, expected: float) -> None:
    assert arguments.share(text) == expected


@pytest.mark.parametrize("text", ["", "nan", "inf", "-1", "101", "100.1", "30%%", "1e1", "half"])
def test_what_is_no_percentage_is_refused(text: str) -> None:
    with raises(BadInput, match="percentage"):
        arguments.share(text)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "five", "", "nan"])
def test_a_count_is_a_whole_number_of_at_least_one(text: str) -> None:
    with raises(BadInput, match="whole number"):
        arguments.count(text)
    assert arguments.count("5") == 5


@pytest.mark.parametrize("text", ["65536", "-1", "http", ""])
def test_a_port_is_checked(text: str) -> None:
    with raises(BadInput, match="port"):
        arguments.port(text)
    assert arguments.port("0") == 0


def test_peers_are_separated_by_commas_or_spaces_and_named_once() -> None:
    one, other = f"/ip4/127.0.0.1/tcp/1/p2p/{PEER}", f"/dns4/a.example/tcp/2/p2p/{PEER}"
    assert arguments.addresses(f"{one}, {other}  {one}") == (one, other)
    assert arguments.addresses("") == ()


@pytest.mark.parametrize("text", ["example.org:31337", "/a/b", "/ip4/203.0.113.7/tcp/31337", "/ip4/1.2.3/tcp/1/p2p/Q"])
def test_a_peer_that_is_no_address_is_named(text: str) -> None:
    with raises(BadInput, match=re.escape(text)):
        arguments.addresses(text)


@given(st.text(max_size=200))
def test_any_text_is_a_value_or_one_printable_sentence(text: str) -> None:
    for parse in (arguments.seconds, arguments.share, arguments.count, arguments.port):
        assert _value_or_sentence(parse, text)


def _value_or_sentence(parse: Callable[[str], float], text: str) -> bool:
    try:
        return math.isfinite(parse(text))
    except BadInput as refused:
        return in_english(refused.title).isprintable() and len(in_english(refused.title)) < 160
