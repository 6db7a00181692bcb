"""The doctor asks real peers from a process of its own: identity, clock, the run's records, reachability."""

import hashlib
import json
import time
from dataclasses import replace
from functools import partial

import psutil
import pytest

from downloads import LENGTH, make_index, make_shard
from english import in_english
from fakes import make_progress, make_project
from manifests import PEER, raw
from skep.core.findings import Check, Questions, State, as_json, worst
from skep.core.project.shards import shard_name
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.settings.settings import DEFAULTS
from skep.services.doctor.case import Case
from skep.services.doctor.examination import examine
from skep.services.doctor.peers import _as_seen, peers
from web_of_faults import FaultyServer, ranged, whole

PATIENCE = 240.0
"""Seconds in which a busy computer imports the training stack and starts p2pd."""
NOBODY = PEER.rpartition("/")[2]
CLOSED = f"/ip4/127.0.0.1/tcp/1/p2p/{NOBODY}"


@pytest.fixture
def seed(make_dhts):
    (dht,) = make_dhts(1)
    return dht


@pytest.fixture
def another_seed(private_sockets):
    """It knows the other one as little as that knows it."""
    import forked_peers  # noqa: PLC0415 - as below

    dht = forked_peers.LastingDHT(start=True, startup_timeout=60)
    yield dht
    forked_peers.end_dhts([dht])


def address_of(dht):
    return next(str(each) for each in dht.get_visible_maddrs() if "/127.0.0.1/" in str(each))


def case_of(home, *seeds, manifest=None, **settings):
    made = make_project(manifest=raw(peers=list(seeds), **(manifest or {})))
    return Case(home, made, settings=DEFAULTS | settings)


def remember(case, *addresses):
    """As a worker does after a confirmed round."""
    from skep.worker.connection.known_peers import KnownPeers  # noqa: PLC0415 - as below

    KnownPeers(case.home.known_peers_folder, case.project.run_id).keep(addresses)


def asked(case, within=PATIENCE):
    found = list(peers(case, within))
    return {check: [each for each in found if each.check is check] for check in Check}


def expect(found, check, *states):
    assert [each.state for each in found[check]] == list(states), [in_english(each.found) for each in found[check]]


def publish_progress(dht, run_id):
    """Store a signed progress record, as a stock peer of that run does."""
    from hivemind.optim.progress_tracker import ProgressTracker  # noqa: PLC0415 - seconds; only for tests with a swarm

    tracker = ProgressTracker(dht, run_id, target_batch_size=8, client_mode=False, start=False)
    record = tracker._get_local_progress(local_epoch=0, samples_accumulated=4).dict()
    key, expires = tracker.training_progress_key, time.time() + 600
    assert dht.store(key, subkey=tracker._local_public_key, value=record, expiration_time=expires)


def test_a_seed_of_this_run_is_told_from_one_with_another_identity_and_a_closed_port(home, seed):
    good = address_of(seed)
    other = f"{good.rpartition('/')[0]}/{NOBODY}"
    case = case_of(home, good, other)
    publish_progress(seed, case.project.run_id)
    found = asked(case)
    mine, theirs = found[Check.HANDSHAKE]
    assert (mine.state, theirs.state) == (State.OK, State.WARN)
    assert "is the seed that it should be; connected in" in in_english(mine.found)
    assert "is another peer than the one that the manifest names" in in_english(theirs.found)
    assert "newer manifest" in in_english(theirs.advice)
    expect(found, Check.CLOCK, State.OK)
    assert in_english(found[Check.SWARM][0].found) == "Peers that train in this run: 1."
    expect(found, Check.SWARM, State.OK)
    assert in_english(found[Check.REACHABILITY][0].found) == "The swarm runs on this computer only."


def test_a_seed_of_another_run_lets_in_but_knows_nobody(home, seed, another_seed):
    publish_progress(seed, "another-run")
    case = case_of(home, address_of(seed), **{"network.client_mode": "on"})
    publish_progress(another_seed, case.project.run_id)
    remember(case, address_of(another_seed))  # which is not asked, since the seed answers
    found = asked(case)
    expect(found, Check.HANDSHAKE, State.OK)
    expect(found, Check.SWARM, State.WARN)
    assert "another run" in in_english(found[Check.SWARM][0].advice)
    assert "network.client_mode" in in_english(found[Check.REACHABILITY][0].found)


def test_without_any_seed_the_swarm_cannot_be_reached(home):
    case = case_of(home, CLOSED)
    remember(case, f"/ip4/203.0.113.1/tcp/1/p2p/{NOBODY}")  # in a network in which this computer is not
    found = asked(case)
    expect(found, Check.HANDSHAKE, State.FAIL)
    expect(found, Check.SWARM, State.FAIL)
    assert "connection refused" in in_english(found[Check.HANDSHAKE][0].found)
    assert in_english(found[Check.SWARM][0].found) == "None of the project's seeds could be met."
    assert "firewall" in in_english(found[Check.SWARM][0].advice)


@pytest.fixture
def data_server():
    """The address of an index, and its digest."""
    shard, ref = make_shard()
    body = make_index(ref)
    with FaultyServer() as server:
        server.scripts |= {"index.json": [whole(body)], shard_name(ref.sha256): [ranged(shard)]}
        yield f"{server.address}/index.json", hashlib.sha256(body).hexdigest()


def test_while_the_only_seed_is_dead_the_doctor_goes_through_a_remembered_peer_as_a_join_does(home, seed, data_server):
    index, sha256 = data_server
    manifest = {"data__index": index, "data__sha256": sha256, "recipe__sequence_length": LENGTH}
    case = case_of(home, CLOSED, manifest=manifest)
    publish_progress(seed, case.project.run_id)
    remember(case, CLOSED.replace("tcp/1/", "tcp/2/"), address_of(seed))
    everything = list(examine(case, PATIENCE))
    found = {check: [each for each in everything if each.check is check] for check in Check}
    expect(found, Check.SEED, State.WARN)
    expect(found, Check.HANDSHAKE, State.WARN, State.OK)
    for check in (Check.SEED, Check.HANDSHAKE):
        assert "a remembered peer is enough" in in_english(found[check][0].advice)
    assert in_english(found[Check.HANDSHAKE][1].found) == "No seed could be met, but remembered peers could: 1."
    expect(found, Check.SWARM, State.OK)
    assert in_english(found[Check.SWARM][0].found) == "Peers that train in this run: 1."
    expect(found, Check.REACHABILITY, State.OK)
    assert "The clock agrees with that of remembered peers." in map(
        in_english, (each.found for each in found[Check.CLOCK])
    )
    assert worst(everything) is State.WARN  # with which `skep doctor` exits with 0
    place = ":" + address_of(seed).split("/")[4]
    assert place not in json.dumps([in_english(as_json(each)) for each in everything])  # it is some person's


def test_where_no_remembered_peer_answers_either_the_swarm_cannot_be_reached(home):
    case = case_of(home, CLOSED)
    remember(case, CLOSED.replace("tcp/1/", "tcp/2/"))
    found = asked(case)
    expect(found, Check.HANDSHAKE, State.WARN)
    expect(found, Check.SWARM, State.FAIL)
    assert (
        in_english(found[Check.SWARM][0].found) == "Neither a seed of the project nor a remembered peer could be met."
    )


def test_a_running_skep_answers_for_itself_and_only_the_seeds_are_tried(home, seed):
    case = case_of(home, address_of(seed))
    running = Snapshot(
        phase=Phase.TRAINING, project=case.project, progress=make_progress(peers=2), joined=True, client_mode=True
    )
    found = asked(replace(case, snapshot=running))
    for check in (Check.HANDSHAKE, Check.SWARM, Check.REACHABILITY):
        expect(found, check, State.OK)
    assert in_english(found[Check.SWARM][0].found) == "Other peers in the last round: 2."
    assert "client" in in_english(found[Check.REACHABILITY][0].found)


def test_what_takes_too_long_is_ended_and_told(home):
    before = {each.pid for each in psutil.Process().children(recursive=True)}
    found = asked(case_of(home, CLOSED), within=0.3)
    for check in (Check.HANDSHAKE, Check.SWARM, Check.REACHABILITY):
        expect(found, check, State.FAIL)
        assert "No result within" in in_english(found[check][0].found)
    assert {each.pid for each in psutil.Process().children(recursive=True)} <= before


# --- the sentences about reachability, without peers


REACHABLE = {"client_mode": False, "relayed": False, "verified": True}
UNVERIFIED = {"client_mode": False, "relayed": False, "verified": False}


@pytest.mark.parametrize(
    ("mode", "seen", "state", "said", "advised"),
    [
        ("automatic", {"client_mode": True}, State.OK, "as a client", True),
        ("on", {"client_mode": True}, State.OK, "network.client_mode says", False),
        ("automatic", {"relayed": True}, State.OK, "through a seed", True),
        ("automatic", REACHABLE, State.OK, "directly", False),
        ("automatic", UNVERIFIED, State.WARN, "was not verified: no seed", True),
        ("off", UNVERIFIED, State.WARN, "network.client_mode is off", True),
    ],
)
def test_a_running_skep_says_how_others_reach_it_and_whether_that_was_tried(home, mode, seen, state, said, advised):
    case = case_of(home, f"/ip4/8.8.8.8/tcp/1/p2p/{NOBODY}", **{"network.client_mode": mode})
    *_, found = _as_seen(case, Snapshot(**seen), 1)
    assert (found.state, bool(found.advice)) == (state, advised)
    assert said in in_english(found.found)


def test_a_running_skep_of_a_swarm_on_this_computer_need_not_be_dialled_from_outside(home):
    *_, found = _as_seen(case_of(home, PEER), Snapshot(), 1)
    assert (found.state, in_english(found.found)) == (State.OK, "The swarm runs on this computer only.")


@pytest.mark.parametrize(
    ("mode", "met", "reached", "relays", "state", "words"),
    [
        ("automatic", True, True, None, State.OK, "can dial this computer directly"),
        ("automatic", True, False, True, State.OK, "through a seed, which relays"),
        ("automatic", True, False, False, State.OK, "nobody that was met relays"),
        ("off", True, False, None, State.WARN, "network.client_mode is off"),
        ("automatic", True, None, None, State.SKIPPED, "Nobody that was met can test"),
        ("automatic", False, True, None, State.SKIPPED, "Nobody that was met can test"),
    ],
)
def test_what_others_say_of_this_computer(mode, met, reached, relays, state, words):
    from skep.worker.probe import in_reach  # noqa: PLC0415 - the worker's side

    questions = Questions((), "run", "/tmp", listen_host="0.0.0.0", client_mode=mode)
    (found,) = in_reach(questions, ["a"] if met else [], lambda: reached, lambda: relays)
    assert found.state is state
    assert words in in_english(found.found)
    assert bool(found.advice) == (reached is False)


def test_a_seed_says_whether_it_would_relay(private_sockets):
    import hivemind  # noqa: PLC0415 - seconds; only for tests with a swarm

    from skep.worker.probe import takes  # noqa: PLC0415 - before the fork

    seed = hivemind.DHT(start=True, startup_timeout=60)
    try:
        asking = hivemind.DHT(initial_peers=[address_of(seed)], start=True, startup_timeout=60)
        try:
            for relays, answer in (([NOBODY], False), ([NOBODY, str(seed.peer_id)], True)):
                ask = partial(takes, relays=relays)
                assert asking.run_coroutine(ask, return_future=True).result(60) is answer
        finally:
            asking.shutdown()
    finally:
        seed.shutdown()
