import json
from datetime import UTC, datetime, timedelta

import pytest

from english import in_english
from fakes import make_project
from manifests import raw
from skep.core.errors import InvitationError
from skep.core.project import invitation
from skep.core.project.invitation import LEEWAY, LIMIT, Invitation, check, draft, is_good, missing, read
from skep.recipes.registry import parse_manifest

NOW = datetime(2026, 5, 1, 12, 0, 0, 500, tzinfo=UTC)
PEER = "QmZtmD2qt6fJot32nabSP3CUjicnypEBz7bHVDhPQt9aAy"
OTHER = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
MANIFEST = parse_manifest(raw(membership="invited"))


def sign(message):
    """A simple signature for tests: any change of the message changes it."""
    return (str(hash(message)).encode() * 64)[:64]


def verify(key, signature, message):
    return key == MANIFEST.publisher.key and signature == sign(message)


def made(**changes):
    plain = draft(MANIFEST, PEER, "trainer", NOW, 30)
    whole = Invitation(**(vars(plain) | changes))
    return Invitation(**(vars(whole) | {"signature": sign(whole.signed_bytes)}))


def refusal(call, *arguments):
    with pytest.raises(InvitationError) as raised:
        call(*arguments)
    assert in_english(raised.value.title).endswith(".")
    assert in_english(raised.value.hint).endswith(".")
    return in_english(raised.value.title)


def test_what_was_drafted_and_signed_is_read_back_and_good():
    found = read(made().text.encode(), verify)
    assert found == made()
    assert (found.project, found.peer, found.role) == ("tiny-code-lm", PEER, "trainer")
    assert found.expires - found.issued == timedelta(days=30)
    assert found.issued == NOW.replace(microsecond=0)
    check(found, MANIFEST, PEER, NOW)
    assert is_good(found, MANIFEST, PEER, NOW)


def test_one_of_before_there_were_roles_is_a_trainers_and_its_signature_still_fits():
    old = made(names_role=False)
    assert b"role" not in old.signed_bytes
    found = read(old.text.encode(), verify)
    assert (found.role, found.text) == ("trainer", old.text)
    check(found, MANIFEST, PEER, NOW)
    added = old.text.replace('"issued"', '"role": "host", "issued"')
    assert refusal(read, added.encode(), verify) == "The invitation was changed after it was signed."


@pytest.mark.parametrize(
    ("role", "rounds", "gives", "gives_if_moderated"),
    [
        ("trainer", True, True, False),
        ("seed", False, True, False),
        ("donor", False, True, True),
        ("host", True, True, True),
    ],
)
def test_what_each_role_may_do(role, rounds, gives, gives_if_moderated):
    found = made(role=role)
    moderated = parse_manifest(raw(membership="moderated"))
    assert invitation.averages(found) is rounds
    assert invitation.gives_state(found, MANIFEST) is gives
    assert invitation.gives_state(found, moderated) is gives_if_moderated
    assert moderated.by_invitation


def test_nothing_but_an_invitation_is_ever_signed_by_these_bytes():
    assert made().signed_bytes.startswith(b"skep invitation v1\n{")


@pytest.mark.way_in
@pytest.mark.parametrize(
    "change",
    [
        {"project": "other-project"},
        {"peer": OTHER},
        {"role": "seed"},
        {"issued": "2020-01-01T00:00:00Z"},
        {"expires": "2099-01-01T00:00:00Z"},
        {"signature": "A" * 86 + "=="},
    ],
)
def test_whatever_is_changed_afterwards_is_noticed(change):
    body = json.loads(made().text) | change
    assert refusal(read, json.dumps(body).encode(), verify) == "The invitation was changed after it was signed."


@pytest.mark.way_in
def test_one_without_a_signature_is_refused():
    body = json.loads(made().text)
    del body["signature"]
    assert "signature" in refusal(read, json.dumps(body).encode(), verify)


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        (b"", "it is not JSON (line 1)"),
        (b"[]", "it is not a JSON object"),
        (b" " * (LIMIT + 1), "it is larger than 4 KiB"),
        (b'{"format": 1, "format": 1}', "format appears twice"),
        (b'{"format": 2}', "project is missing"),
        (made().text.replace('"format": 1', '"format": 2').encode(), "format must be 1"),
        (made().text.replace("trainer", "king").encode(), 'role must be "trainer", "seed", "donor" or "host"'),
        (made().text.replace(PEER, "12D3").encode(), "peer must be a peer id as skep identity prints it (Qm…)"),
        (made().text.replace('"role"', '"roll": 1, "role"').encode(), "roll is not a known field"),
    ],
)
def test_what_is_no_invitation_is_refused_in_one_sentence(content, phrase):
    assert refusal(read, content, verify) == f"The invitation is not valid: {phrase}."


@pytest.mark.way_in
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"project": "other-project"}, 'for another project, "other-project"'),
        ({"publisher": b"k" * 32}, "signed with another key"),
        ({"peer": OTHER}, f"for another computer: it names {OTHER}, and this computer is {PEER}"),
        ({"expires": NOW}, "expired on 2026-05-01"),
        ({"issued": NOW + LEEWAY + timedelta(seconds=1)}, "not valid before 2026-05-01"),
    ],
)
def test_what_does_not_let_this_computer_in_is_refused_in_one_sentence(changes, words):
    found = made(**changes)
    assert words in refusal(check, found, MANIFEST, PEER, NOW)
    assert not is_good(found, MANIFEST, PEER, NOW)


def test_a_clock_that_lags_a_little_is_forgiven():
    check(made(issued=NOW + LEEWAY), MANIFEST, PEER, NOW)


@pytest.mark.parametrize("days", [0, 3651])
def test_days_have_bounds(days):
    assert "for 1 to 3650 days" in refusal(draft, MANIFEST, PEER, "trainer", NOW, days)


def test_what_is_no_peer_id_is_named():
    assert "“somebody” is not a peer id" in refusal(draft, MANIFEST, "somebody", "trainer", NOW, 1)


def test_an_open_project_invites_nobody():
    assert "open to all computers" in refusal(draft, parse_manifest(raw()), PEER, "trainer", NOW, 1)


def test_the_end_is_read_without_a_look_at_the_signature():
    assert invitation.end_of(made().text) == NOW.replace(microsecond=0) + timedelta(days=30)
    assert "expired" in in_english(invitation.over("Tiny").title)


def test_the_lack_of_one_is_said_with_the_way_to_get_one():
    assert "has revoked" in in_english(invitation.revoked("Tiny").title)
    told = missing(make_project())
    assert "this one has no invitation" in in_english(told.title)
    assert "skep identity" in in_english(told.hint)
    assert invitation.TRAINER in invitation.ROLES
