"""Recipe causal-lm: predict the next token. gpt2 and llama-style models from our own whitelisted fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skep.core.project.data import TextLayout
from skep.core.project.fields import HASH, Field, FieldError, Object, Tokenizer, Variant, WebAddress, Whole
from skep.core.project.recipe import Recipe, Shapes, times
from skep.core.project.types import BYTE_VOCABULARY, BYTES
from skep.core.text import Text
from skep.recipes.contract import OpenRecipe, RecipeKind
from skep.recipes.shapes import SEED, SIZES, check_heads, norm, tensors

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from skep.recipes.tensors.batches import Batch


@dataclass(frozen=True)
class ModelShape:
    """A transformer over token ids: gpt2, llama or bert."""

    type: str
    layers: int
    heads: int
    width: int
    vocabulary: int


@dataclass(frozen=True)
class HashedFile:
    """A file on the web, known by its hash."""

    url: str
    sha256: str


@dataclass(frozen=True)
class CausalRecipe(Recipe):
    """`tokenizer` is BYTES, or a tokenizer.json."""

    model: ModelShape
    sequence_length: int
    tokenizer: str | HashedFile
    seed: int

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

    def check(self) -> None:
        check_text(self, BYTE_VOCABULARY)


def check_text(recipe: CausalRecipe, byte_vocabulary: int) -> None:
    """Raise FieldError for a model of tokens that cannot be built; over bytes it has `byte_vocabulary` tokens."""
    shape = recipe.model
    check_heads(shape)
    if shape.type == "llama" and shape.width // shape.heads % 2:
        raise FieldError("recipe.model.width", Text("field.must_even_multiple_heads_llama"))
    if isinstance(recipe.tokenizer, str) and shape.vocabulary != byte_vocabulary:
        raise FieldError("recipe.model.vocabulary", Text("field.must_tokenizer_bytes", expected=byte_vocabulary))


def llama_intermediate(width: int) -> int:
    """Width of the feed-forward layer: 8/3 of the width, rounded up to a multiple of 64."""
    return -(-8 * width // (3 * 64)) * 64


def gpt2_tensors(shape: ModelShape, positions: int) -> Shapes:
    """A gpt2 with positions of its own, and with one matrix for the tokens read and the tokens predicted."""
    w = shape.width
    # the library stores these weights with the inputs first
    weights = tensors((w, 3 * w), (3 * w,), (w, w), (w,), (w, 4 * w), (4 * w,), (4 * w, w), (w,))
    layer = weights + norm(w) + norm(w)
    return tensors((shape.vocabulary, w), (positions, w)) + times(shape.layers, layer) + norm(w)


def llama_tensors(shape: ModelShape, key_value_heads: int, feed_forward: int) -> Shapes:
    """A llama with one matrix for the tokens read and the tokens predicted."""
    w, narrow = shape.width, shape.width // shape.heads * key_value_heads
    attention = tensors((w, w), (w, w), (narrow, w), (narrow, w))
    layer = attention + tensors((feed_forward, w), (feed_forward, w), (w, feed_forward), (w,), (w,))
    return tensors((shape.vocabulary, w)) + times(shape.layers, layer) + tensors((w,))


class CausalLM(OpenRecipe):
    def __init__(self, recipe: CausalRecipe) -> None:
        self._recipe = recipe

    def build(self) -> PreTrainedModel:
        import torch

        torch.manual_seed(self._recipe.seed)
        recipe = self._recipe
        return gpt2(recipe.model, recipe.sequence_length) if recipe.model.type == "gpt2" else _llama(recipe)

    def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        return next_token_loss(model, batch)

    def example(self, size: int) -> Batch:
        return random_text(self._recipe, size)


def next_token_loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """Mean cross-entropy in nats per token."""
    result: torch.Tensor = model(input_ids=batch.inputs, labels=batch.inputs, use_cache=False).loss
    return result


def random_text(recipe: CausalRecipe, size: int) -> Batch:
    """`size` samples of tokens drawn at random."""
    import torch

    from skep.recipes.tensors.batches import text_batch

    return text_batch(torch.randint(recipe.model.vocabulary, (size, recipe.sequence_length)))


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


def _llama(recipe: CausalRecipe) -> PreTrainedModel:
    from transformers import LlamaConfig, LlamaForCausalLM

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


TEXT: Final[dict[str, Field]] = {**SIZES, "vocabulary": Whole(2, 1_000_000)}
"""The fields of every model of tokens."""
SAMPLES: Final[dict[str, Field]] = {
    "sequence_length": Whole(8, 32768),
    "tokenizer": Tokenizer({"url": WebAddress(), "sha256": HASH}, HashedFile),
    "seed": SEED,
}
"""The fields of every recipe of tokens, beside its model."""

TEXT_LIBRARIES: Final = ("transformers.models.gpt2.modeling_gpt2", "transformers.models.llama.modeling_llama")

KIND: Final = RecipeKind(
    Object(
        CausalRecipe,
        {
            "model": Variant("type", {"gpt2": Object(ModelShape, TEXT), "llama": Object(ModelShape, TEXT)}),
            **SAMPLES,
        },
    ),
    open=lambda recipe, _files: CausalLM(recipe),
    libraries=TEXT_LIBRARIES,
    smallest=tuple(
        CausalRecipe("causal-lm", ModelShape(kind, 1, 2, 16, BYTE_VOCABULARY), 8, BYTES, 0)
        for kind in ("gpt2", "llama")
    ),
)
