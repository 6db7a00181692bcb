from collections import Counter

import pytest
import torch

from skep.core.fit import expected_parameters, matrices_of
from skep.core.manifest import ModelShape, Recipe
from skep.worker.recipes import RECIPES

SHAPES = [
    (ModelShape("gpt2", 1, 1, 8, 256), 8),
    (ModelShape("gpt2", 4, 4, 256, 256), 256),
    (ModelShape("gpt2", 3, 5, 40, 1000), 77),
    (ModelShape("gpt2", 24, 16, 2048, 256), 1024),
    (ModelShape("llama", 1, 1, 8, 256), 8),
    (ModelShape("llama", 4, 4, 256, 256), 256),
    (ModelShape("llama", 3, 5, 40, 1000), 77),
    (ModelShape("llama", 24, 16, 2048, 256), 1024),
]


@pytest.mark.parametrize(("shape", "sequence_length"), SHAPES)
def test_the_number_of_parameters_is_known_without_building_the_model(shape, sequence_length):
    with torch.device("meta"):
        model = RECIPES["causal-lm"].build(Recipe("causal-lm", shape, sequence_length, "bytes", 0))
    counted = sum(parameter.numel() for parameter in model.parameters())
    assert expected_parameters(shape, sequence_length) == counted
    known = Counter()
    for matrix, times in matrices_of(shape, sequence_length):
        known[tuple(sorted(matrix))] += times
    assert known == Counter(tuple(sorted(p.shape)) for p in model.parameters() if p.ndim > 1)
