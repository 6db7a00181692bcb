import pytest
import torch
from hivemind.compression import CompressionInfo, NoCompression

from english import raises
from skep.core.errors import SwarmError
from skep.core.project.manifest import OptimizerSpec
from skep.worker.swarm.optimizers import optimizer_factory
from skep.worker.swarm.plausible import LARGEST_GRADIENT
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.state.pieces import Piece, check_all, names_of_statistics, piece_of

OURS = [
    Piece((2, 3), torch.float32, 24),
    Piece((4,), torch.float32, 16, non_negative=True),
]


def test_a_matching_state_is_accepted():
    check_all(OURS, [-torch.ones(2, 3), torch.ones(4)])


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        ([torch.ones(2, 3)], "a state of 1 tensors, and this model has 2"),
        ([torch.ones(2, 3), torch.ones(1)], r"tensor 1 of its state as \(1,\)"),  # hivemind would broadcast it
        ([torch.ones(2, 3), torch.ones(4, dtype=torch.float16)], "float16"),
        ([torch.ones(2, 3), torch.tensor([1.0, float("nan"), 1.0, 1.0])], "not finite"),
        ([torch.ones(2, 3), torch.tensor([1.0, -1e-9, 1.0, 1.0])], "negative second moments"),
        ([torch.ones(2, 3) * -2e9, torch.ones(4)], "larger than any"),
    ],
)
def test_anything_else_is_refused_in_words(theirs, words):
    with raises(SwarmError, match=words):
        check_all(OURS, theirs)


KINDS = {
    "adamw": ["exp_avg", "exp_avg_sq", "step"],
    "lamb": ["exp_avg", "exp_avg_sq", "step"],
    "sgd": ["momentum_buffer"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_statistics_of_every_optimizer_are_found_by_name(kind):
    spec = OptimizerSpec(kind, learning_rate=0.1, betas=(0.9, 0.99), weight_decay=0.0, clip_norm=None)
    rounds = Rounds("statistics", lambda _message: None)
    optimizer = optimizer_factory(spec, rounds)([torch.nn.Parameter(torch.ones(2)) for _ in range(2)])
    for parameter in optimizer.param_groups[0]["params"]:
        parameter.grad = torch.ones(2)
    optimizer.step()
    assert names_of_statistics(optimizer) == KINDS[kind] * 2


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("", (False, LARGEST_GRADIENT)),
        ("exp_avg", (False, LARGEST_GRADIENT)),
        ("momentum_buffer", (False, LARGEST_GRADIENT)),
        ("exp_avg_sq", (True, LARGEST_GRADIENT**2)),
        ("step", (True, LARGEST_GRADIENT)),
    ],
)
def test_second_moments_and_counts_are_never_negative_and_second_moments_are_squares(name, bounds):
    tensor = torch.ones(2)
    piece = piece_of(NoCompression(), tensor, name, CompressionInfo.from_tensor(tensor))
    assert (piece.non_negative, piece.largest) == bounds
