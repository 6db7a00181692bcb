"""Recipe bigram: predict the next byte from the last one, by one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from skep.core.project.data import Recipe, Shapes, TextLayout
from skep.core.project.fields import Whole
from skep.recipes.contract import SEED, OpenRecipe, RecipeKind, tensors

if TYPE_CHECKING:
    import torch

    from skep.recipes.tensors.batches import Batch


@dataclass(frozen=True)
class BigramRecipe(Recipe):
    sequence_length: Annotated[int, Whole(8, 32768)]
    vocabulary: Annotated[int, Whole(2, 65536)]
    seed: Annotated[int, SEED]

    @property
    def model_type(self) -> str:
        return "bigram"

    @property
    def layout(self) -> TextLayout:
        return TextLayout(self.sequence_length, self.vocabulary)

    @property
    def positions(self) -> int:
        return self.sequence_length

    @property
    def trained(self) -> Shapes:
        return tensors((self.vocabulary, self.vocabulary))

    def check(self) -> None:
        pass


class Bigram(OpenRecipe):
    def __init__(self, recipe: BigramRecipe) -> None:
        self._recipe = recipe

    def build(self) -> torch.nn.Module:
        import torch

        torch.manual_seed(self._recipe.seed)
        return torch.nn.Embedding(self._recipe.vocabulary, self._recipe.vocabulary)

    def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        import torch

        said = model(batch.inputs[:, :-1])
        return torch.nn.functional.cross_entropy(said.flatten(0, 1), batch.inputs[:, 1:].flatten())

    def example(self, size: int) -> Batch:
        import torch

        from skep.recipes.tensors.batches import text_batch

        return text_batch(torch.randint(self._recipe.vocabulary, (size, self._recipe.sequence_length)))


KIND: Final = RecipeKind(
    BigramRecipe,
    open=lambda recipe, _files: Bigram(recipe),
    libraries=("torch",),
    smallest=(BigramRecipe("bigram", 8, 256, 0),),
)
