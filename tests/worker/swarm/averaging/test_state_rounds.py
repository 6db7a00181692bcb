"""Who is taken into a group, and what is done with the result of an all-reduce, with a stand-in for hivemind's runner."""

import asyncio
import math
import threading
from concurrent.futures import Future
from multiprocessing import Value
from types import SimpleNamespace

import pytest
import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.optim.state_averager import TrainingStateAverager
from hivemind.proto import averaging_pb2
from hivemind.utils import MSGPackSerializer

from skep.worker.swarm.averaging import honest_averager
from skep.worker.swarm.averaging.all_reduce import Used
from skep.worker.swarm.averaging.averagers import CheckedGradientAverager, CheckedStateAverager
from skep.worker.swarm.averaging.drift import FARTHEST, Drift
from skep.worker.swarm.averaging.groups import DUE, EPOCH, Company, epoch_told
from skep.worker.swarm.averaging.honest_averager import HonestAverager
from skep.worker.swarm.averaging.state_rounds import LACKING_WEIGHT, CheckedRounds, facts_of
from skep.worker.swarm.rounds import RoundFacts

GOOD = RoundFacts(group_size=2, heard=("a",), missing=(), complete=True)


class Runner:
    """Yields `changes`, one for each tensor; `watched` is called before each."""

    weight = 1.0

    def __init__(self, changes, *, reduces=True, watched=lambda: None):
        self.changes, self.watched, self.cancelled = changes, watched, False
        self.tensor_part_reducer = SimpleNamespace(num_parts=int(reduces))

    async def __aiter__(self):
        for change in self.changes:
            self.watched()
            yield torch.tensor(change)

    def finalize(self, *, cancel):
        self.cancelled = cancel


def averager():
    return SimpleNamespace(_averaging_alpha=1.0, _drift=Drift())


def used(kind, runner, tensors, own=None):
    return asyncio.run(kind._use(own or averager(), runner, tensors))


def start():
    return [torch.tensor([1.0, 2.0]), torch.tensor([3.0])]


@pytest.mark.parametrize("kind", [HonestAverager, CheckedRounds])
def test_what_a_round_changes_is_added(kind):
    tensors = start()
    assert used(kind, Runner([[0.5, -0.5], [1.0]]), tensors).refused is False
    assert [tensor.tolist() for tensor in tensors] == [[1.5, 1.5], [4.0]]


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e6])
def test_of_an_average_with_one_bad_tensor_none_is_used(bad):
    tensors = start()
    assert used(CheckedRounds, Runner([[0.5, -0.5], [bad]]), tensors) == Used(refused=True)
    assert [tensor.tolist() for tensor in tensors] == [[1.0, 2.0], [3.0]]


LARGE = 1000


def in_steps(own, start, moves, change):
    """Rounds of the state; before each our parameters move so far. The last one changes them by `change`."""
    tensors = [torch.full((LARGE,), start)]
    for number, move in enumerate(moves):
        tensors[0] += move
        told = used(CheckedRounds, Runner([[change if number == len(moves) - 1 else 0.0] * LARGE]), tensors, own)
    return told.refused, float(tensors[0].mean())


@pytest.mark.parametrize(
    ("start", "moves", "change", "refused"),
    [
        pytest.param(1.0, [0.01], 1.9, False, id="in the first round, as wide as ever"),
        pytest.param(1.0, [0.01, 0.01], 0.1, False, id="little beside the parameters"),
        pytest.param(1.0, [0.1, 0.1], 0.7, False, id="as one that has missed steps"),
        pytest.param(1.0, [0.1, 0.1], 0.9, True, id="more than that"),
        pytest.param(0.01, [0.1, 0.1, 0.0], 0.7, False, id="we have missed all steps"),
        pytest.param(0.0, [1e-4, 1e-4], 0.5, True, id="small parameters"),
        pytest.param(0.0, [1e-4, 0.5], 0.5, False, id="all have moved far"),
    ],
)
def test_an_average_is_no_farther_from_ours_than_steps_can_be(start, moves, change, refused):
    own = averager()
    told, value = in_steps(own, start, moves, change)
    assert told is refused
    assert value == pytest.approx(start + sum(moves) + (0.0 if refused else change), rel=1e-5)
    # a round that was refused changes nothing of what is known
    tensors = [torch.full((LARGE,), value)]
    assert not used(CheckedRounds, Runner([[0.0] * LARGE]), tensors, own).refused


@pytest.mark.parametrize(("weight", "refused"), [(1.0, True), (LACKING_WEIGHT, False)])
def test_a_peer_that_knows_that_it_lacks_steps_takes_what_the_others_have(weight, refused):
    own, tensors = averager(), [torch.full((LARGE,), 1.0)]
    assert not used(CheckedRounds, Runner([[0.0] * LARGE]), tensors, own).refused
    farther = Runner([[1.5] * LARGE])
    farther.weight = weight
    assert used(CheckedRounds, farther, tensors, own).refused is refused


def test_what_is_kept_of_parameters_is_small():
    drift, tensors = Drift(), [torch.randn(1_000_000), torch.randn(3), torch.randn(0), torch.tensor(2.0)]
    drift.settle(tensors)
    assert sum(kept.numel() for kept in drift._kept) < 10_000
    moved = [tensor + 0.5 for tensor in tensors]
    found = drift.bounds(moved, [0.0] * len(tensors))
    assert found == pytest.approx([FARTHEST * 0.5, FARTHEST * 0.5, 0.0, FARTHEST * 0.5], rel=1e-3)


def test_parameters_change_only_when_the_whole_average_has_arrived():
    tensors, seen = start(), []
    used(CheckedRounds, Runner([[0.5, -0.5], [1.0]], watched=lambda: seen.append(tensors[0].tolist())), tensors)
    assert seen == [[1.0, 2.0]] * 2


@pytest.mark.parametrize("kind", [HonestAverager, CheckedRounds])
def test_tensors_that_are_not_finite_are_not_sent(kind):
    tensors, begun = [torch.tensor([math.nan])], []
    runner = Runner([[0.0]], watched=lambda: begun.append(True))
    assert used(kind, runner, tensors) == Used(refused=True)
    assert (begun, runner.cancelled) == ([], True)


@pytest.mark.parametrize("reduces", [True, False])
def test_only_a_peer_that_reduces_nothing_measures_the_change_and_in_another_thread(monkeypatch, reduces):
    measured, real = [], honest_averager.magnitude
    monkeypatch.setattr(
        honest_averager, "magnitude", lambda tensor: measured.append(threading.current_thread()) or real(tensor)
    )
    assert used(HonestAverager, Runner([[0.5, -0.5], [1.0]], reduces=reduces), start()).moved is not reduces
    assert bool(measured) is not reduces
    assert threading.main_thread() not in measured


@pytest.mark.parametrize(("change", "moved"), [(1e-7, False), (1e-3, True)])
def test_a_change_by_rounding_is_no_sign_of_another_peer(change, moved):
    runner = Runner([[change, -change], [change]], reduces=False)
    assert used(HonestAverager, runner, start()) == Used(moved=moved)


@pytest.mark.parametrize(
    ("end", "facts"),
    [
        (lambda control: control.set_result(SimpleNamespace(facts=GOOD)), GOOD),
        (lambda control: control.set_exception(RuntimeError()), None),
        (lambda control: control.cancel(), None),
        (lambda control: None, None),
    ],
)
def test_the_facts_of_a_round_are_those_of_its_result(end, facts):
    control = Future()
    end(control)
    assert facts_of(control) == facts


def test_a_round_that_could_not_begin_has_no_facts():
    assert facts_of(None) is None


def claim(data):
    """What a peer says of itself for a round."""
    return MSGPackSerializer.dumps([1.0, 0, MSGPackSerializer.dumps(data)])


HOSTILE = [{EPOCH: "5"}, {EPOCH: True}, {EPOCH: [5]}, {EPOCH: 5.0}, {}, [5], "5"]
STOCK, SILENT = 5, None
"""Stock peers say a number for a round of the state, and nothing for one of gradients."""


@pytest.mark.parametrize("said", [STOCK, SILENT, *HOSTILE])
def test_only_a_peer_of_ours_tells_its_epoch_and_only_in_a_whole_number(said):
    assert epoch_told(claim({EPOCH: 5})) == 5
    assert epoch_told(claim(said)) is None
    assert epoch_told(b"\xc1") is None


def bare(kind):
    """An averager without its process, as before `__init__`."""
    return object.__new__(type(kind.__name__, (kind,), {"__del__": lambda _self: None}))


def leader(kind, said, *, due=False):
    """One that gathers a group; None said means that it does not."""

    async def take(_request, _context):
        yield averaging_pb2.MessageFromLeader(code=averaging_pb2.ACCEPTED)

    made = bare(kind)
    made._admissions, made._company = None, Company(None, None)
    step = None if said is None else SimpleNamespace(data_for_gather=claim(said), triggered=due)
    made._matchmaking = SimpleNamespace(step_control=step, rpc_join_group=take)
    return made


def answer(averager, said):
    async def ask():
        request, context = averaging_pb2.JoinRequest(gather=claim(said)), SimpleNamespace(remote_id="a peer")
        return [message.code async for message in averager.rpc_join_group(request, context)]

    return asyncio.run(ask())


def test_who_has_harmed_a_round_is_not_taken_into_a_group():
    made = leader(CheckedRounds, {EPOCH: 5})
    made._company.avoid("another")
    assert answer(made, {EPOCH: 5}) == [averaging_pb2.ACCEPTED]
    made._company.avoid("a peer")
    assert answer(made, {EPOCH: 5}) == [averaging_pb2.PROTOCOL_VIOLATION]


@pytest.mark.parametrize(
    ("own", "said", "taken"),
    [
        ({EPOCH: 5}, {EPOCH: 5}, True),
        ({EPOCH: 5}, {EPOCH: 6}, False),
        ({EPOCH: 5}, {EPOCH: 4}, False),
        ({EPOCH: 5}, 6, True),
        (None, {EPOCH: 6}, True),
        *(({EPOCH: 6}, each, True) for each in HOSTILE),
    ],
)
def test_peers_of_ours_form_a_group_for_the_state_of_one_epoch_and_take_stock_peers_of_any(own, said, taken):
    assert answer(leader(TrainingStateAverager, own), said) == [averaging_pb2.ACCEPTED]
    expected = averaging_pb2.ACCEPTED if taken else averaging_pb2.NOT_LOOKING_FOR_GROUP
    assert answer(leader(CheckedRounds, own), said) == [expected]


@pytest.mark.parametrize(
    ("own", "due", "said", "taken"),
    [
        pytest.param({EPOCH: 5}, False, {EPOCH: 5}, True, id="the same"),
        pytest.param({EPOCH: 5}, False, {EPOCH: 4, DUE: True}, False, id="behind, ours is not due"),
        pytest.param({EPOCH: 5}, True, {EPOCH: 4, DUE: True}, True, id="behind, ours is due too"),
        pytest.param({EPOCH: 5}, True, {EPOCH: 6, DUE: False}, False, id="ahead, and not due"),
        pytest.param({EPOCH: 5}, True, {EPOCH: 6, DUE: "yes"}, False, id="ahead, says nonsense"),
        pytest.param({EPOCH: 5}, True, {EPOCH: 6}, False, id="ahead, does not say"),
        pytest.param({EPOCH: 5}, True, {EPOCH: 6, DUE: True}, True, id="ahead, and due"),
        pytest.param({EPOCH: 5}, False, None, True, id="a stock peer"),
        pytest.param({EPOCH: None}, False, {EPOCH: 5}, True, id="we only help"),
    ],
)
def test_a_group_for_gradients_is_of_one_epoch_or_begins_at_once(own, due, said, taken):
    expected = averaging_pb2.ACCEPTED if taken else averaging_pb2.NOT_LOOKING_FOR_GROUP
    assert answer(leader(CheckedGradientAverager, own, due=due), said) == [expected]


class Control(Future):
    triggered, weight = False, 1.0

    def __init__(self, said):
        super().__init__()
        self.data_for_gather = claim(said)


def test_a_group_that_was_found_for_another_epoch_is_not_used(monkeypatch):
    begun = []
    monkeypatch.setattr(DecentralizedAverager, "step", lambda _self, **options: begun.append(options) or "a new one")
    monkeypatch.setattr(CheckedRounds, "local_epoch", 4, raising=False)
    averager = bare(CheckedRounds)
    right, early = Control({EPOCH: 4}), Control({EPOCH: 4})
    assert averager._usable(right) is right
    averager.reached = 5
    assert averager._usable(early) == "a new one"
    assert early.cancelled()
    averager.schedule_step(gather=6)
    assert [each["gather"] for each in begun] == [{EPOCH: 5}, {EPOCH: 6}]


@pytest.mark.parametrize(("contained", "weight"), [(4, 1.0), (3, LACKING_WEIGHT)])
@pytest.mark.parametrize("found_for", [4, 3, None])
def test_a_peer_that_lacks_steps_gives_little_in_whichever_round_it_gets(monkeypatch, contained, weight, found_for):
    """`found_for`: the epoch of the group that was searched for before, if any."""

    def step(_averager, *, weight=1.0, **_options):
        made = Control({EPOCH: 4})
        made.weight = weight
        return made

    used = []
    monkeypatch.setattr(DecentralizedAverager, "step", step)
    monkeypatch.setattr(TrainingStateAverager, "_do", lambda _self, *given, **_options: used.append(given[4]))
    averager = bare(CheckedStateAverager)
    monkeypatch.setattr(CheckedStateAverager, "local_epoch", 4, raising=False)
    averager._whole_epoch = Value("q", contained)
    averager._whole_rounds = Value("q", 0)
    averager._do(None, False, False, True, found_for and Control({EPOCH: found_for}))
    assert [each.weight for each in used] == [weight]
