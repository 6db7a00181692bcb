"""Shards of images: opened only if they match the index, and drawn with their labels."""

import hashlib

import pytest
import torch
from safetensors.torch import save

from english import in_english
from recipe_files import image_index, plain_images
from skep.core.errors import DataError
from skep.core.project.data import ImageLayout, ShardRef
from skep.worker.training.data import Samples, open_shard

LAYOUT = ImageLayout(3, 8, 4)
GOOD = plain_images(5, LAYOUT)


def shard_with(**changes):
    tensors = {name: tensor for name, tensor in (GOOD | changes).items() if tensor is not None}
    return save(tensors)


def open_raw(folder, raw):
    path = folder / "shard"
    path.write_bytes(raw)
    return open_shard(path, ShardRef(hashlib.sha256(raw).hexdigest(), len(raw), 5), LAYOUT)


def test_a_good_shard_is_opened(tmp_path):
    rows = open_raw(tmp_path, shard_with())
    assert torch.equal(rows.inputs, GOOD["pixels"])
    assert torch.equal(rows.labels, GOOD["labels"])


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (shard_with(labels=None), 'it does not contain exactly two tensors "labels" and "pixels"'),
        (shard_with(more=torch.ones(1)), 'it does not contain exactly two tensors "labels" and "pixels"'),
        (shard_with(pixels=GOOD["pixels"].float()), "its pixels are not uint8"),
        (shard_with(labels=GOOD["labels"].long()), "its labels are not int32"),
        (shard_with(pixels=GOOD["pixels"][:4].clone()), "it does not contain 5 images of 3 x 8 x 8"),
        (shard_with(pixels=GOOD["pixels"][:, :1].clone()), "it does not contain 5 images of 3 x 8 x 8"),
        (shard_with(pixels=GOOD["pixels"].reshape(5, 3, 4, 16)), "it does not contain 5 images of 3 x 8 x 8"),
        (shard_with(labels=GOOD["labels"][:4].clone()), "it does not have one label for each image"),
        (shard_with(labels=GOOD["labels"] + 4), "it has labels outside 0 to 3"),
        (shard_with(labels=GOOD["labels"] - 4), "it has labels outside 0 to 3"),
        (b"nonsense", "it is not a safetensors file"),
    ],
)
def test_a_shard_that_is_not_what_was_promised_is_refused_in_words(tmp_path, raw, said):
    with pytest.raises(DataError) as refused:
        open_raw(tmp_path, raw)
    assert (
        in_english(refused.value.title) == f"The shard {hashlib.sha256(raw).hexdigest()[:12]}… cannot be used: {said}."
    )


def test_images_are_drawn_with_their_labels_and_numbered(tmp_path):
    index = image_index(tmp_path, LAYOUT)
    asked = []
    samples = Samples(index, "peer", "run", 700, asked.append)
    seen = []
    while len(seen) < 3:
        while not samples.ready(60):
            assert asked
            samples.arrived(asked[-1], str(tmp_path / f"{asked.pop()}.safetensors"))
        batch = samples.next_batch(60)
        assert batch.inputs.dtype is torch.uint8
        assert batch.labels.dtype is torch.int64
        # each class has its own brightness
        bright = batch.inputs.flatten(1).float().mean(dim=1)
        assert torch.equal(((bright - 15) / (200 / 3)).round().long(), batch.labels)
        seen.append(batch.draws)
    assert torch.cat(seen).tolist() == list(range(700, 880))
