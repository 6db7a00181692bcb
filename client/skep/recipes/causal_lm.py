"""Recipe causal-lm: predict the next token. gpt2 and llama-style models from our own whitelisted fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from skep.core.project.data import Recipe, Shapes, TextLayout, times
from skep.core.project.fields import HASH, FieldError, Tokenizer, WebAddress, Whole, variant
from skep.core.project.manifest import BYTE_VOCABULARY, BYTES
from skep.core.text import Text
from skep.recipes.contract import (
    SEED,
    OpenRecipe,
    RecipeKind,
    TransformerShape,
    larger,
    norm,
    tensors,
    transformer_activations,
)

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from skep.recipes.tensors.batches import Batch


@dataclass(frozen=True)
class ModelShape(TransformerShape):
    """A transformer over token ids: gpt2, llama or bert."""

    vocabulary: Annotated[int, Whole(2, 1_000_000)]


@dataclass(frozen=True)
class HashedFile:
    """A file on the web, known by its hash."""

    url: Annotated[str, WebAddress()]
    sha256: Annotated[str, HASH]


@dataclass(frozen=True)
class CausalRecipe(Recipe):
    """`tokenizer` is BYTES, or a tokenizer.json."""

    model: Annotated[ModelShape, variant("type", {"gpt2": ModelShape, "llama": ModelShape})]
    sequence_length: Annotated[int, Whole(8, 32768)]
    tokenizer: Annotated[str | HashedFile, Tokenizer(HashedFile)]
    seed: Annotated[int, SEED]

    @property
    def model_type(self) -> str:
        return self.model.type

    @property
    def layout(self) -> TextLayout:
        return TextLayout(self.sequence_length, self.model.vocabulary)

    @property
    def positions(self) -> int:
        return self.sequence_length

    @property
    def trained(self) -> Shapes:
        shape = self.model
        if shape.type == "gpt2":
            return gpt2_tensors(shape, self.sequence_length)
        return llama_tensors(shape, shape.heads, llama_intermediate(shape.width))

    @property
    def largest_part(self) -> Shapes:
        shape, words = self.model, tensors((self.model.vocabulary, self.model.width))
        if shape.type == "gpt2":
            return larger(gpt2_layer(shape.width), words, tensors((self.sequence_length, shape.width)))
        return larger(llama_layer(shape, shape.heads, llama_intermediate(shape.width)), words)

    @property
    def activations(self) -> int:
        length = self.sequence_length
        return transformer_activations(self.model, length, length * self.model.vocabulary)

    def check(self) -> None:
        check_text(self, BYTE_VOCABULARY)


def check_text(recipe: CausalRecipe, byte_vocabulary: int) -> None:
    """Raise FieldError for a model of tokens that cannot be built; over bytes it has `byte_vocabulary` tokens."""
    shape = recipe.model
    shape.check_heads()
    if shape.type == "llama" and shape.width // shape.heads % 2:
        raise FieldError("recipe.model.width", Text("field.must_even_multiple_heads_llama"))
    if isinstance(recipe.tokenizer, str) and shape.vocabulary != byte_vocabulary:
        raise FieldError("recipe.model.vocabulary", Text("field.must_tokenizer_bytes", expected=byte_vocabulary))


def llama_intermediate(width: int) -> int:
    """Width of the feed-forward layer: 8/3 of the width, rounded up to a multiple of 64."""
    return -(-8 * width // (3 * 64)) * 64


def gpt2_layer(width: int) -> Shapes:
    w = width
    # the library stores these weights with the inputs first
    weights = tensors((w, 3 * w), (3 * w,), (w, w), (w,), (w, 4 * w), (4 * w,), (4 * w, w), (w,))
    return weights + norm(w) + norm(w)


def gpt2_tensors(shape: ModelShape, positions: int) -> Shapes:
    """A gpt2 with positions of its own, and with one matrix for the tokens read and the tokens predicted."""
    w = shape.width
    return tensors((shape.vocabulary, w), (positions, w)) + times(shape.layers, gpt2_layer(w)) + norm(w)


def llama_layer(shape: ModelShape, key_value_heads: int, feed_forward: int) -> Shapes:
    w, narrow = shape.width, shape.width // shape.heads * key_value_heads
    attention = tensors((w, w), (w, w), (narrow, w), (narrow, w))
    return attention + tensors((feed_forward, w), (feed_forward, w), (w, feed_forward), (w,), (w,))


def llama_tensors(shape: ModelShape, key_value_heads: int, feed_forward: int) -> Shapes:
    """A llama with one matrix for the tokens read and the tokens predicted."""
    w, layer = shape.width, llama_layer(shape, key_value_heads, feed_forward)
    return tensors((shape.vocabulary, w)) + times(shape.layers, layer) + tensors((w,))


@dataclass(frozen=True)
class CausalLM(OpenRecipe):
    recipe: CausalRecipe

    def build(self) -> torch.nn.Module:
        import torch

        torch.manual_seed(self.recipe.seed)
        shape, positions = self.recipe.model, self.recipe.sequence_length
        if shape.type == "gpt2":
            return gpt2(shape, positions)
        return llama(
            shape, llama_intermediate(shape.width), max_position_embeddings=positions, tie_word_embeddings=True
        )

    def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        """Mean cross-entropy in nats per token."""
        result: torch.Tensor = model(input_ids=batch.inputs, labels=batch.inputs, use_cache=False).loss
        return result

    def example(self, size: int) -> Batch:
        import torch

        from skep.recipes.tensors.batches import text_batch

        return text_batch(torch.randint(self.recipe.model.vocabulary, (size, self.recipe.sequence_length)))


def gpt2(shape: ModelShape, positions: int) -> PreTrainedModel:
    """A gpt2 without dropout; `positions` is the longest sample it can take."""
    from transformers import GPT2Config, GPT2LMHeadModel

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


def llama(shape: ModelShape, feed_forward: int, **more: Any) -> PreTrainedModel:
    """A llama; `more` are further fields of its configuration."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=shape.vocabulary,
            hidden_size=shape.width,
            intermediate_size=feed_forward,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            bos_token_id=0,
            eos_token_id=0,
            pad_token_id=None,
            **more,
        ),
    )


TEXT_LIBRARIES: Final = ("transformers.models.gpt2.modeling_gpt2", "transformers.models.llama.modeling_llama")

KIND: Final = RecipeKind(
    CausalRecipe,
    open=lambda recipe, _files: CausalLM(recipe),
    libraries=TEXT_LIBRARIES,
    smallest=tuple(
        CausalRecipe("causal-lm", ModelShape(kind, 1, 2, 16, BYTE_VOCABULARY), 8, BYTES, 0)
        for kind in ("gpt2", "llama")
    ),
)
