"""A manifest names the recipe; it is checked, built, and trained for one step. Exits with 3 without the recipe."""

import sys

from manifests import raw
from skep.core.errors import ManifestError
from skep.core.project.fit import check
from skep.core.project.needs import parameters_of
from skep.recipes.registry import parse_manifest

BODY = {"name": "bigram", "sequence_length": 16, "vocabulary": 64, "seed": 0}

try:
    manifest = parse_manifest(raw(recipe=BODY))
except ManifestError:
    sys.exit(3)
assert "torch" not in sys.modules
assert parameters_of(manifest) == 64 * 64
assert check(manifest, (), memory=10**11, disk_free=10**11).verdict == "fits"

import torch

from skep.worker.training.device import pick
from skep.worker.training.trainer import Trainer

trainer = Trainer(manifest, pick("cpu", manifest.precision))
batch = trainer._recipe.example(4)
before = trainer.add_gradients(batch, 1.0)
torch.optim.SGD(trainer.parameters, lr=1.0).step()
assert trainer.loss(batch) < before
