"""Which peers an averager admits, and how often it queries the DHT, which is a table in memory here."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from invitations import Project, identity
from skep.core.project.invitation import end_of
from skep.worker.connection.auth import PUBLISH_EVERY_SECONDS, AdmissionList, Membership

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


def test_strangers_who_knock_at_once_share_a_look(folk, own):
    book = Book({folk["trainer"]: invite(folk["trainer"])}, delay=0.05)

    async def calls():
        roll = AdmissionList(own, book)
        return await asyncio.gather(*(roll.admits(f"{folk['stranger']}{n}") for n in range(50)))

    assert not any(asyncio.run(calls()))
    assert book.looks <= 2


def test_a_seed_may_load_the_state_and_never_averages(folk, own):
    book = Book({folk["seed"]: invite(folk["seed"], role="seed")})

    async def calls():
        roll = AdmissionList(own, book)
        return await roll.admits(folk["seed"], averaging=False), await roll.admits(folk["seed"])

    assert asyncio.run(calls()) == (True, False)


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
