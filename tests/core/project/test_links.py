import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from english import in_english
from skep.core.errors import BadInput
from skep.core.project import links
from skep.core.project.links import JoinLink, is_link, link_to, parse
from skep.core.project.manifest import fingerprint

KEY = bytes(range(32))
DIGITS = fingerprint(KEY).replace(" ", "")
WHOLE = f"ed25519:{base64.b64encode(KEY).decode()}"
ADDRESS = "https://example.org/tiny.json"


def link(manifest=f"manifest={ADDRESS}", publisher=f"publisher={DIGITS}", head="skep://join?", more=""):
    return f"{head}{'&'.join(part for part in (manifest, publisher) if part)}{more}"


def test_a_link_is_read_back_as_it_was_made():
    made = link_to(ADDRESS, KEY)
    assert made == link()
    assert parse(made) == JoinLink(ADDRESS, DIGITS)


@given(st.text(alphabet="abc%&=+?/~ -", max_size=30), st.binary(min_size=32, max_size=32))
def test_whatever_stands_in_the_address_survives(path, key):
    address = f"https://example.org/{path.replace(' ', '')}"
    read = parse(link_to(address, key))
    assert read.manifest == address
    assert read.names(key)


def test_a_link_names_its_publisher_by_fingerprint_or_by_the_whole_key():
    by_key = parse(link(publisher=f"publisher={WHOLE.replace('+', '%2B')}"))
    for read in (parse(link()), by_key):
        assert read.names(KEY)
        assert not read.names(bytes(32))


def test_practice_on_loopback_needs_no_https():
    assert parse(link(manifest="manifest=http://127.0.0.1:8080/practice.json")).manifest.startswith("http://127")


@pytest.mark.parametrize("text", ["skep://join", "SKEP:x", "skep:"])
def test_what_is_meant_as_a_link_is_known_by_its_scheme(text):
    assert is_link(text)


@pytest.mark.parametrize("text", ["skep", "https://example.org/x.json", "skepper://join", "manifest.json"])
def test_anything_else_is_no_link(text):
    assert not is_link(text)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        (link() + "&x=" + "y" * links.LENGTH_LIMIT, "is longer than 2048 characters"),
        (link(head="skep://leave?"), "is not a join link"),
        (link(head="skep://join/x?"), "is not a join link"),
        (link(head="http://join?"), "is not a join link"),
        (link(more="#part"), "is not a join link"),
        (link(head="skep://[join?"), "is not a join link"),
        ("skep://join", "must name its manifest exactly once"),
        (link(more="&x=1&y=2"), "is not a join link"),
        (link(manifest="manifest=%ff"), "is not a join link"),
        (link(more="&colour=red"), "must name only a manifest and a publisher"),
        (link(manifest=""), "must name its manifest exactly once"),
        (link(publisher=""), "must name its publisher exactly once"),
        (link(more=f"&publisher={DIGITS}"), "must name its publisher exactly once"),
        (link(manifest="manifest=http://example.org/x.json"), "must name a manifest on the web"),
        (link(manifest="manifest=file:///etc/passwd"), "must name a manifest on the web"),
        (link(publisher="publisher=4f2a"), "must name a publisher"),
        (link(publisher=f"publisher={DIGITS.upper()}"), "must name a publisher"),
        (link(publisher="publisher=ed25519:AAAA"), "must name a publisher"),
    ],
)
def test_each_refusal_is_one_sentence(text, phrase):
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert in_english(caught.value.title).startswith(f"The link {phrase}")
    assert in_english(caught.value.title).endswith(".")
    assert links.EXAMPLE in in_english(caught.value.hint)


def test_the_example_in_the_hint_is_a_link():
    assert parse(links.EXAMPLE)


def test_what_another_skep_asks_to_be_shown_is_a_short_text_or_nothing() -> None:
    assert links.shown("skep://join?x") == "skep://join?x"
    for asked in (None, 7, ["skep:"], "s" * (links.LENGTH_LIMIT + 1)):
        assert not links.shown(asked)
