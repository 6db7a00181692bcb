"""A skep asks the project's seeds for their version, which is older or newer than its own: real p2pd on loopback."""

import pytest

import forked_peers
from english import in_english, raises
from liars import Liar
from skep.core.errors import DataError, DeviceError, SkepError, SwarmError
from skep.core.project.manifest import PROTOCOL
from skep.worker.connection.versions import TOO_NEW, TOO_OLD, Versions, VersionWatch, answer_others, is_too_old
from swarm_peers import manifest_of


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
