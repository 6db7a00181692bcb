import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from english import in_english
from manifests import raw
from skep.core.errors import InvitationError
from skep.core.project import revocation
from skep.core.project.invitation import draft as invite
from skep.core.project.revocation import LIMIT, MOST, Revoked, check, draft, later, read
from skep.recipes.registry import parse_manifest

NOW = datetime(2026, 5, 1, 12, 0, 0, 500, tzinfo=UTC)
SOON = timedelta(seconds=1)
PEER = "QmZtmD2qt6fJot32nabSP3CUjicnypEBz7bHVDhPQt9aAy"
OTHER = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
MANIFEST = parse_manifest(raw(membership="invited"))


def sign(message):
    """A simple signature for tests: any change of the message changes it."""
    return (str(hash(message)).encode() * 64)[:64]


def verify(key, signature, message):
    return key == MANIFEST.publisher.key and signature == sign(message)


def signed(plain):
    return replace(plain, signature=sign(plain.signed_bytes))


def made(*peers, now=NOW):
    found = None
    for peer in peers:
        found = signed(draft(MANIFEST, found, peer, now))
    return found


def refusal(call, *arguments):
    with pytest.raises(InvitationError) as raised:
        call(*arguments)
    assert in_english(raised.value.title).endswith(".")
    assert in_english(raised.value.hint).endswith(".")
    return in_english(raised.value.title)


def test_what_was_drafted_and_signed_is_read_back_and_names_the_peers():
    found = read(made(PEER, OTHER).text.encode(), verify)
    assert found == made(PEER, OTHER)
    check(found, MANIFEST)
    assert [each.peer for each in found.revoked] == [PEER, OTHER]
    assert revocation.address(MANIFEST) == "https://example.org/tiny/tiny-code-lm.revoked.json"


def test_nothing_but_a_list_is_ever_signed_by_these_bytes():
    assert made(PEER).signed_bytes.startswith(b"skep revocations v1\n{")


def test_it_ends_earlier_invitations_of_the_peers_it_names_and_no_others():
    found = made(PEER)
    before, after = invite(MANIFEST, PEER, "trainer", NOW, 30), invite(MANIFEST, PEER, "trainer", NOW + SOON, 30)
    assert found.voids(before)
    assert not found.voids(after)
    assert not found.voids(invite(MANIFEST, OTHER, "trainer", NOW, 30))


def test_a_later_list_counts_as_later_even_where_the_publishers_clock_went_back():
    first = made(PEER)
    second = signed(draft(MANIFEST, first, OTHER, NOW - timedelta(days=1)))
    assert second.issued == first.issued + SOON
    assert later(first, second) == second


def test_a_peer_is_named_once_at_the_last_time():
    again = signed(draft(MANIFEST, made(PEER, OTHER), PEER, NOW + timedelta(days=1)))
    assert [each.peer for each in again.revoked] == [OTHER, PEER]
    assert again.revoked[1].until == again.issued


@pytest.mark.way_in
def test_a_step_back_is_refused():
    old, new = made(PEER), made(PEER, OTHER)
    assert later(None, old) == old
    assert later(old, old) == old
    assert later(old, new) == new
    assert refusal(later, new, old).startswith("The list of revoked invitations is of 2026-05-01, and a later one")
    assert refusal(later, new, signed(replace(new, revoked=()))).startswith("The list of revoked invitations is of")


@pytest.mark.way_in
@pytest.mark.parametrize(
    "change",
    [{"project": "other-project"}, {"issued": "2099-01-01T00:00:00Z"}, {"revoked": []}, {"signature": "A" * 86 + "=="}],
)
def test_whatever_is_changed_afterwards_is_noticed(change):
    body = json.loads(made(PEER).text) | change
    assert refusal(read, json.dumps(body).encode(), verify).endswith("was changed after it was signed.")


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        (b"", "it is not JSON (line 1)"),
        (b" " * (LIMIT + 1), "it is larger than 512 KiB"),
        (b'{"format": 2}', "project is missing"),
        (
            made(PEER).text.replace(PEER, "12D3").encode(),
            "revoked[0].peer must be a peer id as skep identity prints it (Qm…)",
        ),
        (made(PEER).text.replace('"until"', '"since"').encode(), "revoked[0].since is not a known field"),
    ],
)
def test_what_is_no_list_is_refused_in_one_sentence(content, phrase):
    assert refusal(read, content, verify) == f"The list of revoked invitations is not valid: {phrase}."


def test_the_largest_list_is_not_too_large():
    full = replace(made(PEER), revoked=tuple(Revoked(PEER, NOW) for _ in range(MOST)))
    assert len(full.text) < LIMIT
    assert "which is the most" in refusal(draft, MANIFEST, full, OTHER, NOW)


@pytest.mark.way_in
def test_only_the_list_of_this_project_and_publisher_is_used():
    assert "of another project" in refusal(check, replace(made(PEER), project="other-project"), MANIFEST)
    assert "signed with another key" in refusal(check, replace(made(PEER), publisher=b"k" * 32), MANIFEST)


def test_what_a_publisher_gets_wrong_is_one_sentence():
    assert "open to all computers" in refusal(draft, parse_manifest(raw()), None, PEER, NOW)
    assert "“me” is not a peer id" in refusal(draft, MANIFEST, None, "me", NOW)
