import pytest
import torch

from english import raises
from skep.core.errors import SwarmError
from skep.worker.swarm.state.pieces import NEVER_NEGATIVE, Piece, check_all, names_of_statistics

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
    ],
)
def test_anything_else_is_refused_in_words(theirs, words):
    with raises(SwarmError, match=words):
        check_all(OURS, theirs)


def test_the_statistics_that_are_never_negative_are_found_by_name():
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.ones(2)) for _ in range(2)])
    for parameter in optimizer.param_groups[0]["params"]:
        parameter.grad = torch.ones(2)
    optimizer.step()
    names = names_of_statistics(optimizer)
    assert names == ["exp_avg", "exp_avg_sq", "step"] * 2
    assert [name in NEVER_NEGATIVE for name in names[:3]] == [False, True, True]
