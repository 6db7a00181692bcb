"""The contents of a notice of a new version, the times of checks, and the order of versions."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from english import in_english, raises
from skep.core import releases
from skep.core.errors import UpdateError
from skep.core.releases import Release

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
GOOD = {
    "version": "1.2.3",
    "archive": "skep-1.2.3-linux-x86_64.tar.xz",
    "unpacked_bytes": 960_000_000,
    "notes": "Faster joins.",
}
versions = st.tuples(*(st.integers(0, 10**6 - 1) for _ in range(3)))


def read(**changes):
    return releases.read_notice(json.dumps({**GOOD, **changes}).encode())


def test_a_notice_is_read_and_written_alike():
    release = Release("1.2.3", "skep-1.2.3-linux-x86_64.tar.xz", 960_000_000, "Faster joins.")
    assert read() == release
    assert releases.notice(release) == GOOD
    assert releases.archive_name("1.2.3", "linux", "x86_64") == release.archive
    assert releases.notice_name("linux", "x86_64") == "skep-linux-x86_64.json"


def test_what_a_later_version_adds_is_passed_over():
    assert read(severity="high").version == "1.2.3"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": "1.2"}, "its version is not three numbers"),
        ({"version": "1.02.3"}, "its version is not three numbers"),
        ({"version": 1}, "its version is not three numbers"),
        pytest.param({"archive": "../skep-1.2.3-linux-x86_64.tar.xz"}, "it names no archive", marks=pytest.mark.way_in),
        ({"archive": None}, "it names no archive"),
        ({"unpacked_bytes": 0}, "it does not state how much space is needed"),
        ({"unpacked_bytes": True}, "it does not state how much space is needed"),
        ({"unpacked_bytes": "960 MB"}, "it does not state how much space is needed"),
        ({"unpacked_bytes": 10**12}, "it does not state how much space is needed"),
        ({"notes": ["a"]}, "its notes are not a text"),
    ],
)
def test_what_cannot_be_is_refused_in_words(changes, words):
    with raises(UpdateError, match=words) as refused:
        read(**changes)
    assert "checks again tomorrow" in in_english(refused.value.hint)


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"\xff", b'{"version": NaN}', b" " * 20_000])
def test_what_is_no_notice_is_refused(raw):
    with pytest.raises(UpdateError):
        releases.read_notice(raw)


def test_notes_are_plain_text_and_not_endless():
    notes = read(notes="one\x1b[31m\ntwo" + "x" * 5000).notes
    assert notes.startswith("one")
    assert "\x1b" not in notes
    assert "\ntwo" in notes
    assert len(notes) <= releases.NOTES_LONGEST


@given(versions, versions)
def test_versions_are_compared_by_their_numbers(one, other):
    texts = [".".join(map(str, each)) for each in (one, other)]
    assert all(map(releases.is_version, texts))
    assert releases.is_newer(*texts) == (one > other)


def test_it_is_looked_for_once_a_day_and_after_the_clock_was_wrong():
    assert releases.is_due(None, NOW)
    assert not releases.is_due(NOW, NOW)
    assert not releases.is_due(NOW - timedelta(hours=23), NOW)
    assert releases.is_due(NOW - timedelta(hours=24), NOW)
    assert releases.is_due(NOW + timedelta(minutes=1), NOW)
