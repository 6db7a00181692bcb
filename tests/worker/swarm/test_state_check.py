import pytest
import torch

from english import raises
from skep.core.errors import SwarmError
from skep.worker.swarm.averagers import check_tensors

OURS = [torch.zeros(2, 3), torch.zeros(4)]


def test_a_matching_state_is_accepted():
    check_tensors(OURS, [torch.ones(2, 3), torch.ones(4)])


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        ([torch.ones(2, 3)], "a state of 1 tensors, and this model has 2"),
        ([torch.ones(2, 3), torch.ones(1)], r"tensor 1 of its state as \(1,\)"),  # hivemind would broadcast it
        ([torch.ones(2, 3), torch.ones(4, dtype=torch.float16)], "float16"),
        ([torch.ones(2, 3), torch.tensor([1.0, float("nan"), 1.0, 1.0])], "not finite"),
    ],
)
def test_anything_else_is_refused_in_words(theirs, words):
    with raises(SwarmError, match=words):
        check_tensors(OURS, theirs)
