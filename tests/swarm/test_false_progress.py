"""A stock peer publishes progress that cannot be true, to a swarm of two that average with each other."""

import hivemind
import pytest
import torch
from hivemind.dht.schema import RSASignatureValidator, SchemaValidator
from hivemind.optim.progress_tracker import LocalTrainingProgress, ProgressTracker, TrainingProgressSchema
from hivemind.utils import get_dht_time
from hivemind.utils.crypto import RSAPrivateKey

import forked_peers
from skep.core.session.messages import ContributionConfirmed
from swarm_peers import STEP_BATCH, finish_together, manifest_of, together, wait_until

START = [torch.zeros(4)]
FAR = 10**9
NOBODY = b"\x12\x20" + bytes(32)
"""A peer id that nobody has."""


class Liar:
    """A node of stock hivemind that publishes a progress record in any run."""

    def __init__(self, seeds):
        self.dht = hivemind.DHT(initial_peers=seeds, start=True, startup_timeout=60)
        self._key = RSAPrivateKey()
        self._signer = RSASignatureValidator(self._key)
        self.dht.add_validators([self._signer])

    def publish(self, run_id, *readers, **false):
        """Publish false progress; returns a stock tracker that reads it, as soon as `readers` have it too."""
        self.dht.add_validators([SchemaValidator(TrainingProgressSchema, prefix=run_id)])
        record = LocalTrainingProgress(
            time=get_dht_time(),
            client_mode=False,
            **(
                {
                    "peer_id": self.dht.peer_id.to_bytes(),
                    "epoch": 1,
                    "samples_accumulated": 0,
                    "samples_per_second": 0.0,
                }
                | false
            ),
        )
        place = {"key": f"{run_id}_progress", "subkey": self._signer.local_public_key}
        assert self.dht.store(**place, value=record.dict(), expiration_time=get_dht_time() + 600)
        for reader in (self.dht, *readers):
            wait_until(lambda reader=reader: place["subkey"] in reader.get(place["key"], latest=True).value)
        return ProgressTracker(self.dht, run_id, 2 * STEP_BATCH, start=False, private_key=RSAPrivateKey())


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
