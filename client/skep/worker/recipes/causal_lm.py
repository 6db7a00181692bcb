"""Recipe causal-lm: predict the next token. gpt2 and llama-style models from our own whitelisted fields."""

from __future__ import annotations

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from skep.core.parameters import llama_intermediate
from skep.core.recipe_types import CausalRecipe, ModelShape
from skep.worker.batches import Batch, text_batch


class CausalLM:
    def __init__(self, recipe: CausalRecipe) -> None:
        self._recipe = recipe

    def build(self) -> PreTrainedModel:
        torch.manual_seed(self._recipe.seed)
        recipe = self._recipe
        return gpt2(recipe.model, recipe.sequence_length) if recipe.model.type == "gpt2" else _llama(recipe)

    def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        return next_token_loss(model, batch)

    def example(self, size: int) -> Batch:
        return random_text(self._recipe, size)


def next_token_loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """Mean cross-entropy in nats per token."""
    result = model(input_ids=batch.inputs, labels=batch.inputs, use_cache=False).loss
    assert isinstance(result, torch.Tensor)
    return result


def random_text(recipe: CausalRecipe, size: int) -> Batch:
    """`size` samples of tokens drawn at random."""
    return text_batch(torch.randint(recipe.model.vocabulary, (size, recipe.sequence_length)))


def gpt2(shape: ModelShape, positions: int) -> PreTrainedModel:
    """A gpt2 without dropout; `positions` is the longest sample it can take."""
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=shape.vocabulary,
            n_positions=positions,
            n_embd=shape.width,
            n_layer=shape.layers,
            n_head=shape.heads,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=0,
            eos_token_id=0,
        ),
    )


def _llama(recipe: CausalRecipe) -> PreTrainedModel:
    shape = recipe.model
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=shape.vocabulary,
            hidden_size=shape.width,
            intermediate_size=llama_intermediate(shape.width),
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            max_position_embeddings=recipe.sequence_length,
            tie_word_embeddings=True,
            bos_token_id=0,
            eos_token_id=0,
            pad_token_id=None,
        ),
    )
