"""Recipe lora: a frozen base predicts the next token, and small adapters beside its weights learn to do it better.

The base is a published gpt2 or llama, its weights a safetensors file known by its hash; the adapters are peft's. They
alone require gradients, so they alone are averaged and sent.
"""

from __future__ import annotations

import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.tuners_utils import BaseTunerLayer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from skep.core.recipe_types import Gpt2Base, LlamaBase, LoraRecipe
from skep.worker.base_weights import load_base
from skep.worker.batches import Batch
from skep.worker.recipes import Files
from skep.worker.recipes.causal_lm import gpt2, next_token_loss, random_text


class Lora:
    def __init__(self, recipe: LoraRecipe, files: Files) -> None:
        self._recipe, self._base = recipe, files["base weights"]

    def build(self) -> torch.nn.Module:
        shape, adapters = self._recipe.model, self._recipe.adapters
        if isinstance(shape, LlamaBase):
            model = _llama(shape)
        else:
            assert isinstance(shape, Gpt2Base)
            model = gpt2(shape, shape.positions)
        load_base(model, self._base)
        torch.manual_seed(self._recipe.seed)
        chosen = LoraConfig(
            r=adapters.rank,
            lora_alpha=adapters.alpha,
            target_modules=list(adapters.targets),
            lora_dropout=0.0,
            bias="none",
            # gpt2 keeps its weights the other way round
            fan_in_fan_out=shape.type == "gpt2",
        )
        made: torch.nn.Module = inject_adapter_in_model(chosen, model)
        return made

    def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        return next_token_loss(model, batch)

    def example(self, size: int) -> Batch:
        return random_text(self._recipe, size)


@torch.no_grad()
def merged(model: torch.nn.Module) -> PreTrainedModel:
    """A plain model of the base's kind, with what the adapters learnt added to its weights. Changes `model`."""
    for module in model.modules():
        if isinstance(module, BaseTunerLayer):
            module.merge()
    learnt = {
        name.replace(".base_layer.", "."): tensor for name, tensor in model.state_dict().items() if ".lora_" not in name
    }
    assert isinstance(model, PreTrainedModel)
    plain: PreTrainedModel = type(model)(model.config)
    plain.load_state_dict(learnt)
    return plain


def _llama(shape: LlamaBase) -> PreTrainedModel:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=shape.vocabulary,
            hidden_size=shape.width,
            intermediate_size=shape.feed_forward,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.key_value_heads,
            rms_norm_eps=shape.norm_epsilon,
            rope_parameters={"rope_type": "default", "rope_theta": shape.rope_base},
            tie_word_embeddings=shape.tied_embeddings,
            bos_token_id=0,
            eos_token_id=0,
            pad_token_id=None,
        ),
    )
