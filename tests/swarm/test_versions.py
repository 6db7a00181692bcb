"""A skep asks the project's seeds for their version, which is older or newer than its own: real p2pd on loopback."""

from functools import partial

import hivemind
import pytest

import forked_peers
from english import in_english, raises
from free_ports import free_port
from liars import Liar
from skep.adapters.storage.identity import FileIdentity
from skep.core.errors import DataError, DeviceError, SkepError, SwarmError
from skep.core.project.manifest import PROTOCOL
from skep.worker.connection import network
from skep.worker.connection.versions import TOO_NEW, TOO_OLD, Versions, VersionWatch, answer_others, is_too_old
from swarm_peers import manifest_of, wait_until


def test_a_skep_that_is_older_than_the_seed_is_told_to_update(make_dhts):
    seed, peer = make_dhts(2)
    seeds = [str(address) for address in seed.get_visible_maddrs()]
    Versions(peer, seeds).check()  # a stock seed does not answer
    answer_others(seed, PROTOCOL + 1)
    with raises(SkepError, match="Update skep to join") as caught:
        Versions(peer, seeds).check()
    assert not isinstance(caught.value, SwarmError | DataError | DeviceError)  # which would be tried again
    Versions(peer, seeds, own=PROTOCOL + 1).check()
    Versions(peer, seeds, own=PROTOCOL + 2).check()


@pytest.mark.parametrize("told", [[], [3, 2], [2], [1]])
def test_without_an_answer_or_with_a_seed_of_the_same_version_nothing_is_said(told):
    assert not is_too_old(2, told)


def test_a_skep_that_is_newer_than_the_seed_waits_for_the_others_as_long_as_these_train(make_dhts):
    seed, peer = make_dhts(2)
    seeds = [str(address) for address in seed.get_visible_maddrs()]
    answer_others(seed, PROTOCOL - 1)
    run_of = manifest_of("older", 8).run_id_of
    Versions(peer, seeds, run_of).check()  # nobody trains: it begins
    trainer, another = Liar(seeds), Liar(seeds)
    try:
        another.publish(run_of(PROTOCOL - 1), peer, peer_id=seed.peer_id.to_bytes())
        Versions(peer, seeds, run_of).check()  # the record of the seed's keeper: nobody trains
        trainer.publish(run_of(PROTOCOL - 1), peer)
        with raises(SwarmError, match="run an older version of skep"):
            Versions(peer, seeds, run_of).check()
        Versions(peer, seeds, run_of, PROTOCOL - 1).check()
        Versions(peer, seeds).check()  # a script's run, which has no older one
        assert Versions(peer, seeds, run_of).problem(ours=1) is TOO_NEW
        another.publish(run_of(PROTOCOL), peer)
        assert Versions(peer, seeds, run_of).problem(ours=1) is TOO_NEW  # that record is its own
        Versions(peer, seeds, run_of).check()
    finally:
        forked_peers.end_dhts([trainer.dht, another.dht])


def test_after_a_join_through_a_remembered_peer_the_seeds_are_asked_when_they_are_back(make_dhts, options, tmp_path):
    (remembered,) = make_dhts(1)
    answer_others(remembered, PROTOCOL + 5)  # which would keep everybody away who joined through it
    met = next(str(each) for each in remembered.get_visible_maddrs() if "/127.0.0.1/" in str(each))
    identity, where, run_of = (
        FileIdentity(tmp_path / "seed.id"),
        f"/ip4/127.0.0.1/tcp/{free_port()}",
        manifest_of("back", 8).run_id_of,
    )
    seeds = [f"{where}/p2p/{identity.peer_id}"]
    dht = network.reach(options, seeds, known=lambda: [met])
    started, said = [dht], []
    try:
        watch = VersionWatch(partial(Versions(dht, seeds, run_of).problem, ours=1), said.append)
        watch.look()  # the seed is away
        pretended = f"{met.rpartition('/')[0]}/{identity.peer_id}"
        for each in (seeds, [pretended]):
            Versions(dht, each, run_of).check()
            assert Versions(dht, each, run_of).problem() is None
        seed = hivemind.DHT(host_maddrs=[where], identity_path=str(identity.path), start=True, startup_timeout=60)
        started.append(seed)
        answer_others(seed, PROTOCOL + 1)
        wait_until(lambda: (watch.look(), said)[1])  # p2pd dials an address only some seconds after it has failed
        assert [in_english(each.problem.title) for each in said] == ["Update skep to join this project."]
        trainer = Liar(seeds)
        started.append(trainer.dht)
        trainer.publish(run_of(PROTOCOL + 1))
        assert Versions(dht, seeds, run_of, PROTOCOL + 2).problem(ours=1) is TOO_NEW  # the seed's peers are known too
    finally:
        forked_peers.end_dhts(started)


def test_it_is_told_during_a_run_too_and_so_is_its_end():
    said, found = [], []
    watch = VersionWatch(lambda: found[-1], said.append)
    for each in (None, TOO_NEW, TOO_NEW, None, TOO_OLD):
        found.append(each)
        watch.look()
    assert [in_english(each.problem.title) for each in said] == [
        "The others of this project run an older version of skep.",
        "The seeds or other peers of this project run this version of skep again.",
        "Update skep to join this project.",
    ]
    assert [each.over for each in said] == [None, TOO_NEW, None]
