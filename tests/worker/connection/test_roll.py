"""Which peers an averager admits, and how often it queries the DHT, which is a table in memory here."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from english import raises
from invitations import Project, identity
from skep.core.errors import InvitationError
from skep.core.project.invitation import end_of, read
from skep.signatures import is_valid
from skep.worker.connection import revoked
from skep.worker.connection.auth import PUBLISH_EVERY_SECONDS, AdmissionList, Membership
from skep.worker.connection.revoked import RevokedPeers

PROJECT = Project()


class Book:
    """Answers after `delay` seconds, and counts the queries."""

    def __init__(self, entries, delay=0.0):
        self.entries, self.delay, self.looks, self.stored = entries, delay, 0, []

    async def get(self, key, **_):
        self.looks += 1
        await asyncio.sleep(self.delay)
        entries = {peer: SimpleNamespace(value=value) for peer, value in self.entries.items()}
        return SimpleNamespace(value=entries) if entries else None

    async def store(self, **record):
        self.stored.append(record)


@pytest.fixture(scope="module")
def folk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("identities")
    return {name: identity(folder, name).peer_id for name in ("trainer", "seed", "stranger")}


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    who = identity(tmp_path_factory.mktemp("identity"), "own")
    return Membership(PROJECT.manifest, PROJECT.invite(who.peer_id), who.path)


def invite(peer, **options):
    return PROJECT.invite(peer, **options).encode()


def test_a_known_peer_costs_one_look_however_often_it_calls(folk, own):
    book = Book({folk["trainer"]: invite(folk["trainer"])})

    async def calls():
        roll = AdmissionList(own, book)
        return [await roll.admits(folk["trainer"]) for _ in range(50)]

    assert all(asyncio.run(calls()))
    assert book.looks == 1


@pytest.mark.way_in
def test_strangers_who_knock_at_once_share_a_look(folk, own):
    book = Book({folk["trainer"]: invite(folk["trainer"])}, delay=0.05)

    async def calls():
        roll = AdmissionList(own, book)
        return await asyncio.gather(*(roll.admits(f"{folk['stranger']}{n}") for n in range(50)))

    assert not any(asyncio.run(calls()))
    assert book.looks <= 2


@pytest.mark.way_in
def test_a_seed_may_load_the_state_and_never_averages(folk, own):
    book = Book({folk["seed"]: invite(folk["seed"], role="seed")})

    async def calls():
        roll = AdmissionList(own, book)
        return await roll.may_load(folk["seed"]), await roll.admits(folk["seed"])

    assert asyncio.run(calls()) == (True, False)


@pytest.mark.parametrize(
    ("role", "rounds", "gives", "gives_if_moderated"),
    [
        ("trainer", True, True, False),
        pytest.param("seed", False, True, False, marks=pytest.mark.way_in),
        pytest.param("donor", False, True, True, marks=pytest.mark.way_in),
        ("host", True, True, True),
    ],
)
@pytest.mark.parametrize("membership", ["invited", "moderated"])
def test_a_role_says_who_enters_rounds_and_from_whom_the_state_is_taken(
    tmp_path, role, rounds, gives, gives_if_moderated, membership
):
    project, who, other = Project(membership), identity(tmp_path, "own"), identity(tmp_path, "other")
    own = Membership(project.manifest, project.invite(who.peer_id, role=role), who.path)
    book = Book({other.peer_id: project.invite(other.peer_id, role=role).encode()})

    async def calls():
        roll = AdmissionList(own, book)
        return await roll.may_load(other.peer_id), await roll.admits(other.peer_id), await roll.may_give(other.peer_id)

    expected = gives_if_moderated if membership == "moderated" else gives
    assert asyncio.run(calls()) == (True, rounds, expected)
    assert own.gives_state is expected


@pytest.mark.way_in
def test_a_peer_that_is_revoked_is_refused_from_the_next_request_on(tmp_path, folk):
    who = identity(tmp_path, "own")
    revoked.write(PROJECT.revoke(folk["stranger"], since=1), tmp_path)
    peers = RevokedPeers(PROJECT.manifest, tmp_path / revoked.NAME)
    own = Membership(PROJECT.manifest, PROJECT.invite(who.peer_id), who.path, peers)
    known = {each: invite(folk[each]) for each in ("trainer", "seed")}
    book = Book({folk[each]: text for each, text in known.items()})

    async def calls():
        roll = AdmissionList(own, book)
        before = await roll.admits(folk["trainer"])
        revoked.write(PROJECT.revoke(folk["trainer"]), tmp_path)
        asked = roll.admits(folk["trainer"]), roll.may_load(folk["trainer"]), roll.may_give(folk["trainer"])
        return before, [await each for each in asked], await roll.admits(folk["seed"])

    assert own.good(known["trainer"], folk["trainer"])
    assert asyncio.run(calls()) == (True, [False] * 3, True)
    assert own.good(known["trainer"], folk["trainer"]) is None


@pytest.mark.way_in
def test_a_list_that_is_false_or_a_step_back_changes_nothing(tmp_path, folk):
    peers = RevokedPeers(PROJECT.manifest, tmp_path / revoked.NAME)
    found = read(invite(folk["trainer"], since=3, days=9), is_valid)
    assert not peers.voids(found)  # there is no list yet
    for text, ends in (
        (Project().revoke(folk["trainer"]), False),
        ("rubbish", False),
        (PROJECT.revoke(folk["trainer"], since=1), True),
        (PROJECT.revoke(since=2), True),
        (PROJECT.revoke(folk["seed"]), False),
    ):
        revoked.write(text, tmp_path)
        assert peers.voids(found) is ends
    (tmp_path / revoked.NAME).unlink()
    assert peers.voids(read(invite(folk["seed"], since=1, days=9), is_valid))


@pytest.mark.way_in
@pytest.mark.parametrize(
    "entry",
    [
        lambda folk: invite(folk["trainer"]),  # another peer's
        lambda folk: invite(folk["stranger"], since=2),  # expired
        lambda folk: Project().invite(folk["stranger"]).encode(),  # of another publisher
        lambda folk: b"rubbish",
        lambda folk: 5,
    ],
)
def test_nothing_but_a_good_invitation_of_its_own_admits_a_peer(folk, own, entry):
    book = Book({folk["stranger"]: entry(folk)})
    assert not asyncio.run(AdmissionList(own, book).admits(folk["stranger"]))


@pytest.mark.way_in
def test_an_invitation_that_expires_while_it_is_remembered_admits_nobody(folk, own):
    invitation = PROJECT.invite(folk["trainer"], since=1, days=1 + 3 / 86_400)
    book = Book({folk["trainer"]: invitation.encode()})

    async def calls():
        roll = AdmissionList(own, book)
        before = await roll.admits(folk["trainer"])
        await asyncio.sleep((end_of(invitation) - datetime.now(UTC)).total_seconds())
        return before, await roll.admits(folk["trainer"])

    assert asyncio.run(calls()) == (True, False)


def test_a_dht_that_does_not_answer_admits_nobody_and_holds_nobody_up(folk, own):
    assert not asyncio.run(AdmissionList(own, Book({}, delay=600), patience=0.05).admits(folk["trainer"]))


def test_our_own_entry_is_laid_down_again_when_that_is_due(own):
    book = Book({})

    async def publish():
        roll = AdmissionList(own, book)
        await roll.publish_again()
        assert not book.stored
        roll._published -= PUBLISH_EVERY_SECONDS
        await roll.publish_again()

    asyncio.run(publish())
    (record,) = book.stored
    assert (record["subkey"], record["value"]) == (own.peer, own.raw)


@pytest.mark.way_in
def test_a_peer_knows_at_once_that_its_own_invitation_is_revoked(tmp_path):
    who = identity(tmp_path, "own")
    text = PROJECT.invite(who.peer_id)
    revoked.write(PROJECT.revoke(who.peer_id), tmp_path)
    with raises(InvitationError, match="has revoked this computer"):
        Membership(PROJECT.manifest, text, who.path, RevokedPeers(PROJECT.manifest, tmp_path / revoked.NAME))
