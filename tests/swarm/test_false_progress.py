"""A stock peer publishes progress that cannot be true, to a swarm of two that average with each other."""

import math

import pytest
import torch

import forked_peers
from liars import FAR, NOBODY, Liar
from skep.core.session.messages import ContributionConfirmed
from skep.host.server.state_keeper import Swarm, SwarmRecords
from skep.worker.connection.attendance import Attendance, asking
from skep.worker.swarm.state.snapshots import Snapshots
from swarm_peers import STEP_BATCH, finish_together, manifest_of, together, wait_until

START = [torch.zeros(4)]


@pytest.fixture(scope="module")
def liar(swarm):
    made = Liar([str(address) for address in swarm.dhts[0].get_visible_maddrs()])
    yield made
    forked_peers.end_dhts([made.dht])


def confirmed(peers, epoch):
    """Both peers contribute to `epoch`, and it is averaged."""
    together(*(peer.settle_in for peer in peers))
    for number, peer in enumerate(peers):
        peer.contribute([torch.full((4,), 1.0 + number)], STEP_BATCH)  # of equal ones no data is seen to arrive
    ends = finish_together(peers, epoch)
    assert [type(end) for end in ends] == [ContributionConfirmed] * len(peers), ends


@pytest.mark.parametrize(
    ("name", "false", "believed"),
    [("epoch", {"epoch": FAR}, FAR), ("samples", {"samples_accumulated": FAR}, 1)],
)
def test_those_who_average_go_on_from_epoch_to_epoch_with_all_their_samples(swarm, liar, name, false, believed):
    manifest = manifest_of(f"false-{name}", 2 * STEP_BATCH)
    with swarm.peers(manifest, [START, START]) as peers:
        for peer in peers:
            peer.optimizer.tracker.rate = lambda: 0.0  # an epoch ends by samples here, however long this takes
        confirmed(peers, 0)
        assert liar.publish(manifest.run_id, *swarm.dhts, **false).global_epoch == believed
        for peer in peers:
            peer.optimizer.tracker.look(20)
            assert peer.optimizer.tracker.global_epoch == 1
            assert not peer.optimizer.tracker.ready_to_update_epoch
        for epoch in range(1, 4):
            confirmed(peers, epoch)
        assert {peer.optimizer.local_epoch for peer in peers} == {4}
        assert torch.equal(*(peer.values()[0] for peer in peers))


def test_a_newcomer_that_believes_it_goes_on_in_the_epoch_of_the_state_that_it_has_loaded(swarm, liar):
    manifest = manifest_of("false-newcomer", STEP_BATCH)
    with swarm.peers(manifest, [START, START]) as (trainer, newcomer):
        trainer.settle_in()
        for epoch in range(3):
            trainer.contribute([torch.ones(4)], STEP_BATCH)
            trainer.finish(epoch)
        liar.publish(manifest.run_id, *swarm.dhts, epoch=FAR)
        newcomer.optimizer.tracker.look(20)
        newcomer.optimizer.synchronise()
        assert newcomer.optimizer.local_epoch == 3
        assert torch.equal(newcomer.values()[0], trainer.values()[0])


@pytest.mark.parametrize("false", [{"peer_id": NOBODY, "epoch": 900}, {"peer_id": NOBODY, "epoch": FAR}])
def test_a_run_begins_whatever_a_peer_that_nobody_answers_for_claims(swarm, liar, false):
    manifest = manifest_of(f"begins-{false['epoch']}", STEP_BATCH)
    liar.publish(manifest.run_id, *swarm.dhts, **false)
    with swarm.peers(manifest, [START]) as (peer,):
        peer.optimizer.begin()
        peer.optimizer.ask_for_state()
        peer.optimizer.synchronise()
        assert peer.optimizer.local_epoch == peer.optimizer.tracker.global_epoch == 0
        peer.contribute([torch.ones(4)], STEP_BATCH)
        peer.move_on()
        assert peer.optimizer.local_epoch == 1


@pytest.mark.parametrize("false", [{"peer_id": NOBODY, "epoch": 900}, {"epoch": 900}])
def test_a_run_goes_on_from_what_a_computer_has_kept_if_nobody_hands_over_the_state_that_is_claimed(
    swarm, liar, tmp_path, false
):
    manifest = manifest_of(f"goes-on-{len(false)}", STEP_BATCH)
    liar.publish(manifest.run_id, *swarm.dhts, **false)
    with swarm.peers(manifest, [START]) as (peer,):
        optimizer = peer.optimizer
        optimizer._snapshots = Snapshots(tmp_path, manifest.run_id, "{}", ["weight"], 10**12)
        optimizer._state_pause = 0.1
        _, (_, *statistics) = optimizer.state_averager.copied()
        optimizer._snapshots.finish(lambda: (7, [torch.full((4,), 2.0), *statistics]), 60)
        optimizer.begin()
        optimizer.ask_for_state()
        optimizer.synchronise()
        assert optimizer.local_epoch == optimizer.tracker.global_epoch == 7
        assert peer.values()[0][0] == 2.0
        peer.contribute([torch.ones(4)], STEP_BATCH)
        peer.move_on()
        assert optimizer.local_epoch == 8


def test_a_peer_that_somebody_invents_counts_for_nothing(swarm, liar):
    manifest = manifest_of("invented", 4 * STEP_BATCH)
    with swarm.peers(manifest, [START, START]) as (peer, newcomer):
        peer.optimizer.tracker.rate = lambda: 0.0  # as above
        peer.settle_in()
        peer.contribute([torch.ones(4)], STEP_BATCH)
        false = {"peer_id": NOBODY, "epoch": 0, "samples_accumulated": 4 * STEP_BATCH}
        assert liar.publish(manifest.run_id, *swarm.dhts, **false).ready_to_update_epoch
        tracker = newcomer.optimizer.tracker
        wait_until(lambda: (tracker.look(20), tracker.global_progress.samples_accumulated == STEP_BATCH)[1])
        assert tracker.others == 2
        assert not tracker.ready_to_update_epoch


def test_nor_does_the_hosts_keeper_count_it(swarm, liar):
    run_id, dht = manifest_of("kept", STEP_BATCH).run_id, swarm.dhts[0]
    records = SwarmRecords(dht, run_id, 1000, Attendance(asking(dht)))
    liar.publish(run_id, dht, peer_id=NOBODY, epoch=900)
    assert records.look(0, math.inf) == Swarm()
    another = Liar([str(address) for address in dht.get_visible_maddrs()])
    try:
        another.publish(run_id, dht, epoch=5)
        assert records.look(0, math.inf) == Swarm(peers=1, epoch=5)
    finally:
        forked_peers.end_dhts([another.dht])
