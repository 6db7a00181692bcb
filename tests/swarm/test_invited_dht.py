"""Admission to the DHT of a project for invited peers, with real peers on loopback."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import hivemind
import pytest
from hivemind.proto import dht_pb2
from hivemind.utils import get_dht_time
from hivemind.utils.auth import AuthRole, AuthRPCWrapper

import forked_peers
from english import raises
from invitations import Project, identity
from skep.core.errors import InvitationError
from skep.worker.connection.auth import InvitedAuthorizer, Membership, PeerBoundAuth, guarded

PROJECT = Project()


class Bold(Membership):
    """A peer that does not check its own invitation."""

    def _judge_own(self):
        return None

    def good(self, raw, peer):
        return super().good(raw, peer) or (raw == self.raw)


@pytest.fixture(scope="module")
def folk(tmp_path_factory):
    """Identities by name."""
    folder = tmp_path_factory.mktemp("identities")
    return {name: identity(folder, name) for name in ("seed", "trainer", "stranger")}


@pytest.fixture
def enter(private_sockets):
    """Starts a DHT peer; `membership` None is a stock one."""
    made = []

    def start(who, membership, *others):
        seeds = [str(address) for other in others for address in other.get_visible_maddrs()]
        with guarded(membership) as guard:
            dht = hivemind.DHT(
                initial_peers=seeds,
                start=True,
                identity_path=str(who.path),
                startup_timeout=30,
                await_ready=False,
                **guard,
            )
        made.append(dht)
        dht.wait_until_ready(30)
        return dht

    yield start
    forked_peers.end_dhts(made)


def invited(who, kind=Membership, **options):
    return kind(PROJECT.manifest, PROJECT.invite(who.peer_id, **options), who.path)


def store(dht, key="news"):
    until = get_dht_time() + 30
    return dht.store(key, subkey="mine", value=1, expiration_time=until, return_future=True).result(20)


def test_invited_peers_meet_and_share_what_they_store(folk, enter):
    seed = enter(folk["seed"], invited(folk["seed"], role="seed"))
    trainer = enter(folk["trainer"], invited(folk["trainer"]), seed)
    assert store(trainer)
    assert seed.get("news", latest=True, return_future=True).result(20).value["mine"].value == 1


def test_an_open_project_lets_a_stock_peer_in(folk, enter):
    seed = enter(folk["seed"], None)
    assert store(enter(folk["stranger"], None, seed))


@pytest.mark.way_in
@pytest.mark.parametrize("case", ["none", "expired", "stolen", "of another publisher"])
def test_nobody_else_gets_in(folk, enter, case):
    seed = enter(folk["seed"], invited(folk["seed"], role="seed"))
    stranger = folk["stranger"]
    held = {
        "none": lambda: None,
        "expired": lambda: invited(stranger, Bold, since=2),
        "stolen": lambda: Bold(PROJECT.manifest, PROJECT.invite(folk["trainer"].peer_id), stranger.path),
        "of another publisher": lambda: Bold(PROJECT.manifest, Project().invite(stranger.peer_id), stranger.path),
    }[case]()
    with pytest.raises(Exception, match="none of the initial_peers responded"):
        enter(stranger, held, seed)
    assert seed.get("news", latest=True, return_future=True).result(20) is None


@pytest.mark.way_in
def test_an_entry_in_the_book_is_only_ever_the_peers_own(folk, enter):
    seeds, trainers = invited(folk["seed"], role="seed"), invited(folk["trainer"])
    seed = enter(folk["seed"], seeds)
    trainer = enter(folk["trainer"], trainers, seed)
    trainers.publish(trainer)
    seeds.publish(seed)
    for value in (b"rubbish", trainers.raw, 5):
        forged = seeds.record | {"value": value, "expiration_time": seeds.record["expiration_time"] + 99}
        trainer.store(**forged, return_future=True).result(20)
    book = seed.get(seeds.book, latest=True, return_future=True).result(20).value
    assert {peer: entry.value for peer, entry in book.items()} == {
        folk["seed"].peer_id: seeds.raw,
        folk["trainer"].peer_id: trainers.raw,
    }


class Line:
    """The other end of a connection."""

    def __init__(self, peer):
        self.remote_id = peer


class Answering:
    """A handler of a DHT peer."""

    async def rpc_ping(self, request, context):
        return dht_pb2.PingResponse(dht_time=5.0)


@pytest.mark.parametrize(
    ("wrapper", "answered"), [(AuthRPCWrapper, True), pytest.param(PeerBoundAuth, False, marks=pytest.mark.way_in)]
)
def test_a_signed_request_that_a_stranger_passes_on_is_answered_by_stock_and_not_by_ours(folk, wrapper, answered):
    def passed_on(sender):
        # in a thread: in the main thread, hivemind's futures have created an event loop that would not be closed
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, answer_to(sender)).result()

    async def answer_to(sender):
        request = dht_pb2.PingRequest()
        await InvitedAuthorizer(invited(folk["trainer"])).sign_request(request, None)
        served = wrapper(Answering(), AuthRole.SERVICER, InvitedAuthorizer(invited(folk["seed"])))
        return await served.rpc_ping(request, Line(sender))

    assert passed_on(folk["trainer"].peer_id) is not None
    assert (passed_on(folk["stranger"].peer_id) is not None) is answered


@pytest.mark.way_in
def test_a_peer_knows_at_once_that_its_own_invitation_is_no_good(folk):
    text = PROJECT.invite(folk["trainer"].peer_id)
    with raises(InvitationError, match="another computer"):
        Membership(PROJECT.manifest, text, folk["stranger"].path)
    with raises(InvitationError, match="expired"):
        invited(folk["trainer"], since=2)
    with raises(InvitationError, match="another project"):
        Membership(Project(id="other").manifest, text, folk["trainer"].path)
    with raises(InvitationError, match="changed after it was signed"):
        Membership(PROJECT.manifest, text.replace('"trainer"', '"seed"'), folk["trainer"].path)
