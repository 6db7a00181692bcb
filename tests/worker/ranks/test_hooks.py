"""Each hook between the devices of one computer, by what it does: what is sent, and what the gradients are then."""

import dataclasses
import sys

import pytest
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from forked_ranks import on_ranks, received_over_tcp
from skep.core.errors import BadInput
from skep.training.words import say
from skep.worker.ranks.hooks import Compress, PostLocalSGD, PowerSGD, check, register

ROWS, COLUMNS, RANK = 1024, 2048, 16
FRAME = 1.02
"""What is sent is at most this much more than the gradients: the headers of gloo."""
STEPS = 10


class Given(torch.nn.Module):
    """Its gradients are those that are given."""

    def __init__(self, rows=ROWS, columns=COLUMNS):
        super().__init__()
        self.matrix = torch.nn.Parameter(torch.zeros(rows, columns))
        self.vector = torch.nn.Parameter(torch.zeros(rows))

    def forward(self, matrix, vector):
        return (self.matrix * matrix).sum() + (self.vector * vector).sum()


class Rank:
    """One rank with a model of which the test gives the gradients."""

    def __init__(self, options, **model):
        self.ddp = DistributedDataParallel(Given(**model))
        self.after_step = register(self.ddp, options, local_steps=True) if options else lambda: None

    def averaged(self, matrix, vector=None):
        """The gradient of the matrix that this rank has after the exchange, of the one that it had before."""
        self.ddp.zero_grad()
        self.ddp(matrix, torch.zeros(len(matrix)) if vector is None else vector).backward()
        return self.ddp.module.matrix.grad.clone()

    def without_compression(self, iterations=2):
        """Let the first iterations pass, in which torch arranges its buckets."""
        for _ in range(iterations):
            self.averaged(torch.zeros_like(self.ddp.module.matrix))


def drawn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def exact_mean(seeds, *shape):
    return torch.stack([drawn(each, *shape) for each in seeds]).mean(0)


def apart(one, other):
    return float((one - other).norm() / other.norm())


# --- bytes

FULL = 4 * (ROWS * COLUMNS + ROWS)
FACTORS = 4 * ((ROWS + COLUMNS) * RANK + ROWS)
SENT = [
    (None, FULL),
    (Compress("fp16"), FULL / 2),
    (Compress("bf16"), FULL / 2),
    (PowerSGD(RANK, 2), FACTORS),
    (PowerSGD(RANK, 2, warm_start=False, use_error_feedback=False), FACTORS),
    (PowerSGD(RANK, 2, wrapper="fp16"), FACTORS / 2),
    (PowerSGD(RANK, 2, wrapper="bf16"), FACTORS / 2),
    (PostLocalSGD(2, 5), FULL / 5),
]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux says how many bytes a connection has received")
@pytest.mark.parametrize(("options", "each_step"), SENT, ids=str)
def test_as_many_bytes_are_sent_as_computed(tmp_path, options, each_step):
    def work(rank):
        made = Rank(options)
        made.without_compression(iterations=3)
        dist.barrier()
        before = received_over_tcp()
        dist.barrier()
        for step in range(STEPS):
            made.averaged(drawn(step, ROWS, COLUMNS), drawn(step, ROWS))
            made.after_step()
        dist.barrier()
        return received_over_tcp() - before

    received = sum(on_ranks(tmp_path, work))
    expected = 2 * STEPS * each_step  # each of two ranks sends its half and the average of the other half
    assert expected <= received <= FRAME * expected


# --- what arrives

SMALL = {"rows": 24, "columns": 32}
SHAPE = tuple(SMALL.values())


def exchanged(folder, options, gradients, iterations=2):
    """What both ranks have after the exchange of `gradients(rank)`, a list of one matrix per step."""

    def work(rank):
        made = Rank(options, **SMALL)
        made.without_compression(iterations)
        return [made.averaged(each).tolist() for each in gradients(rank)]

    ours, theirs = (torch.tensor(each) for each in on_ranks(folder, work))
    assert torch.equal(ours.nan_to_num(), theirs.nan_to_num())
    return ours


@pytest.mark.parametrize(("precision", "unit"), [("fp16", 2.0**-11), ("bf16", 2.0**-8)])
def test_half_precision_rounds_each_number_once_and_their_sum_once(tmp_path, precision, unit):
    (found,) = exchanged(tmp_path, Compress(precision), lambda rank: [drawn(rank, *SHAPE)])
    one, other = (drawn(rank, *SHAPE) for rank in range(2))
    wrong = (found - (one + other) / 2).abs()
    assert wrong.max() > 0
    assert (wrong <= unit * ((one.abs() + other.abs()) / 2 + found.abs()) + 2.0**-24).all()


def test_of_a_matrix_arrives_its_projection_on_a_space_of_the_rank(tmp_path):
    options = PowerSGD(4, 0, warm_start=False, use_error_feedback=False)
    (found,) = exchanged(tmp_path, options, lambda rank: [drawn(rank, *SHAPE)])
    exact = exact_mean(range(2), *SHAPE)
    assert torch.linalg.matrix_rank(found, rtol=1e-4) == 4
    left_out = exact - found
    assert abs(float((left_out * found).sum())) < 1e-4 * float(found.norm()) * float(left_out.norm())
    best = torch.linalg.svdvals(exact)[4:].norm()
    assert best <= left_out.norm() < exact.norm()


@pytest.mark.parametrize(("wrapper", "nearly"), [("", 1e-5), ("fp16", 5e-3), ("bf16", 4e-2)])
def test_a_matrix_of_no_higher_rank_arrives_whole(tmp_path, wrapper, nearly):
    columns = drawn(9, 2, SHAPE[1])  # the same on both ranks, so that the mean has rank 2 as well
    options = PowerSGD(2, 0, warm_start=False, use_error_feedback=False, wrapper=wrapper)
    (found,) = exchanged(tmp_path, options, lambda rank: [drawn(rank, SHAPE[0], 2) @ columns])
    assert apart(found, exact_mean(range(2), SHAPE[0], 2) @ columns) < nearly


def falling(rank):
    """A matrix whose singular values halve."""
    left, right = (torch.linalg.qr(drawn(seed, size, size))[0] for seed, size in ((1, SHAPE[0]), (2, SHAPE[1])))
    return (1 + rank) * left @ torch.diag(2.0 ** -torch.arange(SHAPE[0])) @ right[: SHAPE[0]]


def left_out_at_last(folder, options):
    exact = (falling(0) + falling(1)) / 2
    return apart(exchanged(folder, options, lambda rank: [falling(rank)] * 12)[-1], exact)


def test_a_warm_start_leaves_out_as_little_as_that_rank_can(tmp_path):
    singular = torch.linalg.svdvals(falling(0))
    best = float(singular[2:].norm() / singular.norm())
    options = PowerSGD(2, 2, use_error_feedback=False)
    assert left_out_at_last(tmp_path, options) < 1.01 * best


def test_without_a_warm_start_each_step_begins_anew(tmp_path):
    singular = torch.linalg.svdvals(falling(0))
    best = float(singular[2:].norm() / singular.norm())
    options = PowerSGD(2, 2, warm_start=False, use_error_feedback=False)
    assert left_out_at_last(tmp_path, options) > 1.01 * best


def mean_over_steps(folder, options):
    steps = 60
    found = exchanged(folder, options, lambda rank: [drawn(rank, *SHAPE)] * steps)
    return apart(found.mean(0), exact_mean(range(2), *SHAPE))


def test_with_error_feedback_the_mean_over_steps_becomes_exact(tmp_path):
    assert mean_over_steps(tmp_path, PowerSGD(4, 2)) < 0.1


def test_without_it_what_is_left_out_stays_left_out(tmp_path):
    assert mean_over_steps(tmp_path, PowerSGD(4, 2, use_error_feedback=False)) > 0.5


def test_gradients_are_whole_before_powersgd_starts(tmp_path):
    found = exchanged(tmp_path, PowerSGD(1, 4), lambda rank: [drawn(rank, *SHAPE)] * 3)
    exact = exact_mean(range(2), *SHAPE)
    assert apart(found[1], exact) < 1e-6
    assert apart(found[2], exact) > 0.1


# --- what torch's own hook would spoil

ZERO = [torch.zeros(*SHAPE)]


def stock(made):
    made.ddp.register_comm_hook(PowerSGDState(None, 1, 2), powerSGD_hook)


def spoilt(folder, first):
    """The gradients that torch's hook with its defaults makes of `first`, and of three sound ones after it."""

    def work(rank):
        made = Rank(None, **SMALL)
        stock(made)
        made.without_compression()
        return [made.averaged(each).tolist() for each in (first, *[falling(rank)] * 3)]

    return torch.tensor(on_ranks(folder, work)[0])


OVERFLOWN = torch.full(SHAPE, torch.inf)


def test_torchs_hook_alone_makes_nan_of_zeros_and_keeps_it(tmp_path):
    assert spoilt(tmp_path, ZERO[0]).isnan().all()
    (tmp_path / "store").unlink(missing_ok=True)
    assert spoilt(tmp_path, OVERFLOWN).isnan().all()


@pytest.mark.parametrize("wrapper", ["", "fp16", "bf16"])
def test_zeros_stay_zeros_and_what_comes_after_them_arrives(tmp_path, wrapper):
    options = PowerSGD(2, 2, use_error_feedback=False, wrapper=wrapper)
    found = exchanged(tmp_path, options, lambda rank: [*ZERO * 2, *[falling(rank)] * 3])
    assert not found[:2].any()
    assert apart(found[-1], (falling(0) + falling(1)) / 2) < 0.6


def test_an_overflow_spoils_one_step(tmp_path):
    found = exchanged(tmp_path, PowerSGD(2, 2), lambda rank: [OVERFLOWN, *[falling(rank)] * 20])
    assert not found[0].isfinite().all()  # so that whoever looks for an overflow sees it
    assert apart(found[1:].mean(0), (falling(0) + falling(1)) / 2) < 0.1


# --- local steps


def test_parameters_drift_between_two_averagings_and_are_equal_after_one(tmp_path):
    def work(rank):
        made = Rank(PostLocalSGD(start_localSGD_iter=2, period=4), **SMALL)
        optimizer = torch.optim.SGD(made.ddp.parameters(), lr=1.0)
        seen = []
        for step in range(12):
            made.averaged(drawn(2 * step + rank, *SHAPE))
            optimizer.step()
            made.after_step()
            seen.append(made.ddp.module.matrix.tolist())
        return seen

    ours, theirs = (torch.tensor(each) for each in on_ranks(tmp_path, work))
    equal = [torch.equal(one, other) for one, other in zip(ours, theirs, strict=True)]
    # averaged after the first local step, and after every fourth one from there on
    assert equal == [True, True, True, False, False, False, True, False, False, False, True, False]
    exact = -sum(exact_mean([2 * step, 2 * step + 1], *SHAPE) for step in range(11))
    assert apart(ours[10], exact) < 1e-5  # steps of SGD are linear: averaging late changes nothing


# --- training


def loss_of(model, seed, samples):
    inputs = drawn(seed, samples, 16)
    wanted = torch.sin(inputs @ drawn(0, 16, 4)) + 0.3 * drawn(seed + 1, samples, 4)
    return torch.nn.functional.mse_loss(model(inputs), wanted)


def trained(folder, options):
    """The loss after training with both ranks, each with its own half of the samples."""

    def work(rank):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))
        ddp = DistributedDataParallel(model)
        after_step = register(ddp, options, local_steps=True) if options else lambda: None
        optimizer = torch.optim.AdamW(ddp.parameters(), lr=3e-3)
        for step in range(240):
            ddp.zero_grad()
            loss_of(ddp, 1000 + 4 * step + 2 * rank, 32).backward()
            optimizer.step()
            after_step()
        return loss_of(model, 3, 4096).item()

    return on_ranks(folder, work)[0]


@pytest.fixture(scope="module")
def uncompressed(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("ranks"), None)


@pytest.mark.parametrize("options", [options for options, _ in SENT[1:-1]] + [PostLocalSGD(20, 4)], ids=str)
def test_training_loses_nothing_by_it_at_equal_samples(tmp_path, options, uncompressed):
    if isinstance(options, PowerSGD):
        options = dataclasses.replace(options, matrix_approximation_rank=2, start_powerSGD_iter=20)
    assert trained(tmp_path, options) < 1.02 * uncompressed


# --- what cannot be used


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Compress("fp8"), "hooks.precision_not_known"),
        (PowerSGD(wrapper="int8"), "hooks.precision_not_known"),
        (PowerSGD(0), "hooks.rank_too_low"),
        (PowerSGD(min_compression_rate=0.0), "hooks.rank_too_low"),
        (PowerSGD(1, 1), "hooks.starts_too_early"),
        (PowerSGD(1, 1, use_error_feedback=False), "hooks.starts_too_early"),
        (PowerSGD(1, -1, warm_start=False, use_error_feedback=False), "hooks.starts_too_early"),
        (PostLocalSGD(-1, 4), "hooks.period_too_short"),
        (PostLocalSGD(0, 1), "hooks.period_too_short"),
    ],
)
def test_options_that_cannot_be_used_are_refused_in_a_sentence(options, words):
    with pytest.raises(BadInput, match=words) as error:
        check(options, local_steps=True)
    assert say(error.value.title).endswith(".")


def test_local_steps_are_refused_where_gradients_go_into_a_round_of_a_swarm():
    with pytest.raises(BadInput, match="local_steps_needed") as error:
        check(PostLocalSGD(), local_steps=False)
    assert "optimizer" in say(error.value.title)


def test_powersgd_that_would_compress_no_matrix_is_refused(tmp_path):
    def work(rank):
        try:
            register(DistributedDataParallel(Given(4, 4)), PowerSGD(1, 2))
        except BadInput as error:
            return say(error.title)

    assert all("rank 1" in each for each in on_ranks(tmp_path, work))
    assert PowerSGD(1).compresses((5, 5))
    assert not PowerSGD(1).compresses((4, 4))
