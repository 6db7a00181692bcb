"""Direct requests of an uninvited peer to an averager: answered in an open project, refused in one for invited peers.

The uninvited peer is not in the DHT. It knows the averager's address, the run id and hivemind's protocol.
"""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from typing import AsyncIterator  # noqa: UP035 - hivemind detects a streaming RPC only by typing's name

import hivemind
import pytest
import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.allreduce import AllreduceException
from hivemind.compression import deserialize_torch_tensor, serialize_torch_tensor
from hivemind.optim.grad_averager import GradientAverager
from hivemind.p2p import P2P, P2PContext
from hivemind.proto import averaging_pb2
from hivemind.utils import MSGPackSerializer, get_dht_time

import forked_peers
from invitations import Project, identity
from skep.worker.connection import revoked
from skep.worker.connection.auth import Membership, guarded
from skep.worker.connection.revoked import RevokedPeers
from skep.worker.swarm.averaging.averagers import CheckedGradientAverager
from skep.worker.swarm.catching_up import STATE_ATTEMPTS
from skep.worker.swarm.state import donor as state_donor
from skep.worker.swarm.state.donor import StateDonor
from skep.worker.swarm.state.download import Wanted
from skep.worker.swarm.state.pieces import Piece
from swarm_peers import run_round, wait_until

PROJECT = Project()
PREFIX = "invited"
SIZE = 1000
CLIENT = 1
"""hivemind's AveragingMode for a peer that sends parts and reduces none."""
PATIENCE = 60


class Credulous(CheckedGradientAverager):
    """A leader that accepts every peer into its group, as an invited peer with changed code could."""

    async def rpc_join_group(
        self, request: averaging_pb2.JoinRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.MessageFromLeader]:
        async for message in DecentralizedAverager.rpc_join_group(self, request, context):
            yield message


class Generous(CheckedGradientAverager):
    """It hands over its state, whatever its invitation says."""

    async def _hands_over(self, peer):
        self._donor = self._donor or StateDonor(
            self._copied, lambda: self.state_version, self.state_compression, self._uplink
        )
        return self._donor


class SlowDonor(StateDonor):
    """It pauses after each part."""

    async def _parts(self, *args):
        async with aclosing(super()._parts(*args)) as parts:
            async for part in parts:
                yield part
                await asyncio.sleep(0.2)


class Slow(CheckedGradientAverager):
    """It hands over its state slowly, to members."""

    async def _hands_over(self, peer):
        if await super()._hands_over(peer) is None:
            return None
        self._donor.__class__ = SlowDonor
        return self._donor


class DoorLeftOpen(Credulous):
    """It does not check its group either; incoming parts are still checked by our code."""

    async def _check_group(self, group_info):
        pass


Credulous.__name__ = Generous.__name__ = Slow.__name__ = DoorLeftOpen.__name__ = (
    GradientAverager.__name__
)  # the RPC handler names contain it


def invited(who, project=PROJECT, listed=None, **options):
    peers = listed and RevokedPeers(project.manifest, listed / revoked.NAME)
    return Membership(project.manifest, project.invite(who.peer_id, **options), who.path, peers)


@pytest.fixture(scope="module")
def identities(tmp_path_factory):
    """A folder of identities, shared because creating one takes as long as a round."""
    return tmp_path_factory.mktemp("identities")


@pytest.fixture
def enter(private_sockets, identities):
    """Starts an averager of the project, with its DHT; an open project has no membership."""
    dhts, averagers = [], []

    def start(name, value=0.0, kind=CheckedGradientAverager, *, open_project=False, size=SIZE, **invitation):
        who = identity(identities, name)
        membership = None if open_project else invited(who, **invitation)
        seeds = [str(address) for dht in dhts for address in dht.get_visible_maddrs()]
        with guarded(membership) as guard:
            dhts.append(hivemind.DHT(seeds, start=True, identity_path=str(who.path), startup_timeout=PATIENCE, **guard))
        if membership:
            membership.publish(dhts[-1])
        parameter = torch.nn.Parameter(torch.zeros(size))
        parameter.grad = torch.full((size,), value)
        averager = kind(
            [parameter],
            dht=dhts[-1],
            prefix=PREFIX,
            start=True,
            reuse_grad_buffers=True,
            min_matchmaking_time=5.0,
            request_timeout=3.0,
            next_chunk_timeout=4.0,
            allreduce_timeout=20,
            **({} if kind is GradientAverager else {"membership": membership}),
        )
        averager.accumulate_grads_(1)
        averagers.append(averager)
        return averager

    yield start
    forked_peers.end(averagers)
    forked_peers.end_dhts(dhts)


def value_of(averager):
    with averager.get_tensors() as tensors:
        return float(tensors[0].mean())


class Stranger:
    """A separate libp2p peer that calls an averager's handlers."""

    def __init__(self, who, averager, bandwidth=1.0):
        self.who, self.averager, self.bandwidth = who, averager, bandwidth

    def ask(self, question):
        """The result of `question(self, stub)`."""
        # in a thread: in the main thread, hivemind's futures have created an event loop that would not be closed
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, asyncio.wait_for(self._ask(question), PATIENCE)).result()

    async def _ask(self, question):
        addresses = [str(address) for address in self.averager.dht.get_visible_maddrs()]
        async with connected(self.who, addresses) as p2p:
            # stock's stub would make hivemind believe that our subclasses, forked later, have stock's calls only
            stub = CheckedGradientAverager.get_stub(p2p, self.averager.peer_id, namespace=PREFIX)
            return await question(self, stub)

    async def state(self, stub):
        """The number of received messages of the training state."""
        return len([message async for message in await stub.rpc_download_state(averaging_pb2.DownloadRequest())])

    async def part(self, stub, group_id=b"no group"):
        """The answer to a part for that group; None if the stream ended without one, as of a peer that reads no further."""
        tensor = serialize_torch_tensor(torch.full((SIZE,), 3.0))

        async def parts():
            yield averaging_pb2.AveragingData(
                code=averaging_pb2.PART_FOR_AVERAGING, group_id=group_id, tensor_part=tensor, weight=1.0
            )

        return await anext(aiter(await stub.rpc_aggregate_part(parts())), None)

    async def join(self, stub):
        """Ask until the averager searches for a group; returns its first answer and the stream of the others."""
        deadline = time.monotonic() + PATIENCE / 2
        while True:
            request = averaging_pb2.JoinRequest(
                schema_hash=self.averager.schema_hash,
                expiration=get_dht_time() + PATIENCE,
                client_mode=True,
                gather=MSGPackSerializer.dumps([self.bandwidth, CLIENT, MSGPackSerializer.dumps(None)]),
                group_key=f"{PREFIX}.0b",
            )
            stream = aiter(await stub.rpc_join_group(request))
            first = await anext(stream)
            waiting = first.code in {averaging_pb2.NOT_LOOKING_FOR_GROUP, averaging_pb2.NOT_DECLARED}
            if not waiting or time.monotonic() > deadline:
                return first, stream
            await asyncio.sleep(0.05)

    async def accepted(self, stub):
        first, _ = await self.join(stub)
        return averaging_pb2.MessageCode.Name(first.code)

    async def averaged(self, stub):
        """The answer to a part, after a group was joined."""
        first, stream = await self.join(stub)
        assert first.code == averaging_pb2.ACCEPTED
        begun = await anext(stream)
        assert begun.code == averaging_pb2.BEGIN_ALLREDUCE
        return await self.part(stub, begun.group_id)


@asynccontextmanager
async def connected(who, addresses):
    p2p = await P2P.create(initial_peers=addresses, identity_path=str(who.path))
    try:
        yield p2p
    finally:
        await p2p.shutdown()


@pytest.fixture
def stranger(identities):
    return lambda averager: Stranger(identity(identities, "stranger"), averager)


def test_two_invited_peers_average(enter):
    first, second = enter("first", 1.0), enter("second", 3.0)
    results = run_round(first, second)
    assert (value_of(first), value_of(second)) == (2.0, 2.0)
    assert [result.facts.heard for result in results] == [(str(second.peer_id),), (str(first.peer_id),)]


# the averager searches for a group and finds no other peer


@pytest.mark.parametrize(
    ("open_project", "code"), [(True, "ACCEPTED"), pytest.param(False, "PROTOCOL_VIOLATION", marks=pytest.mark.way_in)]
)
def test_a_stranger_joins_a_group_of_an_open_project_only(enter, stranger, open_project, code):
    averager = enter("first", open_project=open_project)
    control = averager.step(wait=False, timeout=PATIENCE)
    assert stranger(averager).ask(Stranger.accepted) == code
    control.cancel()


@pytest.mark.parametrize(
    ("kind", "code"), [(GradientAverager, "ACCEPTED"), (CheckedGradientAverager, "PROTOCOL_VIOLATION")]
)
def test_who_claims_a_large_bandwidth_is_taken_into_a_group_by_stock_only(enter, identities, kind, code):
    averager = enter("first", kind=kind, open_project=True)
    control = averager.step(wait=False, timeout=PATIENCE)
    claiming = Stranger(identity(identities, "stranger"), averager, bandwidth=1e12)
    assert claiming.ask(Stranger.accepted) == code
    control.cancel()


@pytest.mark.parametrize("open_project", [True, pytest.param(False, marks=pytest.mark.way_in)])
def test_a_stranger_gets_its_part_into_the_average_of_an_open_project_only(enter, stranger, open_project):
    averager = enter("first", 1.0, DoorLeftOpen, open_project=open_project)
    control = averager.step(wait=False, timeout=PATIENCE)
    answer = stranger(averager).ask(Stranger.averaged)
    if not open_project:
        assert answer is None or answer.code == averaging_pb2.PROTOCOL_VIOLATION
    else:
        assert answer.code == averaging_pb2.AVERAGED_PART
        assert float(deserialize_torch_tensor(answer.tensor_part).mean()) == pytest.approx(-1.0)
    control.result(PATIENCE)
    assert value_of(averager) == (2.0 if open_project else 1.0)


@pytest.mark.way_in
def test_nothing_is_sent_to_a_stranger_that_a_leader_took_into_the_group(enter, stranger):
    averager = enter("first", 1.0, Credulous)
    control = averager.step(wait=False, timeout=PATIENCE, allow_retries=False)
    stranger(averager).ask(Stranger.averaged)
    with pytest.raises(AllreduceException, match="is in the group and not invited"):
        control.result(PATIENCE)
    assert value_of(averager) == 1.0


@pytest.mark.parametrize(("open_project", "messages"), [(True, 1), pytest.param(False, 0, marks=pytest.mark.way_in)])
def test_a_stranger_loads_the_state_of_an_open_project_only(enter, stranger, open_project, messages):
    assert stranger(enter("first", open_project=open_project)).ask(Stranger.state) == messages


# revoked peers, and roles


def train_again(averager, value):
    for gradient in averager._grads_from_parameters():
        gradient.fill_(value)
    averager.accumulate_grads_(1)


def heard(averager, key):
    """What the averager's DHT finds under a key, by subkey."""
    found = averager.dht.get(key, latest=True, return_future=True).result(PATIENCE)
    return {} if found is None else {subkey: entry.value for subkey, entry in found.value.items()}


def write(averager, key):
    averager.dht.store(key, subkey="mine", value=1, expiration_time=get_dht_time() + 60, return_future=True).result(
        PATIENCE
    )


@pytest.mark.way_in
def test_a_peer_that_is_revoked_is_left_out_of_the_next_round_and_of_the_dht_and_the_others_go_on(enter, tmp_path):
    first, second = enter("first", 2.0, listed=tmp_path), enter("second", 3.0, listed=tmp_path)
    third = enter("third", 4.0)  # it knows of no list
    run_round(first, second, third)
    assert [value_of(each) for each in (first, second, third)] == [3.0] * 3
    write(third, "before")
    assert heard(first, "before") == {"mine": 1}

    revoked.write(PROJECT.revoke(str(third.peer_id)), tmp_path)
    for averager, value in ((first, 2.0), (second, 3.0), (third, 4.0)):
        train_again(averager, value)
    knocking = third.step(wait=False, timeout=PATIENCE)
    results = run_round(first, second)
    assert [result.facts.heard for result in results] == [(str(second.peer_id),), (str(first.peer_id),)]
    assert [result.facts.group_size for result in results] == [2, 2]
    assert [value_of(each) for each in (first, second)] == [2.5, 2.5]
    knocking.cancel()
    write(third, "after")
    assert heard(first, "after") == heard(second, "after") == {}
    write(second, "after")
    assert heard(first, "after") == {"mine": 1}


def wanted(size):
    return Wanted((Piece((size,), torch.float32, size * 4),))


def load(newcomer):
    """The value of the state that the newcomer gets; None if there is no donor from which it takes one.

    It tries as often as a worker does, since a busy computer may not answer in time.
    """
    for _ in range(STATE_ATTEMPTS):
        arrived = newcomer.download(wanted(SIZE)).wait()
        if arrived is not None:
            return float(arrived[1][0].mean())
    return None


def offers(newcomer, *donors):
    """Wait until the newcomer sees that all of these offer a state, with or without the right to."""
    deadline = time.monotonic() + PATIENCE
    for donor in donors:
        donor.allow_state_sharing = True
    while not {donor.peer_id.to_bytes() for donor in donors} <= heard(newcomer, f"{PREFIX}.all_averagers").keys():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("membership", "of_trainer"), [("invited", 1.0), pytest.param("moderated", None, marks=pytest.mark.way_in)]
)
def test_a_newcomer_takes_the_state_from_whom_the_project_lets_give_it(enter, membership, of_trainer):
    project = Project(membership)
    trainer, newcomer = enter("first", 1.0, Generous, project=project), enter("second", project=project)
    assert newcomer.allow_state_sharing is (of_trainer is not None)
    offers(newcomer, trainer)
    assert load(newcomer) == of_trainer


@pytest.mark.way_in
def test_a_newcomer_of_a_moderated_project_takes_it_from_a_host_until_that_is_revoked(enter, tmp_path):
    project = Project("moderated")
    trainer = enter("first", 1.0, Generous, project=project)
    newcomer = enter("second", project=project, listed=tmp_path)
    host = enter("third", 3.0, project=project, role="host")
    offers(newcomer, trainer, host)
    assert load(newcomer) == 3.0
    revoked.write(project.revoke(str(host.peer_id)), tmp_path)
    assert load(newcomer) is None


@pytest.mark.way_in
@pytest.mark.parametrize("one", ["newcomer", "donor"])
def test_a_transfer_that_is_under_way_ends_when_one_of_both_is_revoked(enter, tmp_path, monkeypatch, one):
    monkeypatch.setattr(state_donor, "PART_BYTES", 1 << 16)
    size = 40 << 14  # in 40 parts, which take 8 s
    project = Project("moderated")
    of_donor, of_newcomer = (tmp_path, None) if one == "newcomer" else (None, tmp_path)
    donor = enter("third", 3.0, Slow, project=project, role="host", listed=of_donor, size=size)
    newcomer = enter("second", project=project, listed=of_newcomer, size=size)
    offers(newcomer, donor)
    newcomer.download(wanted(size))
    wait_until(lambda: newcomer.loading.received > 0)
    revoked.write(project.revoke(str({"newcomer": newcomer, "donor": donor}[one].peer_id)), tmp_path)
    wait_until(lambda: time.monotonic() - newcomer.loading.stirred_at > 2.0)
    assert newcomer.loading.received < size * 4
