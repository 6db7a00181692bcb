"""The state that a peer hands over is of one epoch, comes from the next donor when one is lost, and outlives a restart."""

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hivemind.compression import NoCompression
from hivemind.optim.state_averager import TrainingStateAverager
from torch.optim.lr_scheduler import LambdaLR, StepLR

import forked_peers
from skep.worker.swarm.averaging.averagers import CheckedStateAverager
from skep.worker.swarm.state.download import STALL_SECONDS
from skep.worker.swarm.state.snapshots import Snapshots
from skep.worker.swarm.tracker import LiveProgressTracker
from swarm_peers import STEP_BATCH, finish_together, manifest_of, together, wait_until

# the schedule follows the epoch, and an epoch that is loaded skips some
pytestmark = pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step:UserWarning")
SECONDS = 120
VALUES = 1 << 18
KINDS = [TrainingStateAverager, CheckedStateAverager]


class Stuck(NoCompression):
    """Sends tensors until the one full of `at`; then it waits without end, and its whole process too."""

    def __init__(self, at):
        self._at, self.reached = at, multiprocessing.Event()

    def compress(self, tensor, info, *, allow_inplace=False):
        if tensor.numel() == VALUES and tensor[0] == self._at:
            self.reached.set()
            multiprocessing.Event().wait()
        return super().compress(tensor, info, allow_inplace)


@pytest.fixture
def make(make_dhts, averagers):
    """An averager with one parameter for each of `values`, on a node of its own."""

    def made(kind, values, codec=None, **options):
        number = len(averagers)
        make.dhts = make.dhts or make_dhts(3)
        averager = kind(
            dht=make.dhts[number],
            prefix="states",
            params=[torch.nn.Parameter(torch.full((VALUES,), float(value))) for value in values],
            optimizer=lambda groups: torch.optim.SGD(groups, lr=1.0),
            state_compression=codec or NoCompression(),
            start=True,
            **options,
        )
        averagers.append(averager)
        averager.wait_until_ready(SECONDS)
        return averager

    make.dhts = None
    return made


def step(averager, **options):
    for parameter in averager.optimizer.param_groups[0]["params"]:
        parameter.grad = torch.ones(VALUES)
    averager.step(increment_epoch=True, optimizer_step=True, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_that_was_handed_over_shows_stocks_next_step_and_none_of_ours(make, kind):
    donor = make(kind, [7.0])
    metadata, tensors, _ = donor.get_current_state()
    step(donor)
    assert metadata["epoch"] == 0
    assert tensors[0][0] == (6.0 if kind is TrainingStateAverager else 7.0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_tensors_of_a_state_that_is_handed_over_have_a_storage_each_with_stock_and_one_with_ours(make, kind):
    _, tensors, _ = make(kind, [7.0, 8.0]).get_current_state()
    storages = {each.untyped_storage().data_ptr() for each in tensors}
    assert (len(tensors), len(storages)) == (2, 2 if kind is TrainingStateAverager else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_labelled_with_the_next_epoch_before_stocks_delayed_step_and_after_ours(make, kind):
    donor = make(kind, [7.0], offload_optimizer=True, custom_gradients=True)
    averaged = threading.Event()
    step(donor, delay_optimizer_step=True, wait_for_trigger=averaged.wait)
    metadata, tensors, _ = donor.get_current_state()
    assert donor.local_epoch == 1
    assert (metadata["epoch"], tensors[0][0].item()) == (1 if kind is TrainingStateAverager else 0, 7.0)
    averaged.set()
    donor.step(wait_for_delayed_updates=True)
    metadata, tensors, _ = donor.get_current_state()
    assert (metadata["epoch"], tensors[0][0].item()) == (1, 6.0)


def falling(optimizer):
    return LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))


@pytest.mark.parametrize("kind", KINDS)
def test_the_schedule_of_a_newcomer_stands_where_the_swarms_does(make, kind):
    newcomer = make(kind, [7.0], scheduler=falling)
    for epoch in (1, 9):
        newcomer.local_epoch = epoch
        newcomer._update_scheduler()
        assert newcomer.scheduler.last_epoch == epoch
        assert newcomer.optimizer.param_groups[0]["lr"] == 1 / (1 + epoch)


def test_so_it_does_for_a_peer_that_goes_back_to_an_earlier_state(make):
    newcomer = make(CheckedStateAverager, [7.0], scheduler=falling)
    for epoch in (9, 4, 5):
        newcomer.local_epoch = epoch
        newcomer._update_scheduler()
        assert newcomer.scheduler.last_epoch == epoch
        assert newcomer.optimizer.param_groups[0]["lr"] == 1 / (1 + epoch)


def test_a_schedule_that_needs_each_step_stands_where_the_swarms_does_too(make):
    newcomer = make(CheckedStateAverager, [7.0], scheduler=lambda optimizer: StepLR(optimizer, 2, gamma=0.5))
    for epoch in (1, 9, 10):
        newcomer.local_epoch = epoch
        newcomer._update_scheduler()
        assert newcomer.optimizer.param_groups[0]["lr"] == 0.5 ** (epoch // 2)
    newcomer.local_epoch = 10**9
    newcomer._update_scheduler()
    assert newcomer.scheduler.last_epoch == 10**9


def test_no_step_of_the_schedule_is_made_for_epochs_that_were_claimed_only(make):
    newcomer = make(CheckedStateAverager, [7.0], scheduler=falling)
    newcomer.local_epoch = 10**9  # stock would make as many steps, for hours
    newcomer._update_scheduler()
    assert newcomer.optimizer.param_groups[0]["lr"] == 1 / (1 + 10**9)


def load(newcomer):
    if isinstance(newcomer, CheckedStateAverager):
        newcomer.load_checked(0)
    else:
        newcomer.load_state_from_peers(timeout=SECONDS)
    return newcomer.main_parameters[0][0].item()


@pytest.mark.parametrize(("donors", "newcomers"), [KINDS, KINDS[::-1], [CheckedStateAverager] * 2])
def test_stock_peers_and_ours_load_each_others_states(make, donors, newcomers):
    make(donors, [7.0, 8.0])
    newcomer = make(newcomers, [0.0, 0.0])
    wait_until(lambda: load(newcomer) == 7.0, SECONDS)
    assert newcomer.main_parameters[1][-1].item() == 8.0


def test_a_state_is_loaded_though_its_only_donor_is_in_a_round_of_the_state_for_longer_than_a_stall(make):
    donor, newcomer = make(CheckedStateAverager, [7.0]), make(CheckedStateAverager, [0.0])
    with ThreadPoolExecutor(1) as pool:
        with donor.lock_averaged_tensors:  # as hivemind holds it while a round lasts
            loading = pool.submit(newcomer.load_checked, 0)
            with pytest.raises(TimeoutError):
                loading.result(STALL_SECONDS + 5.0)
        assert loading.result(SECONDS) == 0
    assert newcomer.main_parameters[0][0].item() == 7.0


def priorities(dht):
    """Those of the donors that a peer with this node knows."""
    found = dht.get("states.all_averagers", latest=True)
    return {entry.value for entry in found.value.values()} - {0.0} if found else set()


def test_when_a_donor_is_killed_in_the_middle_the_next_one_is_asked(make):
    stuck = Stuck(8.0)
    first, newcomer = make(CheckedStateAverager, [7.0, 8.0, 9.0], stuck), make(CheckedStateAverager, [0.0, 0.0, 0.0])
    second = make(CheckedStateAverager, [17.0, 18.0, 19.0])
    first.state_sharing_priority = 3.0  # so much newer that it is always asked first
    second.state_sharing_priority = 1.0
    wait_until(lambda: priorities(newcomer.dht) == {1.0, 3.0}, SECONDS)
    with ThreadPoolExecutor(1) as pool:
        seen = []
        loading = pool.submit(newcomer.load_checked, 0, seen.append)
        assert stuck.reached.wait(SECONDS)
        wait_until(lambda: any(each.received for each in seen), SECONDS)
        forked_peers.kill([first])
        assert loading.result(SECONDS) == 0
    assert [parameter[0].item() for parameter in newcomer.main_parameters] == [17.0, 18.0, 19.0]
    assert {each.total for each in seen} == {3 * 4 * VALUES}


def test_a_download_that_is_given_up_ends_in_the_averagers_process(make):
    stuck = Stuck(8.0)
    make(CheckedStateAverager, [7.0, 8.0], stuck)
    newcomer = make(CheckedStateAverager, [0.0, 0.0])
    while not stuck.reached.wait(0.1):
        newcomer.ask_for_state(0)
        wait_until(lambda: stuck.reached.is_set() or newcomer._coming.future.done(), SECONDS)
    newcomer._coming.give_up()
    assert newcomer.load_checked(0) is None  # at once, and not when the donor counts as stalled
    assert newcomer.main_parameters[0][0] == 0.0


# --- restarts


def keeping(folder, manifest):
    return Snapshots(folder, manifest.run_id, "{}", ["weight"], 10**12)


def test_a_restart_goes_on_from_the_snapshot_without_a_download_where_nobody_trains(swarm, tmp_path):
    manifest = manifest_of("snapshots", STEP_BATCH)
    with swarm.peers(manifest, [[torch.zeros(4)], [torch.zeros(4)]]) as (peer, again):
        peer.optimizer._snapshots = keeping(tmp_path, manifest)
        for _ in range(2):
            peer.contribute([torch.ones(4)], STEP_BATCH)
            peer.move_on()
            # without being asked for one: its process may be killed
            wait_until(lambda: keeping(tmp_path, manifest).newest() is not None)
        peer.optimizer.save(SECONDS)
        peer.optimizer.farewell(SECONDS)
        wait_until(lambda: (again.optimizer.tracker.look(1.0), again.optimizer.tracker.others == 0)[1])

        again.optimizer._snapshots = keeping(tmp_path, manifest)
        again.optimizer.take_up_snapshot()
        again.optimizer.ask_for_state()
        assert again.optimizer.state_averager._coming is None
        again.optimizer.synchronise()
        assert again.optimizer.local_epoch == again.optimizer.state_averager.whole_epoch == 2
        assert all(map(torch.equal, again.values(), peer.values()))
        again.contribute([torch.ones(4)], STEP_BATCH)
        again.move_on()
        assert again.optimizer.local_epoch == 3


@pytest.mark.parametrize(("behind", "taken"), [(3, True), (4, False)])
def test_a_snapshot_is_taken_up_when_the_swarm_is_few_epochs_further(swarm, tmp_path, behind, taken):
    manifest = manifest_of(f"behind-{behind}", STEP_BATCH, sync__average_state_every=1)
    with swarm.peers(manifest, [[torch.ones(4)], [torch.zeros(4)]]) as (trainer, again):
        state = trainer.optimizer.state_averager
        state.adopt(5, state.copied()[1])
        keeping(tmp_path, manifest).finish(state.copied, SECONDS)
        state.adopt(5 + behind, state.copied()[1])
        trainer.optimizer.tracker.report_local_progress(5 + behind, 1)
        wait_until(lambda: (again.optimizer.tracker.look(1.0), again.optimizer.tracker.global_epoch == 5 + behind)[1])
        again.optimizer._snapshots = keeping(tmp_path, manifest)
        again.optimizer.take_up_snapshot()
        again.optimizer.ask_for_state()
        assert (again.optimizer.state_averager._coming is None) == taken
        again.optimizer.synchronise()
        assert again.optimizer.local_epoch == 5 + behind
        assert again.optimizer.state_averager.whole_epoch == (5 if taken else 5 + behind)


@pytest.mark.parametrize(("usual", "taken"), [(0, True), (5, True), (4, True), (3, False)])
def test_a_snapshot_from_beyond_where_most_others_are_is_not_taken_up(swarm, tmp_path, monkeypatch, usual, taken):
    manifest = manifest_of(f"beyond-{usual}", STEP_BATCH)
    with swarm.peers(manifest, [[torch.ones(4)]]) as (peer,):
        state = peer.optimizer.state_averager
        state.adopt(5, state.copied()[1])
        keeping(tmp_path, manifest).finish(state.copied, SECONDS)
        peer.optimizer._snapshots = keeping(tmp_path, manifest)
        # the tracker goes on looking at the swarm
        monkeypatch.setattr(LiveProgressTracker, "usual", property(lambda _tracker: usual, lambda *_: None))
        assert peer.optimizer.take_up_snapshot() == taken
        # others' states are saved from now on
        assert (peer.optimizer._snapshots._written == 0) != taken


def test_a_snapshot_that_is_no_state_of_this_model_makes_way_for_the_next_one(swarm, tmp_path):
    manifest = manifest_of("refused", STEP_BATCH)
    with swarm.peers(manifest, [[torch.ones(4)]]) as (peer,):
        state = peer.optimizer.state_averager
        keeping(tmp_path, manifest).finish(lambda: (9, [torch.ones(5)]), SECONDS)
        peer.optimizer._snapshots = keeping(tmp_path, manifest)
        assert not peer.optimizer.take_up_snapshot()
        state.adopt(5, state.copied()[1])
        peer.optimizer.save(SECONDS)
        assert keeping(tmp_path, manifest).newest().epoch == 5


def test_a_peer_whose_parameters_lack_steps_takes_those_of_the_others_in_the_next_round_of_the_state(swarm):
    manifest = manifest_of("lacking", 2 * STEP_BATCH, sync__average_state_every=1)
    with swarm.peers(manifest, [[torch.ones(4)], [torch.full((4,), 5.0)]]) as peers:
        states = [peer.optimizer.state_averager for peer in peers]
        for peer, state in zip(peers, states, strict=True):
            # a state that is handed over makes way for rounds of both averagers
            assert state._uplink is peer.optimizer.grad_averager._uplink
            assert state.number_of_averager != peer.optimizer.grad_averager.number_of_averager
            state.adopt(3, state.copied()[1])
            peer.optimizer.tracker.stand_at(3)  # the tracker may have fetched the swarm's progress before
            peer.optimizer.tracker.report_local_progress(3, 0)
        states[1]._whole_epoch.value = 0
        together(*(peer.settle_in for peer in peers))
        for peer in peers:
            peer.contribute([torch.zeros(4)], STEP_BATCH)
        finish_together(peers, 3)
        for peer in peers:  # the mean would be 3
            peer.take_up_until(lambda peer=peer: torch.allclose(peer.values()[0], torch.ones(4), atol=0.1))
        wait_until(lambda: [state.whole_epoch for state in states] == [4, 4])
