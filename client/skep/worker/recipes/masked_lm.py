"""Recipe masked-lm: predict hidden tokens. albert and bert models from our own whitelisted fields.

Of every sample the same number of tokens is chosen, 15 %: 80 % of these are hidden behind the mask token, 10 % are
replaced by any other, 10 % stay (Devlin et al.: BERT). What is chosen depends on the recipe's seed and the sample's
number in the peer's order alone: a restart repeats it, the next pass over the data chooses anew, and held-out samples
are always judged by the same places. Equal numbers make a batch's loss the mean of its samples', however it is cut.
"""

from __future__ import annotations

from typing import Final

import torch
from transformers import AlbertConfig, AlbertForMaskedLM, BertConfig, BertForMaskedLM, PreTrainedModel

from skep.core.recipe_types import BYTE_VOCABULARY, AlbertShape, MaskedRecipe
from skep.worker.batches import Batch
from skep.worker.recipes import Files
from skep.worker.recipes.causal_lm import random_text
from skep.worker.recipes.chance import numbers
from skep.worker.tokenizer_file import mask_token

CHOSEN: Final = 0.15
_HIDDEN_OF_TEN: Final = 8
_REPLACED_OF_TEN: Final = 8
_IGNORED: Final = -100


class MaskedLM:
    def __init__(self, recipe: MaskedRecipe, files: Files) -> None:
        """Raises DataError when the tokenizer does not fit the model."""
        self._recipe = recipe
        if isinstance(recipe.tokenizer, str):
            self._mask = BYTE_VOCABULARY
        else:
            self._mask = mask_token(files["tokenizer"], recipe.model.vocabulary)

    def build(self) -> PreTrainedModel:
        torch.manual_seed(self._recipe.seed)
        return _albert(self._recipe) if self._recipe.model.type == "albert" else _bert(self._recipe)

    def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        """Mean cross-entropy in nats per chosen token."""
        hidden, labels = self.hide(batch)
        result = model(input_ids=hidden, labels=labels).loss
        assert isinstance(result, torch.Tensor)
        return result

    def hide(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """What the model is shown, and what it is to say where a token was chosen (-100 elsewhere); both as tokens."""
        tokens, stream = batch.inputs, 4 * self._recipe.seed
        length = tokens.shape[1]
        chosen = torch.zeros_like(tokens, dtype=torch.bool)
        places = numbers(batch.draws, length, stream).argsort(dim=1, stable=True)[:, : max(1, round(CHOSEN * length))]
        chosen.scatter_(1, places, value=True)
        fate = numbers(batch.draws, length, stream + 1) % 10
        other = numbers(batch.draws, length, stream + 2) % self._recipe.model.vocabulary
        shown = torch.where(chosen & (fate < _HIDDEN_OF_TEN), self._mask, tokens)
        shown = torch.where(chosen & (fate == _REPLACED_OF_TEN), other, shown)
        return shown, tokens.masked_fill(~chosen, _IGNORED)

    def example(self, size: int) -> Batch:
        return random_text(self._recipe, size)


def _bert(recipe: MaskedRecipe) -> PreTrainedModel:
    shape = recipe.model
    return BertForMaskedLM(
        BertConfig(
            vocab_size=shape.vocabulary,
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            intermediate_size=4 * shape.width,
            max_position_embeddings=recipe.sequence_length,
            type_vocab_size=1,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=None,
        ),
    )


def _albert(recipe: MaskedRecipe) -> PreTrainedModel:
    shape = recipe.model
    assert isinstance(shape, AlbertShape)
    return AlbertForMaskedLM(
        AlbertConfig(
            vocab_size=shape.vocabulary,
            embedding_size=shape.embedding_width,
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            intermediate_size=4 * shape.width,
            max_position_embeddings=recipe.sequence_length,
            type_vocab_size=1,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            classifier_dropout_prob=0.0,
            pad_token_id=None,
            bos_token_id=0,
            eos_token_id=0,
        ),
    )
