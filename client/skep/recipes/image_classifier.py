"""Recipe image-classifier: predict the class of an image. A vision transformer (vit) from whitelisted fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from skep.core.project.data import ImageLayout, Recipe, Shapes, times
from skep.core.project.fields import FieldError, Whole, variant
from skep.core.text import Text
from skep.recipes.contract import (
    SEED,
    OpenRecipe,
    RecipeKind,
    TransformerShape,
    encoder_layer,
    larger,
    linear,
    norm,
    tensors,
    transformer_activations,
)

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from skep.recipes.tensors.batches import Batch


@dataclass(frozen=True)
class VisionShape(TransformerShape):
    """vit: a transformer over square patches of square images. `image_size` and `patch_size` in pixels."""

    image_size: Annotated[int, Whole(8, 1024)]
    patch_size: Annotated[int, Whole(2, 64)]
    channels: Annotated[int, Whole(1, 4)]
    classes: Annotated[int, Whole(2, 100_000)]


@dataclass(frozen=True)
class ImageRecipe(Recipe):
    model: Annotated[VisionShape, variant("type", {"vit": VisionShape})]
    seed: Annotated[int, SEED]

    @property
    def model_type(self) -> str:
        return self.model.type

    @property
    def layout(self) -> ImageLayout:
        return ImageLayout(self.model.channels, self.model.image_size, self.model.classes)

    @property
    def positions(self) -> int:
        return (self.model.image_size // self.model.patch_size) ** 2

    @property
    def trained(self) -> Shapes:
        shape, w = self.model, self.model.width
        patch = tensors((w, shape.channels * shape.patch_size**2), (w,))
        # the class has a vector and a position of its own
        places = tensors((1, w), (1, (self.positions + 1) * w))
        return patch + places + times(shape.layers, encoder_layer(w)) + norm(w) + linear(w, shape.classes)

    @property
    def largest_part(self) -> Shapes:
        shape, w = self.model, self.model.width
        patch = tensors((w, shape.channels * shape.patch_size**2), (w,))
        places = tensors((1, w), (1, (self.positions + 1) * w))
        return larger(encoder_layer(w), patch, places, linear(w, shape.classes))

    @property
    def activations(self) -> int:
        return transformer_activations(self.model, self.positions + 1, self.model.classes)

    def check(self) -> None:
        self.model.check_heads()
        if self.model.image_size % self.model.patch_size:
            raise FieldError("recipe.model.image_size", Text("field.must_multiple_patch_size"))


@dataclass(frozen=True)
class ImageClassifier(OpenRecipe):
    recipe: ImageRecipe

    def build(self) -> PreTrainedModel:
        import torch
        from transformers import ViTConfig, ViTForImageClassification

        torch.manual_seed(self.recipe.seed)
        shape = self.recipe.model
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
        import torch

        logits = model(pixel_values=batch.inputs.float() / 127.5 - 1.0).logits
        assert batch.labels is not None
        return torch.nn.functional.cross_entropy(logits.float(), batch.labels)

    def example(self, size: int) -> Batch:
        import torch

        from skep.recipes.tensors.batches import Batch

        shape = self.recipe.model
        pixels = torch.randint(256, (size, shape.channels, shape.image_size, shape.image_size), dtype=torch.uint8)
        return Batch(pixels, torch.arange(size), torch.randint(shape.classes, (size,)))


KIND: Final = RecipeKind(
    ImageRecipe,
    open=lambda recipe, _files: ImageClassifier(recipe),
    libraries=("transformers.models.vit.modeling_vit",),
    smallest=(ImageRecipe("image-classifier", VisionShape("vit", 1, 2, 16, 16, 8, 1, 3), 0),),
)
