"""Our optimizer with real peers, compared with the stock one where that fails: failed rounds, rests, lost peers."""

import asyncio
import signal
import time
from functools import partial
from unittest import mock

import hivemind
import pytest
import torch
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.schema import SchemaValidator
from hivemind.optim.progress_tracker import ProgressTracker, TrainingProgressSchema
from hivemind.utils import get_dht_time
from hivemind.utils.crypto import RSAPrivateKey

import forked_peers
from english import in_english, raises
from manifests import raw
from skep.core.errors import SwarmError
from skep.core.session.messages import ContributionConfirmed, ContributionLost
from skep.core.text import NOTHING, verbatim
from skep.recipes.registry import parse_manifest
from skep.worker.swarm.catching_up import LOOK_SECONDS
from skep.worker.swarm.global_rounds import GlobalRounds
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.strategy import Participant, run_of
from skep.worker.swarm.tracker import Presence

TARGET = 64
STEP_BATCH = 8
RATE = 0.01
BOOKS_SECONDS = 20.0 + 2.0
"""Within this time a dead peer is off the books, and a look at them later."""
HALF_OF_STOCK = 5.0
"""Seconds; hivemind looks at the others' progress every 10 s while it expects the epoch to go on for long."""
PLAIN = {
    "sync__target_batch_size": TARGET,
    "sync__matchmaking_seconds": 2,
    "sync__averaging_timeout_seconds": 5,
    "sync__delay_optimizer_step": False,
    "sync__delay_state_averaging": False,
    "sync__average_state_every": 1000,
    "optimizer__learning_rate": RATE,
    "optimizer__weight_decay": 0.0,
    "schedule": {"kind": "constant", "warmup_epochs": 0, "total_epochs": 1000},
}
MANIFEST = parse_manifest(raw(**PLAIN))
FALLING = parse_manifest(raw(**PLAIN | {"schedule": {"kind": "linear", "warmup_epochs": 0, "total_epochs": 20}}))
ALL_DELAYED = parse_manifest(
    raw(
        **PLAIN
        | dict.fromkeys(
            ("sync__delay_optimizer_step", "sync__delay_grad_averaging", "sync__delay_state_averaging"), True
        )
    )
)


class Peer:
    """A model with one parameter tensor, and our optimizer."""

    def __init__(self, dht, size=4, manifest=MANIFEST, kind_of_rounds=GlobalRounds):
        self.told = []
        self.rounds = Rounds("s", self.told.append)
        self.parameter = torch.nn.Parameter(torch.zeros(size))
        self.optimizer = kind_of_rounds(Participant(run_of(manifest), dht, [self.parameter], STEP_BATCH, self.rounds))

    def contribute(self, samples=STEP_BATCH):
        self.parameter.grad += samples / STEP_BATCH
        self.rounds.grow(self.optimizer.local_epoch, samples)
        self.optimizer.contribute(samples)
        self.optimizer.tracker.tell()

    def epoch(self):
        """Contribute the samples of a whole epoch, and end it."""
        before = self.optimizer.local_epoch
        self.contribute(TARGET)
        wait_until(lambda: self.optimizer.tend(lambda: None) or self.optimizer.local_epoch > before)


class StockPeer:
    """The same with hivemind's own optimizer, used as in its documentation."""

    def __init__(self, dht, size=4, manifest=MANIFEST):
        self.parameter = torch.nn.Parameter(torch.zeros(size))
        self.optimizer = hivemind.Optimizer(
            dht=dht,
            run_id=manifest.run_id,
            target_batch_size=TARGET,
            batch_size_per_step=TARGET,
            params=[self.parameter],
            optimizer=lambda groups: torch.optim.AdamW(groups, lr=RATE, weight_decay=0.0),
            scheduler=lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0),
            matchmaking_time=2.0,
            averaging_timeout=5.0,
            average_state_every=1000,
            offload_optimizer=True,
            reuse_grad_buffers=True,
            delay_optimizer_step=False,
        )

    def epoch(self):
        self.parameter.grad += 1.0
        self.optimizer.step()

    def work_until_synchronous(self):
        """Add samples until it has checked whether it is synchronised in this epoch, which it does once."""

        self.optimizer.step(batch_size=1)
        wait_until(self.optimizer.tracker.fetched_global_progress_this_epoch.is_set)
        self.optimizer.step(batch_size=1)
        assert not self.optimizer._should_check_synchronization_on_update


def wait_until(condition, within=30):
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def trackers(monkeypatch):
    """All running trackers. Ends them, and closes their event loops, which hivemind does not."""
    running = []

    def run(self):
        running.append(self)
        with asyncio.Runner() as runner:
            runner.run(both(self))
        self.shutdown_complete.set()

    async def both(self):
        await asyncio.gather(self._progress_reporter(), self._progress_fetcher())

    monkeypatch.setattr(ProgressTracker, "run", run)
    yield
    for tracker in running:
        tracker.shutdown(2.0)


@pytest.fixture
def peers(make_dhts, trackers):
    made = []

    def make(kind, dht, **options):
        made.append(kind(dht, **options))
        return made[-1]

    interrupt = signal.getsignal(signal.SIGINT)
    yield make
    signal.signal(signal.SIGINT, interrupt)  # hivemind ignores SIGINT after its first averager
    for peer in made:
        forked_peers.end([peer.optimizer.grad_averager, peer.optimizer.state_averager])


@pytest.fixture
def ghost(make_dhts, trackers):
    """Creates a peer that only has a progress record, as one that has just died; needs its own DHT."""

    def haunt(dht, epoch, samples=1, manifest=MANIFEST):
        key = RSAPrivateKey()  # otherwise all peers of one process share a record
        tracker = ProgressTracker(dht, manifest.run_id, TARGET, private_key=key, start=True)
        tracker.report_local_progress(epoch, samples)
        return tracker

    return haunt


def open_books(dht):
    """A peer's progress record, read as a peer does: with the signatures checked and removed.

    Needs its own DHT, since a DHT checks the signatures with one key only.
    """
    dht.add_validators(
        [SchemaValidator(TrainingProgressSchema, MANIFEST.run_id), RSASignatureValidator(RSAPrivateKey())]
    )

    def record_of(tracker):
        found = dht.get(tracker.training_progress_key, latest=True, return_future=True).result(10)
        entry = found.value.get(tracker._local_public_key) if found else None
        return entry.value if entry else None

    return record_of


# --- failed rounds


def fail_a_round(kind, make_dhts, peers, ghost, **options):
    """An epoch alone, which fills Adam's statistics, then one whose round fails; returns the second's largest step."""
    home, grave = make_dhts(2)
    peer = peers(kind, home, **options)
    while peer.optimizer.local_epoch < 1:
        peer.epoch()
    ghost(grave, epoch=1)
    wait_until(lambda: peer.optimizer.tracker.global_progress.num_peers > 1)
    before = peer.parameter.detach().clone()
    while peer.optimizer.local_epoch < 2:
        peer.epoch()
    return peer, float((peer.parameter.detach() - before).abs().max())


def test_after_a_failed_round_stock_moves_on_its_momentum(make_dhts, peers, ghost):
    _, moved = fail_a_round(StockPeer, make_dhts, peers, ghost)
    assert moved > RATE / 10


def test_after_a_failed_round_ours_stays_where_it_is_and_says_lost(make_dhts, peers, ghost):
    peer, moved = fail_a_round(Peer, make_dhts, peers, ghost)
    assert moved == 0.0
    alone, failed = [message for message in peer.told if isinstance(message, ContributionLost)]
    assert (alone.epoch, alone.samples, in_english(alone.reason)) == (0, TARGET, "no other peer")
    assert (failed.epoch, failed.samples) == (1, TARGET)
    assert in_english(failed.reason) in {"no group was found for the round", "the round took too long"}
    assert not [message for message in peer.told if isinstance(message, ContributionConfirmed)]


def test_a_round_that_nobody_comes_to_is_given_up_once_its_peers_would_have_met(make_dhts, peers, ghost):
    took = []

    class Timed(GlobalRounds):
        def _update_global_epoch(self, scaler):
            begun = time.monotonic()
            super()._update_global_epoch(scaler)
            took.append(time.monotonic() - begun)

    whole = 30
    manifest = parse_manifest(raw(**PLAIN | {"sync__averaging_timeout_seconds": whole}))
    fail_a_round(Peer, make_dhts, peers, ghost, manifest=manifest, kind_of_rounds=Timed)
    assert manifest.sync.matchmaking_seconds <= took[-1] < whole / 3


# --- rest and withdrawal


def test_a_resting_peer_publishes_what_it_has_with_a_rate_of_zero_whatever_is_reported_later(make_dhts, peers):
    dhts = make_dhts(2)
    record_of = open_books(dhts[1])
    peer = peers(Peer, dhts[0])
    tracker = peer.optimizer.tracker
    peer.contribute(24)
    wait_until(lambda: (record_of(tracker) or {}).get("samples_accumulated") == 24)
    assert record_of(tracker)["samples_per_second"] > 0
    peer.optimizer.rest(leaving=False)
    wait_until(lambda: record_of(tracker)["samples_per_second"] == 0.0)
    assert record_of(tracker)["samples_accumulated"] == 24
    tracker.report_local_progress(0, 16)  # as after a round or a discard
    wait_until(lambda: record_of(tracker)["samples_accumulated"] == 16)
    assert record_of(tracker)["samples_per_second"] == 0.0
    peer.optimizer.wake()
    peer.contribute()
    wait_until(lambda: record_of(tracker)["samples_per_second"] > 0)


def test_a_peer_that_left_the_books_stays_off_them_and_stock_comes_back(make_dhts, peers, ghost):
    dhts = make_dhts(3)
    record_of = open_books(dhts[1])
    stock = ghost(dhts[2], epoch=0, samples=8)
    peer = peers(Peer, dhts[0])
    ours = peer.optimizer.tracker
    peer.contribute()
    for tracker in (stock, ours):
        wait_until(lambda tracker=tracker: record_of(tracker))
    dhts[2].store(
        stock.training_progress_key,
        subkey=stock._local_public_key,
        value=None,
        expiration_time=get_dht_time() + stock.metadata_expiration,
    )
    peer.optimizer.withdraw()
    for tracker in (stock, ours):
        wait_until(lambda tracker=tracker: record_of(tracker) is None)
    for tracker in (stock, ours):
        tracker.should_report_progress.set()  # as each does by itself after half of its record's lifetime
    wait_until(lambda: record_of(stock))
    time.sleep(1.0)  # more time than the stock tracker needed
    assert record_of(ours) is None
    peer.optimizer.wake()
    time.sleep(LOOK_SECONDS / 2)
    peer.contribute()
    wait_until(lambda: record_of(ours))


def test_a_peer_that_takes_up_again_in_the_same_epoch_is_counted_on_for_what_it_had(make_dhts, peers):
    dhts = make_dhts(2)
    record_of = open_books(dhts[1])
    peer = peers(Peer, dhts[0])
    tracker = peer.optimizer.tracker
    peer.contribute()
    wait_until(lambda: record_of(tracker))
    peer.optimizer.rest(leaving=False)
    peer.optimizer.withdraw()
    wait_until(lambda: record_of(tracker) is None)
    peer.optimizer.wake()
    wait_until(lambda: record_of(tracker))
    assert (record_of(tracker)["samples_accumulated"], peer.optimizer.accumulated) == (STEP_BATCH, STEP_BATCH)


def test_a_peer_that_has_died_is_off_the_books_within_20_seconds(make_dhts, peers):
    home, grave = make_dhts(2)
    key = RSAPrivateKey()  # otherwise both would share a record
    with mock.patch.object(RSAPrivateKey, "process_wide", return_value=key):
        mortal = peers(Peer, grave)
    peer = peers(Peer, home)
    for each in (peer, mortal):
        each.contribute()
    wait_until(lambda: peer.optimizer.tracker.others == 1)
    mortal.optimizer.tracker.shutdown_triggered.set()
    mortal.optimizer.tracker.should_report_progress.set()  # its last record, right before its death
    begun = time.monotonic()
    wait_until(lambda: (peer.optimizer.tracker.look(1.0), peer.optimizer.tracker.others == 0)[1])
    assert time.monotonic() - begun < BOOKS_SECONDS


def test_a_departing_peer_is_off_the_books_when_withdraw_returns(make_dhts, peers):
    dhts = make_dhts(2)
    record_of = open_books(dhts[1])
    peer = peers(Peer, dhts[0])
    peer.contribute()
    wait_until(lambda: record_of(peer.optimizer.tracker))
    peer.optimizer.tracker.withdraw(10.0)
    assert record_of(peer.optimizer.tracker) is None


def test_a_woken_peer_knows_at_once_how_far_the_swarm_is(make_dhts, peers, ghost):
    dhts = make_dhts(2)
    peer = peers(Peer, dhts[0])
    tracker = peer.optimizer.tracker
    tracker.max_refresh_period = tracker.default_refresh_period = 600.0
    tracker.global_state_updated.set()
    tracker.global_progress.next_fetch_time = get_dht_time() + 600
    peer.optimizer.rest(leaving=False)
    ghost(dhts[1], epoch=4)
    wait_until(lambda: dhts[0].get(tracker.training_progress_key, latest=True))
    looked = []
    peer.optimizer.catch_up = lambda reason: looked.append((reason, tracker.global_epoch))
    peer.optimizer.wake()
    assert in_english(looked) == [("this computer was paused", 4)]


@pytest.mark.parametrize("ours", [True, False])
def test_the_end_of_an_epoch_that_comes_sooner_than_expected_is_learnt_while_others_search(
    make_dhts, peers, ghost, ours
):
    dhts = make_dhts(2)
    tracker = peers(Peer if ours else StockPeer, dhts[0]).optimizer.tracker
    other = ghost(dhts[1], epoch=0)
    other.performance_ema.samples_per_second = 0.01
    other.report_local_progress(0, 1)
    wait_until(lambda: 1e3 < tracker.global_progress.eta_next_epoch - get_dht_time() < 1e9)
    other.report_local_progress(0, TARGET)
    if ours:
        wait_until(lambda: tracker.ready_to_update_epoch, within=HALF_OF_STOCK)
    else:
        with pytest.raises(AssertionError):
            wait_until(lambda: tracker.ready_to_update_epoch, within=HALF_OF_STOCK)


# --- one epoch behind


def swarm_moves_on(kind, make_dhts, peers, ghost, **options):
    """A peer at epoch 0, in a swarm that has advanced to epoch 1, with a donor of its state."""
    dhts = make_dhts(3)
    donor, peer = peers(Peer, dhts[0]), peers(kind, dhts[1], **options)
    if kind is Peer:
        peer.contribute()
        peer.optimizer.rest(leaving=False)
    else:
        peer.work_until_synchronous()
    donate(donor, epoch=1, value=7.0)
    ghost(dhts[2], epoch=1)
    wait_until(lambda: peer.optimizer.tracker.global_epoch == 1)
    return peer


@pytest.fixture
def rounds_begun(monkeypatch):
    """The optimizers that searched for a group to average gradients, one entry for each search."""
    begun = []
    inner = hivemind.Optimizer._begin_averaging_gradients
    monkeypatch.setattr(
        hivemind.Optimizer, "_begin_averaging_gradients", lambda self, scaler: begun.append(self) or inner(self, scaler)
    )
    return begun


def test_one_epoch_behind_stock_waits_for_a_round_that_nobody_is_in(make_dhts, peers, ghost, rounds_begun):
    stock = swarm_moves_on(StockPeer, make_dhts, peers, ghost)
    begun = time.monotonic()
    stock.epoch()
    assert rounds_begun == [stock.optimizer]
    assert time.monotonic() - begun > 2.0  # at least its matchmaking time; 20 s with the stock settings
    assert (stock.optimizer.local_epoch, stock.parameter.tolist() == [7.0] * 4) == (
        1,
        False,
    )  # and does not load the state


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step:UserWarning")
@pytest.mark.parametrize("manifest", [MANIFEST, ALL_DELAYED], ids=["nothing delayed", "all delayed"])
def test_one_epoch_behind_ours_is_in_step_when_it_wakes(make_dhts, peers, ghost, rounds_begun, manifest):
    peer = swarm_moves_on(Peer, make_dhts, peers, ghost, manifest=manifest)
    peer.optimizer.wake()
    assert (peer.optimizer.local_epoch, peer.parameter.tolist()) == (1, [7.0] * 4)
    assert [(lost.samples, in_english(lost.reason)) for lost in peer.told if isinstance(lost, ContributionLost)] == [
        (STEP_BATCH, "this computer was paused")
    ]
    peer.contribute()
    assert not peer.optimizer.tend(lambda: None)
    assert (peer.optimizer.accumulated, peer.optimizer.local_epoch) == (STEP_BATCH, 1)
    assert rounds_begun == []


def test_a_peer_whose_delayed_round_is_under_way_is_in_step_when_it_has_slept_through_the_next(make_dhts, peers, ghost):
    dhts = make_dhts(3)
    donor, peer = peers(Peer, dhts[0]), peers(Peer, dhts[1], manifest=ALL_DELAYED)
    absent = ghost(dhts[2], epoch=0)
    peer.contribute()
    wait_until(lambda: peer.optimizer.tracker.global_progress.num_peers > 1)
    peer.epoch()  # the round waits in the background for a peer that never joins
    assert peer.optimizer.state_averager.pending_updates
    peer.contribute()
    peer.optimizer.rest(leaving=False)
    donate(donor, epoch=2, value=7.0)
    absent.report_local_progress(2, 1)
    wait_until(lambda: peer.optimizer.tracker.global_epoch == 2)
    begun = time.monotonic()
    peer.optimizer.wake()
    assert time.monotonic() - begun < 2 * ALL_DELAYED.sync.averaging_timeout_seconds
    assert (peer.optimizer.local_epoch, peer.parameter.tolist()) == (2, [7.0] * 4)
    lost = [message for message in peer.told if isinstance(message, ContributionLost)]
    assert [(each.epoch, each.samples) for each in lost] == [(0, STEP_BATCH + TARGET), (1, STEP_BATCH)]


# --- lost peers


HASTY = {"kind_of_rounds": partial(GlobalRounds, state_pause=0.1)}


def test_a_lost_peer_gives_up_in_words_when_nobody_hands_over_a_state(make_dhts, peers, ghost):
    dhts = make_dhts(2)
    peer = peers(Peer, dhts[0], **HASTY)
    peer.contribute()
    ghost(dhts[1], epoch=5)
    wait_until(lambda: peer.optimizer.tracker.global_epoch == 5)
    handed_over = []
    begun = time.monotonic()
    with raises(SwarmError, match="No peer of the swarm sends its training state"):
        peer.optimizer.tend(lambda: handed_over.append(True))
    assert time.monotonic() - begun < 15
    assert handed_over
    lost = [message for message in peer.told if isinstance(message, ContributionLost)]
    assert [(message.samples, in_english(message.reason)) for message in lost] == [
        (STEP_BATCH, "this computer was behind the swarm")
    ]
    peer.rounds.end(verbatim("the training process stopped"))
    assert [message for message in peer.told if isinstance(message, ContributionLost)] == lost


def donate(peer, epoch, value):
    """Make the others consider this peer the most advanced one."""
    averager = peer.optimizer.state_averager
    with torch.no_grad():
        for group in averager.optimizer.param_groups:
            group["lr"], group["betas"] = 9.0, (0.1, 0.2)
            for parameter in group["params"]:
                parameter.fill_(value)
    averager.local_epoch = averager._whole_epoch.value = epoch
    averager.state_sharing_priority = epoch


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step:UserWarning")
def test_a_state_of_another_shape_is_refused_where_stock_would_broadcast_it(make_dhts, peers, ghost):
    dhts = make_dhts(4)
    donor, stock, ours = peers(Peer, dhts[0], size=1), peers(StockPeer, dhts[1]), peers(Peer, dhts[2], **HASTY)
    donate(donor, epoch=5, value=7.0)
    ghost(dhts[3], epoch=5)
    wait_until(lambda: stock.optimizer.state_averager.load_state_from_peers(timeout=10) or stock.optimizer.local_epoch)
    assert stock.parameter.tolist() == [7.0] * 4  # one number was broadcast to four
    stock.optimizer.state_averager.allow_state_sharing = False
    wait_until(lambda: ours.optimizer.tracker.global_epoch == 5)
    with raises(SwarmError, match=r"sent tensor 0 of its state as \(1,\)"):
        ours.optimizer.catch_up(NOTHING)
    assert ours.parameter.tolist() == [0.0] * 4
    assert ours.optimizer.local_epoch == 0


# hivemind creates the scheduler after the optimizer's virtual first step, and a newcomer skips many epochs
@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step:UserWarning")
def test_a_newcomer_takes_the_tensors_of_the_swarm_and_not_its_hyperparameters(make_dhts, peers, ghost):
    dhts = make_dhts(4)
    donor, stock, ours = (
        peers(kind, dht, manifest=FALLING) for kind, dht in zip((Peer, StockPeer, Peer), dhts, strict=False)
    )
    donate(donor, epoch=5, value=7.0)
    ghost(dhts[3], epoch=5, manifest=FALLING)
    wait_until(lambda: stock.optimizer.state_averager.load_state_from_peers(timeout=10) or stock.optimizer.local_epoch)
    stock.optimizer.state_averager.allow_state_sharing = False
    wait_until(lambda: ours.optimizer.tracker.global_epoch == 5)
    ours.optimizer.synchronise()
    assert (ours.optimizer.local_epoch, ours.parameter.tolist()) == (5, [7.0] * 4)
    assert tuple(stock.optimizer.opt.param_groups[0]["betas"]) == (0.1, 0.2)
    assert ours.optimizer.opt.param_groups[0]["betas"] == (0.9, 0.95)
    assert ours.optimizer.opt.param_groups[0]["lr"] == pytest.approx(0.75 * RATE)  # as in the schedule at epoch 5


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step:UserWarning")
def test_a_state_that_was_asked_for_early_is_the_one_that_is_taken(make_dhts, peers, ghost):
    dhts = make_dhts(3)
    donor, ours = peers(Peer, dhts[0]), peers(Peer, dhts[1])
    donate(donor, epoch=5, value=7.0)
    ghost(dhts[2], epoch=5)
    wait_until(lambda: ours.optimizer.tracker.global_epoch == 5)
    wait_until(lambda: dhts[1].get(f"{donor.optimizer.state_averager.prefix}.all_averagers", latest=True))
    ours.optimizer.ask_for_state()
    wait_until(ours.optimizer.state_averager._coming.future.done)
    donate(donor, epoch=6, value=8.0)
    ours.optimizer.synchronise()
    assert ours.parameter.tolist() == [7.0] * 4
    ours.optimizer.catch_up(NOTHING)  # the state is not loaded twice
    assert ours.parameter.tolist() == [8.0] * 4


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step:UserWarning")
def test_a_state_older_than_the_swarm_is_taken_up_once_and_is_handed_over_as_what_it_is(make_dhts, peers, ghost):
    dhts = make_dhts(3)
    donor, ours = peers(Peer, dhts[0]), peers(Peer, dhts[1])
    donate(donor, epoch=5, value=7.0)
    ghost(dhts[2], epoch=6)
    wait_until(lambda: ours.optimizer.tracker.global_epoch == 6)
    ours.optimizer.synchronise()
    averager = ours.optimizer.state_averager
    assert (ours.optimizer.local_epoch, averager.whole_epoch, ours.parameter.tolist()) == (6, 5, [7.0] * 4)
    assert not ours.optimizer._should_load_state_from_peers()
    assert averager.get_current_state()[0]["epoch"] == 5
    assert averager.state_sharing_priority == 5


def rested(peers, dht, books, epochs=2):
    """A peer that has trained so many epochs alone, and is paused: it has no record of its progress in the `books`."""
    peer = peers(Peer, dht)
    while peer.optimizer.local_epoch < epochs:
        peer.epoch()
    peer.optimizer.rest(leaving=False)
    wait_until(lambda: (peer.optimizer.tend(lambda: None), peer.optimizer.tracker.presence is Presence.AWAY)[1])
    wait_until(lambda: books(peer.optimizer.tracker) is None)
    return peer


def offers_of(dht, *peers):
    """The epochs of the states that the peers offer, as another one sees it."""
    averagers = [peer.optimizer.state_averager for peer in peers]
    found = dht.get(f"{averagers[0].prefix}.all_averagers", latest=True)
    entries = [found.value.get(averager.peer_id.to_bytes()) if found else None for averager in averagers]
    return [entry.value if entry else None for entry in entries]


def test_a_newcomer_begins_with_the_state_of_a_paused_peer_where_nobody_trains(make_dhts, peers):
    dhts = make_dhts(3)
    paused = rested(peers, dhts[0], open_books(dhts[2]))
    wait_until(lambda: offers_of(dhts[1], paused) == [2])
    ours = peers(Peer, dhts[1])
    ours.optimizer.ask_for_state()
    assert (ours.optimizer._offered, ours.optimizer.tracker.others) == (2, 0)
    ours.optimizer.synchronise()
    assert (ours.optimizer.local_epoch, ours.parameter.tolist()) == (2, paused.parameter.tolist())
    ours.epoch()
    assert ours.optimizer.local_epoch == 3


def test_a_newcomer_begins_alone_where_nobody_trains_and_nobody_hands_over_a_state(make_dhts, peers):
    dhts = make_dhts(3)
    paused = rested(peers, dhts[0], open_books(dhts[2]))
    wait_until(lambda: offers_of(dhts[1], paused) == [2])
    ours = peers(Peer, dhts[1], size=1, **HASTY)  # to which the other's state does not fit
    ours.optimizer.synchronise()
    assert (ours.optimizer.local_epoch, ours.parameter.tolist()) == (0, [0.0])
    ours.epoch()
    assert ours.optimizer.local_epoch == 1


def test_a_newcomer_without_a_state_does_not_train_with_peers_that_have_come_meanwhile(make_dhts, peers, ghost):
    dhts = make_dhts(4)
    paused = rested(peers, dhts[0], open_books(dhts[2]))
    wait_until(lambda: offers_of(dhts[1], paused) == [2])
    ours = peers(Peer, dhts[1], size=1, **HASTY)
    ours.optimizer.ask_for_state()
    assert ours.optimizer._offered == 2
    ghost(dhts[3], epoch=2)
    wait_until(lambda: ours.optimizer.tracker.others)
    with raises(SwarmError, match="tensor 0 of its state"):
        ours.optimizer.synchronise()
