"""Recipe masked-lm: predict hidden tokens. albert and bert models from our own whitelisted fields.

Of every sample the same number of tokens is chosen, 15 %: 80 % of these are hidden behind the mask token, 10 % are
replaced by any other, 10 % stay (Devlin et al.: BERT). What is chosen depends on the recipe's seed and the sample's
number in the peer's order alone: a restart repeats it, the next pass over the data chooses anew, and held-out samples
are always judged by the same places. Equal numbers make a batch's loss the mean of its samples', however it is cut.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from skep.core.project.data import FileRef, Shapes, times
from skep.core.project.fields import Whole, variant
from skep.core.project.manifest import BYTE_VOCABULARY, BYTES
from skep.recipes.causal_lm import CausalLM, CausalRecipe, ModelShape, check_text
from skep.recipes.contract import Files, RecipeKind, encoder_layer, larger, linear, norm, tensors

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from skep.recipes.tensors.batches import Batch

CHOSEN: Final = 0.15
_HIDDEN_OF_TEN: Final = 8
_REPLACED_FATE: Final = 8
"""Ten fates of a chosen token are equally likely: below _HIDDEN_OF_TEN it is hidden, at this one replaced, else kept."""
_IGNORED: Final = -100
_VOCABULARY: Final = BYTE_VOCABULARY + 1
"""Over bytes: one more value hides another."""


@dataclass(frozen=True)
class AlbertShape(ModelShape):
    """albert: all layers share their parameters, and embeddings are narrower than the layers."""

    embedding_width: Annotated[int, Whole(8, 16384)]


@dataclass(frozen=True)
class MaskedRecipe(CausalRecipe):
    model: Annotated[ModelShape, variant("type", {"albert": AlbertShape, "bert": ModelShape})]

    @property
    def files(self) -> tuple[FileRef, ...]:
        """The tokenizer says which token hides another; bytes have one of their own, after the 256 values."""
        if isinstance(self.tokenizer, str):
            return ()
        return (FileRef("tokenizer", self.tokenizer.sha256, 0, self.tokenizer.url),)

    @property
    def trained(self) -> Shapes:
        shape = self.model
        w, v, albert = shape.width, shape.vocabulary, isinstance(shape, AlbertShape)
        e = shape.embedding_width if isinstance(shape, AlbertShape) else w
        embeddings = tensors((v, e), (self.sequence_length, e), (1, e)) + norm(e)
        widening = linear(e, w) if albert else Counter()
        # what is predicted uses the embeddings once more, with a bias for each token
        head = linear(w, e) + norm(e) + tensors((v,))
        return embeddings + widening + times(1 if albert else shape.layers, encoder_layer(w)) + head

    @property
    def largest_part(self) -> Shapes:
        shape = self.model
        e = shape.embedding_width if isinstance(shape, AlbertShape) else shape.width
        return larger(encoder_layer(shape.width), tensors((shape.vocabulary, e)), tensors((self.sequence_length, e)))

    def check(self) -> None:
        check_text(self, _VOCABULARY)


@dataclass(frozen=True)
class MaskedLM(CausalLM):
    """`mask` is the token that hides another."""

    recipe: MaskedRecipe
    mask: int

    def build(self) -> PreTrainedModel:
        import torch
        from transformers import AlbertConfig, AlbertForMaskedLM, BertConfig, BertForMaskedLM

        torch.manual_seed(self.recipe.seed)
        shape = self.recipe.model
        common: dict[str, Any] = {
            "vocab_size": shape.vocabulary,
            "hidden_size": shape.width,
            "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads,
            "intermediate_size": 4 * shape.width,
            "max_position_embeddings": self.recipe.sequence_length,
            "type_vocab_size": 1,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "pad_token_id": None,
        }
        if not isinstance(shape, AlbertShape):
            return BertForMaskedLM(BertConfig(**common))
        return AlbertForMaskedLM(
            AlbertConfig(
                **common,
                embedding_size=shape.embedding_width,
                classifier_dropout_prob=0.0,
                bos_token_id=0,
                eos_token_id=0,
            )
        )

    def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        """Mean cross-entropy in nats per chosen token."""
        hidden, labels = self.hide(batch)
        result: torch.Tensor = model(input_ids=hidden, labels=labels).loss
        return result

    def hide(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """What the model is shown, and what it is to say where a token was chosen (-100 elsewhere); both as tokens."""
        import torch

        from skep.recipes.tensors.batches import numbers

        tokens, stream = batch.inputs, 4 * self.recipe.seed
        length = tokens.shape[1]
        chosen = torch.zeros_like(tokens, dtype=torch.bool)
        places = numbers(batch.draws, length, stream).argsort(dim=1, stable=True)[:, : max(1, round(CHOSEN * length))]
        chosen.scatter_(1, places, value=True)
        fate = numbers(batch.draws, length, stream + 1) % 10
        other = numbers(batch.draws, length, stream + 2) % self.recipe.model.vocabulary
        shown = torch.where(chosen & (fate < _HIDDEN_OF_TEN), self.mask, tokens)
        shown = torch.where(chosen & (fate == _REPLACED_FATE), other, shown)
        return shown, tokens.masked_fill(~chosen, _IGNORED)


def _opened(recipe: MaskedRecipe, files: Files) -> MaskedLM:
    """Raises DataError when the tokenizer does not fit the model."""
    if isinstance(recipe.tokenizer, str):
        return MaskedLM(recipe, BYTE_VOCABULARY)
    from skep.recipes.tensors.tokenizer_file import mask_token

    return MaskedLM(recipe, mask_token(files["tokenizer"], recipe.model.vocabulary))


KIND: Final = RecipeKind(
    MaskedRecipe,
    open=_opened,
    libraries=("transformers.models.albert.modeling_albert", "transformers.models.bert.modeling_bert"),
    smallest=(
        MaskedRecipe("masked-lm", ModelShape("bert", 1, 2, 16, _VOCABULARY), 8, BYTES, 0),
        MaskedRecipe("masked-lm", AlbertShape("albert", 1, 2, 16, _VOCABULARY, 8), 8, BYTES, 0),
    ),
)
