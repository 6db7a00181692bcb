"""Creates small versions of the files that recipes need: base weights as transformers saves them, and a tokenizer."""

import hashlib
import json
from pathlib import Path

import torch
from safetensors.torch import save
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from manifests import lora, raw
from skep.core.project.data import ImageLayout, ShardIndex, ShardRef, TextLayout
from skep.recipes.registry import parse_manifest


def published(kind="llama", seed=7, *, tied=True, width=16):
    """A base model as others publish it: the library's own class, with the sizes of manifests.lora."""
    torch.manual_seed(seed)
    if kind == "gpt2":
        return GPT2LMHeadModel(
            GPT2Config(vocab_size=256, n_positions=64, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
        ).eval()
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=256,
            hidden_size=width,
            intermediate_size=3 * width,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            rms_norm_eps=1e-5,
            tie_word_embeddings=tied,
        )
    ).eval()


def weights(model, **changes):
    """The content that `save_pretrained` writes, with some tensors changed; None omits one."""
    tensors = {name: parameter.detach().clone() for name, parameter in model.named_parameters()} | changes
    return save({name: tensor for name, tensor in tensors.items() if tensor is not None})


def lora_recipe(folder, kind="llama", targets=("q_proj", "v_proj"), content=None, **shape):
    """A recipe lora whose base is in `folder`, and the path of the base."""
    content = content or weights(published(kind, tied=shape.get("tied_embeddings", True)))
    sha256 = hashlib.sha256(content).hexdigest()
    path = Path(folder) / f"{sha256}.safetensors"
    path.write_bytes(content)
    base = {"url": "https://example.org/base.safetensors", "sha256": sha256, "bytes": len(content)}
    return lora(kind, targets, **shape) | {"base": base}, {"base weights": path}


def tokenizer(folder, words=("[MASK]", "[UNK]", "a", "b")):
    """A tokenizer.json with these words."""
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token=words[1]))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    path = Path(folder) / "tokenizer.json"
    path.write_text(made.to_str())
    assert json.loads(path.read_text())
    return path


def recipe_of(body):
    return parse_manifest(raw(recipe=body)).recipe


def add_shard(folder, **tensors):
    """A shard with these tensors in `folder`."""
    content = save(tensors)
    sha256 = hashlib.sha256(content).hexdigest()
    (Path(folder) / f"{sha256}.safetensors").write_bytes(content)
    return ShardRef(sha256, len(content), len(next(iter(tensors.values()))))


def pattern_text(samples, length, seed=0):
    """Text that is easy to learn: every sample repeats 0 to 7 from a random start. uint8 [samples, length]."""
    starts = torch.randint(8, (samples, 1), generator=torch.Generator().manual_seed(seed))
    return ((starts + torch.arange(length)) % 8).to(torch.uint8)


def text_index(folder, length=32):
    shards = tuple(add_shard(folder, tokens=pattern_text(256, length, seed)) for seed in range(3))
    return ShardIndex(TextLayout(length, 256), shards, (add_shard(folder, tokens=pattern_text(16, length, 9)),))


def plain_images(samples, layout, seed=0):
    """Images that are easy to classify: each class has its own brightness, with noise."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(layout.classes, (samples,), generator=generator)
    shape = (samples, layout.channels, layout.size, layout.size)
    noise = torch.randint(30, shape, generator=generator)
    bright = (labels * 200 // max(1, layout.classes - 1))[:, None, None, None]
    return {"pixels": (bright + noise).to(torch.uint8), "labels": labels.to(torch.int32)}


def image_index(folder, layout=None):
    layout = layout or ImageLayout(3, 8, 4)
    shards = tuple(add_shard(folder, **plain_images(256, layout, seed)) for seed in range(3))
    return ShardIndex(layout, shards, (add_shard(folder, **plain_images(16, layout, 9)),))
