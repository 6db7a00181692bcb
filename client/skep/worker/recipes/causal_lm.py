"""Recipe causal-lm: predict the next token. gpt2 and llama-style models from our own whitelisted fields."""

from __future__ import annotations

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from skep.core.fit import llama_intermediate
from skep.core.manifest import Recipe


def build(recipe: Recipe) -> PreTrainedModel:
    """The model with parameters made from the recipe's seed, the same on every computer. float32, on the CPU."""
    torch.manual_seed(recipe.seed)
    return _gpt2(recipe) if recipe.model.type == "gpt2" else _llama(recipe)


def loss(model: PreTrainedModel, tokens: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy in nats per token. `tokens`: int64 [samples, sequence_length]."""
    result = model(input_ids=tokens, labels=tokens, use_cache=False).loss
    assert isinstance(result, torch.Tensor)
    return result


def _gpt2(recipe: Recipe) -> PreTrainedModel:
    shape = recipe.model
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=shape.vocabulary,
            n_positions=recipe.sequence_length,
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


def _llama(recipe: Recipe) -> PreTrainedModel:
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
