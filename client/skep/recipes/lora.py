"""Recipe lora: predict the next token with a frozen base model and small trained adapters beside its weights.

The base is a published gpt2 or llama, its weights a safetensors file known by its hash; the adapters are peft's. They
alone require gradients, so they alone are averaged and sent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from skep.core.project.data import FileRef, Shapes, times
from skep.core.project.fields import Choice, FieldError, Number, Several, Whole, variant
from skep.core.text import Text
from skep.recipes.causal_lm import (
    TEXT_LIBRARIES,
    CausalLM,
    CausalRecipe,
    HashedFile,
    ModelShape,
    gpt2,
    gpt2_layer,
    gpt2_tensors,
    llama,
    llama_layer,
    llama_tensors,
)
from skep.recipes.contract import Files, RecipeKind, larger, tensors

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

GPT2_TARGETS: Final = ("c_attn", "c_proj", "c_fc")
LLAMA_TARGETS: Final = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True)
class Gpt2Base(ModelShape):
    """A published gpt2 to begin from; `positions` is the longest sample it was built for."""

    positions: Annotated[int, Whole(8, 1_000_000)]


@dataclass(frozen=True)
class LlamaBase(ModelShape):
    """A published llama to begin from, with the numbers that published ones differ in."""

    key_value_heads: Annotated[int, Whole(1, 256)]
    feed_forward: Annotated[int, Whole(8, 131_072)]
    rope_base: Annotated[float, Number(1, 1e9)]
    norm_epsilon: Annotated[float, Number(0, 0.01, above=True)]
    tied_embeddings: bool


@dataclass(frozen=True)
class BaseFile(HashedFile):
    bytes: Annotated[int, Whole(1, 2**40)]


@dataclass(frozen=True)
class Adapters:
    """Low-rank adapters (LoRA) beside the weights of the `targets`; their product is scaled by `alpha` / `rank`."""

    rank: Annotated[int, Whole(1, 1024)]
    alpha: Annotated[int, Whole(1, 65536)]
    targets: Annotated[tuple[str, ...], Several(Choice((*GPT2_TARGETS, *LLAMA_TARGETS)), 1, len(LLAMA_TARGETS))]


@dataclass(frozen=True)
class LoraRecipe(CausalRecipe):
    model: Annotated[ModelShape, variant("type", {"gpt2": Gpt2Base, "llama": LlamaBase})]
    base: BaseFile
    adapters: Adapters

    @property
    def files(self) -> tuple[FileRef, ...]:
        return (FileRef("base weights", self.base.sha256, self.base.bytes, self.base.url),)

    @property
    def trained(self) -> Shapes:
        return times(self.model.layers, self._adapters_of_layer)

    @property
    def _adapters_of_layer(self) -> Shapes:
        rank, sides = self.adapters.rank, _sides(self.model)
        adapted = [side for target in self.adapters.targets for side in sides[target]]
        return sum((tensors((rank, inputs), (outputs, rank)) for inputs, outputs in adapted), Counter())

    @property
    def largest_part(self) -> Shapes:
        shape, words = self.model, tensors((self.model.vocabulary, self.model.width))
        if isinstance(shape, LlamaBase):
            block = llama_layer(shape, shape.key_value_heads, shape.feed_forward)
            return larger(block + self._adapters_of_layer, words)
        assert isinstance(shape, Gpt2Base)
        block = gpt2_layer(shape.width)
        return larger(block + self._adapters_of_layer, words, tensors((shape.positions, shape.width)))

    @property
    def frozen(self) -> Shapes:
        shape = self.model
        if isinstance(shape, LlamaBase):
            apart = Counter() if shape.tied_embeddings else tensors((shape.vocabulary, shape.width))
            return llama_tensors(shape, shape.key_value_heads, shape.feed_forward) + apart
        assert isinstance(shape, Gpt2Base)
        return gpt2_tensors(shape, shape.positions)

    def check(self) -> None:
        super().check()
        shape, targets = self.model, self.adapters.targets
        known = LLAMA_TARGETS if shape.type == "llama" else GPT2_TARGETS
        if other := [target for target in targets if target not in known]:
            raise FieldError("recipe.adapters.targets", Text("field.has_has_not", other=other[0], type=shape.type))
        if len(set(targets)) < len(targets):
            raise FieldError("recipe.adapters.targets", Text("field.names_target_twice"))
        if isinstance(shape, Gpt2Base) and self.sequence_length > shape.positions:
            raise FieldError("recipe.sequence_length", Text("field.must_not_above_base_positions"))
        if isinstance(shape, LlamaBase) and shape.heads % shape.key_value_heads:
            raise FieldError("recipe.model.key_value_heads", Text("field.must_divide_heads"))


def _sides(shape: ModelShape) -> dict[str, list[tuple[int, int]]]:
    """Inputs and outputs of the weights of one layer, by the name of the target that they are."""
    w = shape.width
    if not isinstance(shape, LlamaBase):
        # c_proj stands in the attention and in the feed-forward layer
        return {"c_attn": [(w, 3 * w)], "c_proj": [(w, w), (4 * w, w)], "c_fc": [(w, 4 * w)]}
    narrow, inner = w // shape.heads * shape.key_value_heads, shape.feed_forward
    return {
        "q_proj": [(w, w)],
        "o_proj": [(w, w)],
        "k_proj": [(w, narrow)],
        "v_proj": [(w, narrow)],
        "gate_proj": [(w, inner)],
        "up_proj": [(w, inner)],
        "down_proj": [(inner, w)],
    }


@dataclass(frozen=True)
class Lora(CausalLM):
    recipe: LoraRecipe
    files: Files

    def build(self) -> torch.nn.Module:
        import torch
        from peft import LoraConfig, inject_adapter_in_model

        from skep.recipes.tensors.base_weights import load_base

        shape, adapters = self.recipe.model, self.recipe.adapters
        if isinstance(shape, LlamaBase):
            model = llama(
                shape,
                shape.feed_forward,
                num_key_value_heads=shape.key_value_heads,
                rms_norm_eps=shape.norm_epsilon,
                rope_parameters={"rope_type": "default", "rope_theta": shape.rope_base},
                tie_word_embeddings=shape.tied_embeddings,
            )
        else:
            assert isinstance(shape, Gpt2Base)
            model = gpt2(shape, shape.positions)
        load_base(model, self.files["base weights"])
        torch.manual_seed(self.recipe.seed)
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

    def for_export(self, model: torch.nn.Module) -> PreTrainedModel:
        """A plain model of the base's kind, with what the adapters learnt added to its weights. Changes `model`."""
        import torch
        from peft.tuners.tuners_utils import BaseTunerLayer
        from transformers import PreTrainedModel

        with torch.no_grad():
            for module in model.modules():
                if isinstance(module, BaseTunerLayer):
                    module.merge()
        learnt = {
            name.replace(".base_layer.", "."): tensor
            for name, tensor in model.state_dict().items()
            if ".lora_" not in name
        }
        assert isinstance(model, PreTrainedModel)
        plain: PreTrainedModel = type(model)(model.config)
        plain.load_state_dict(learnt)
        return plain


KIND: Final = RecipeKind(LoraRecipe, open=Lora, libraries=("peft", *TEXT_LIBRARIES))
