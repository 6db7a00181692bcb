"""A project with signed checkpoints: a newcomer begins with the publisher's, and no peer's state is ever loaded."""

import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import torch

import forked_peers
from english import raises
from liars import FAR, NOBODY, Liar
from skep.core.errors import CheckpointError
from skep.core.project.signed_checkpoint import SignedCheckpoint
from skep.core.session.messages import ContributionLost
from skep.worker.swarm.state.checkpoints import Checkpoint, CheckpointFolder, read
from skep.worker.swarm.state.signed import SignedState
from skep.worker.swarm.state.snapshots import Snapshots
from swarm_peers import STEP_BATCH, finish_together, manifest_of, together, wait_until

# the schedule follows the epoch, and an epoch that is taken up skips some
pytestmark = pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step:UserWarning")
SECONDS = 120
NAMES = ["weight"]
OTHERS, PUBLISHERS, OWN = 7.0, 3.0, 2.0
"""What the parameters are in the state of each."""


def state_in(folder, manifest, epoch, value, optimizer, names=NAMES):
    """The signed checkpoint of this epoch, in which each parameter is `value`."""
    tensors = {name: torch.full((4,), value) for name in names}
    path = CheckpointFolder(folder, 9).write(Checkpoint(manifest.run_id, epoch, "{}", tensors, optimizer))
    return SignedState(note_of(manifest, epoch), path, NAMES)


def note_of(manifest, epoch):
    key = manifest.publisher.key
    return SignedCheckpoint(manifest.id, key, manifest.run_id, epoch, "a" * 64, 1, datetime.now(UTC))


def donate(donor, epoch, value):
    """The donor hands over a state of this epoch, and says that the swarm has reached it."""
    averager = donor.optimizer.state_averager
    _, tensors = averager.copied()
    averager.adopt(epoch, [torch.full_like(tensors[0], value), *tensors[1:]])
    averager.state_sharing_priority = epoch
    donor.optimizer.tracker.stand_at(epoch)  # it may have fetched the swarm's progress before
    donor.optimizer.tracker.report_local_progress(epoch, 1)


def hear_of(peer, epoch):
    tracker = peer.optimizer.tracker
    wait_until(lambda: (tracker.look(1.0), tracker.global_epoch == epoch)[1])


def forbidden(*_arguments):
    pytest.fail("it asks another peer for a state")


@pytest.fixture
def newcomer(swarm, tmp_path):
    """A donor with a state of epoch 5, and a peer that knows of it; with a checkpoint of `epoch` if it is `signed`."""

    def made(name, *, signed, epoch=2, **changes):
        manifest = manifest_of(name, 2 * STEP_BATCH, **changes)
        with swarm.peers(manifest, [[torch.zeros(4)]] * 2) as (donor, peer):
            for each in (donor, peer):
                each.optimizer.tracker.rate = lambda: 0.0  # an epoch ends by samples here, however long this takes
            donate(donor, 5, OTHERS)
            hear_of(peer, 5)
            if signed:
                optimizer = donor.optimizer.state_averager.copied()[1][1:]
                peer.optimizer._signed = state_in(tmp_path, manifest, epoch, PUBLISHERS, optimizer)
                peer.optimizer.state_averager.download = peer.optimizer.grad_averager.catch_up = forbidden
            yield donor, peer

    def begin(name, **options):
        pair = made(name, **options)
        opened.append(pair)
        return next(pair)

    opened = []
    yield begin
    for pair in opened:
        next(pair, None)


def where(peer):
    """Its first value, its epoch, and the epoch that its state belongs to."""
    optimizer = peer.optimizer
    return peer.parameters[0][0].item(), optimizer.local_epoch, optimizer.state_averager.whole_epoch


@pytest.mark.way_in
@pytest.mark.parametrize(("signed", "found"), [(False, (OTHERS, 5, 5)), (True, (PUBLISHERS, 5, 2))])
def test_a_newcomer_begins_with_the_publishers_checkpoint_whatever_a_donor_offers(newcomer, signed, found):
    _, peer = newcomer(f"begins-{signed}".lower(), signed=signed)
    peer.optimizer.begin()
    peer.optimizer.ask_for_state()
    assert (peer.optimizer.state_averager._coming is None) is signed
    peer.optimizer.synchronise()
    assert where(peer) == found


@pytest.fixture(scope="module")
def liar(swarm):
    made = Liar([str(address) for address in swarm.dhts[0].get_visible_maddrs()])
    yield made
    forked_peers.end_dhts([made.dht])


@pytest.mark.way_in
@pytest.mark.parametrize("who", [{"peer_id": NOBODY}, {}])
def test_who_begins_with_a_signed_checkpoint_goes_on_where_most_are_and_ends_no_run(newcomer, swarm, liar, who):
    _, peer = newcomer(f"liar-{len(who)}", signed=True)
    run_id = peer.optimizer.run_id
    liar.publish(run_id, *swarm.dhts, **who, epoch=FAR)
    peer.optimizer.begin()
    peer.optimizer.synchronise()
    assert where(peer) == (PUBLISHERS, 5, 2)
    assert not peer.optimizer.finished


@pytest.mark.way_in
@pytest.mark.parametrize(("signed", "found"), [(False, (9.0, 9, 9)), (True, (PUBLISHERS, 9, 2))])
def test_a_peer_that_has_fallen_behind_keeps_its_parameters(newcomer, signed, found):
    donor, peer = newcomer(f"behind-{signed}".lower(), signed=signed)
    peer.optimizer.begin()
    peer.optimizer.synchronise()
    donate(donor, 9, 9.0)
    hear_of(peer, 9)
    peer.compute([torch.ones(4)], STEP_BATCH)
    peer.optimizer.load_state_from_peers()  # what hivemind would call
    assert where(peer) == found
    assert peer.all(ContributionLost)[-1].samples == STEP_BATCH
    assert peer.optimizer.accumulated == 0


@pytest.mark.way_in
def test_a_model_that_is_not_finite_any_more_becomes_the_publishers(newcomer, tmp_path):
    donor, peer = newcomer("not-finite", signed=True)
    peer.optimizer.begin()
    keep(peer, tmp_path, 4, donor)  # newer, and saved of the model that went wrong
    peer.optimizer.synchronise()
    with torch.no_grad():
        peer.parameters[0].fill_(math.nan)
    peer.compute([torch.ones(4)], STEP_BATCH)
    peer.optimizer.reload()
    assert where(peer) == (PUBLISHERS, 5, 2)
    assert peer.all(ContributionLost)[-1].samples == STEP_BATCH


def test_it_takes_the_parameters_of_the_others_in_the_next_round_of_the_state(newcomer):
    donor, peer = newcomer("joins-in", signed=True, sync__average_state_every=1)
    peer.optimizer.begin()
    peer.optimizer.synchronise()
    together(donor.settle_in, peer.settle_in)
    for each in (donor, peer):
        each.contribute([torch.zeros(4)], STEP_BATCH)
    finish_together((donor, peer), 5)
    peer.take_up_until(lambda: torch.allclose(peer.values()[0], torch.full((4,), OTHERS), atol=0.1))
    wait_until(lambda: peer.optimizer.state_averager.whole_epoch == 6)


@pytest.mark.parametrize(
    ("own", "signed", "value"),
    [
        (1, 2, PUBLISHERS),  # the swarm is four epochs further
        (1, 1, OWN),
        (2, 4, OWN),  # the swarm is three epochs further
        (4, 2, OWN),
    ],
)
def test_its_own_state_is_taken_up_if_it_is_as_new_as_the_publishers_or_hardly_behind(
    newcomer, tmp_path, own, signed, value
):
    donor, peer = newcomer(f"own-{own}-{signed}", signed=True, epoch=signed, sync__average_state_every=1)
    keep(peer, tmp_path, own, donor)
    peer.optimizer.begin()
    epoch = own if value == OWN else signed
    assert where(peer) == (value, epoch, epoch)


@pytest.mark.parametrize(("signed", "value"), [(4, OWN), (5, PUBLISHERS)])
def test_without_peers_the_publishers_checkpoint_says_how_far_the_swarm_was(swarm, tmp_path, signed, value):
    manifest = manifest_of(f"alone-{signed}", STEP_BATCH, sync__average_state_every=1)
    with swarm.peers(manifest, [[torch.zeros(4)]]) as (peer,):
        optimizer = keep(peer, tmp_path, 1, peer)
        peer.optimizer._signed = state_in(tmp_path / "signed", manifest, signed, PUBLISHERS, optimizer)
        peer.optimizer.begin()
        assert peer.parameters[0][0] == value
        peer.optimizer.synchronise()
        assert peer.optimizer.tracker.global_epoch == peer.optimizer.local_epoch == (1 if value == OWN else signed)


def keep(peer, folder, epoch, donor):
    """Give the peer a snapshot of its own; returns the optimizer's part of a state."""
    run_id, optimizer = peer.optimizer.run_id, donor.optimizer.state_averager.copied()[1][1:]
    snapshots = Snapshots(folder / "snapshots", run_id, "{}", NAMES, 10**12)
    snapshots.finish(lambda: (epoch, [torch.full((4,), OWN), *optimizer]), SECONDS)
    peer.optimizer._snapshots = snapshots
    return optimizer


def test_the_first_epoch_can_be_signed_too(newcomer):
    _, peer = newcomer("from-zero", signed=True, epoch=0)
    peer.optimizer.begin()
    peer.optimizer.ask_for_state()
    peer.optimizer.synchronise()
    assert where(peer) == (PUBLISHERS, 5, 0)


@pytest.mark.way_in
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"note": {"epoch": 3}}, "is of the run RUN and epoch 2, and its note says run RUN and epoch 3"),
        ({"note": {"run_id": "other-run"}}, "its note says run other-run and epoch 2"),
        ({"names": ["bias"]}, "of epoch 2 does not fit the project's model"),
        ({"value": math.inf}, "of epoch 2 does not fit the project's model"),
        ({"optimizer": [torch.ones(9)]}, "of epoch 2 does not fit the project's model"),
    ],
)
def test_a_checkpoint_that_is_not_what_its_note_says_is_refused(newcomer, tmp_path, change, words):
    _, peer = newcomer("refused", signed=True)
    signed, run_id = peer.optimizer._signed, peer.optimizer.run_id
    made = Checkpoint(
        run_id,
        2,
        "{}",
        {name: torch.full((4,), change.get("value", PUBLISHERS)) for name in change.get("names", NAMES)},
        change.get("optimizer", read(signed.path).optimizer),
    )
    path = CheckpointFolder(tmp_path / "changed", 9).write(made)
    peer.optimizer._signed = replace(signed, path=path, note=replace(signed.note, **change.get("note", {})))
    with raises(CheckpointError, match=words.replace("RUN", run_id)):
        peer.optimizer.begin()
    assert where(peer) == (0.0, 0, 0)
