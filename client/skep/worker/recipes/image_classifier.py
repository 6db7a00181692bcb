"""Recipe image-classifier: say which class an image is of. A vision transformer (vit) from our own whitelisted fields."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel, ViTConfig, ViTForImageClassification

from skep.core.recipe_types import ImageRecipe
from skep.worker.batches import Batch


class ImageClassifier:
    def __init__(self, recipe: ImageRecipe) -> None:
        self._recipe = recipe

    def build(self) -> PreTrainedModel:
        torch.manual_seed(self._recipe.seed)
        shape = self._recipe.model
        config = ViTConfig(
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            intermediate_size=4 * shape.width,
            image_size=shape.image_size,
            patch_size=shape.patch_size,
            num_channels=shape.channels,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        config.num_labels = shape.classes
        return ViTForImageClassification(config)

    def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        """Mean cross-entropy in nats per image. Pixels go from 0..255 to -1..1, as vision transformers expect them."""
        logits = model(pixel_values=batch.inputs.float() / 127.5 - 1.0).logits
        assert batch.labels is not None
        return torch.nn.functional.cross_entropy(logits.float(), batch.labels)

    def example(self, size: int) -> Batch:
        shape = self._recipe.model
        pixels = torch.randint(256, (size, shape.channels, shape.image_size, shape.image_size), dtype=torch.uint8)
        return Batch(pixels, torch.arange(size), torch.randint(shape.classes, (size,)))
