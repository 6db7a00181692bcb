"""Writes the tables of docs/manifest.md from the manifest's declaration (`make docs`).

Type, bounds and where a field applies come from the declaration; the meaning of each field is written here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from skep.core.project import fields as f
from skep.core.project.manifest import declaration
from skep.language.translator import ENGLISH, translator
from skep.recipes.registry import FIELD

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "manifest.md"
BEGIN: Final = "<!-- The tables below are written by `make docs`. -->\n"
END: Final = "<!-- The tables end here. -->\n"

SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "The project": {
        "format": "version of this format",
        "id": "the project's name for programs; the run id begins with it",
        "revision": "rises with every change that is published",
        "title": "the project's name for people",
        "summary": "what is trained, in a sentence or two",
        "publisher.name": "who publishes it; the key decides, not the name",
        "publisher.key": "the publisher's public key, as `skep key new` prints it",
        "homepage": "where to read more",
        "license": "what may be done with the model",
        "expires": "from then on this revision cannot be joined",
        "membership": "who may take part: all peers, or peers with an [invitation](for-project-authors.md#invitations); in a "
        "`moderated` project these take the state from donors and hosts only",
        "initial_state": "what a newcomer begins with: with `swarm` the state that the peers hand over, with `signed` the "
        "publisher's [signed checkpoint](for-project-authors.md#signed-checkpoints), and no peer's state ever. In a "
        "manifest of before this field: `swarm`",
        "peers": "where the swarm is found: `/ip4`, `/ip6`, `/dns`, `/dns4` or `/dns6`, then `/tcp` or `/udp` with a "
        "port, optionally `/tls`, `/ws`, `/wss`, `/quic` or `/quic-v1`, at last `/p2p/` and the peer's id",
    },
    "What is trained": {
        "recipe.name": "what is learnt: the next token, hidden tokens, the class of an image, or the next token by "
        "adapters on a frozen base",
        "recipe.model.type": "the model's family. Input and output embeddings are one. Feed-forward layers are four times "
        "as wide as the model; those of `llama` 8/3, rounded up to a multiple of 64, with as many key heads as heads. A "
        "base of `lora` states these itself",
        "recipe.model.layers": "number of layers; in `albert` all share their parameters",
        "recipe.model.heads": "attention heads",
        "recipe.model.width": "a multiple of `heads`; for `llama` an even one",
        "recipe.model.vocabulary": "with the tokenizer `bytes` 256, and 257 for `masked-lm`; otherwise at least the "
        "tokenizer's",
        "recipe.model.embedding_width": "embeddings are narrower than the layers",
        "recipe.model.image_size": "width and height of an image in pixels, a multiple of `patch_size`",
        "recipe.model.patch_size": "width and height of a patch in pixels",
        "recipe.model.channels": "3 for colour, 1 for grey",
        "recipe.model.classes": "number of classes",
        "recipe.model.positions": "the longest sample that the base was built for, in tokens",
        "recipe.model.key_value_heads": "divides `heads`",
        "recipe.model.feed_forward": "width of the feed-forward layers",
        "recipe.model.rope_base": "called `rope_theta` in the base's configuration",
        "recipe.model.norm_epsilon": "called `rms_norm_eps` in the base's configuration",
        "recipe.model.tied_embeddings": "whether input and output embeddings are one",
        "recipe.sequence_length": "tokens in a sample",
        "recipe.tokenizer": "how text became tokens. Volunteers download the file for `masked-lm` only, which needs its "
        "mask token",
        "recipe.seed": "the first parameters are made from it, equal on every computer",
        "recipe.base.url": "the base's weights, a safetensors file as `save_pretrained` of transformers writes it",
        "recipe.base.sha256": "hash of that file",
        "recipe.base.bytes": "size of that file",
        "recipe.adapters.rank": "inner width of each adapter",
        "recipe.adapters.alpha": "what an adapter adds is scaled by `alpha` / `rank`",
        "recipe.adapters.targets": "the weights that get an adapter, in every layer: `c_attn`, `c_proj` and "
        "`c_fc` for `gpt2`, the others for `llama`",
        "optimizer.name": "the optimizer",
        "optimizer.learning_rate": "before the schedule",
        "optimizer.betas": "of `adamw` and `lamb`; for `sgd` the first is the momentum, and the second has no effect",
        "optimizer.weight_decay": "for `sgd` added to the gradient, otherwise decoupled from it",
        "optimizer.clip_norm": "the averaged gradient is scaled down to this norm",
        "schedule.kind": "the learning rate after the warm-up: `linear` and `cosine` fall to 0, `exponential` falls by "
        "the same factor in every epoch, to 1 %",
        "schedule.warmup_epochs": "below `total_epochs`; the learning rate rises evenly over them",
        "schedule.total_epochs": "the number of epochs of the run. Then it is finished: peers stop, and the schedule has reached its end",
        "precision": "what is computed in; parameters, gradients and normalisation are always fp32. `auto`: bf16 on GPUs "
        "that have it, fp16 with loss scaling on older ones that are fast in it, otherwise fp32. A computer whose device "
        "lacks the named precision is told so before it downloads anything",
        "activation_checkpointing": "saves memory for time; `auto` where memory is short",
    },
    "How the swarm averages": {
        "sync.target_batch_size": "samples of the whole swarm in an epoch",
        "sync.offload_optimizer": "the optimizer's state is kept in the computer's memory, not the GPU's",
        "sync.reuse_grad_buffers": "gradients are summed where the model keeps them, not in separate buffers",
        "sync.delay_optimizer_step": "the step runs beside training; needs `offload_optimizer` and "
        "`delay_state_averaging`",
        "sync.delay_grad_averaging": "gradients are averaged beside training; needs `delay_optimizer_step`",
        "sync.delay_state_averaging": "parameters are averaged beside training",
        "sync.grad_compression": "gradients on the way to other peers",
        "sync.state_compression": "parameters on the way to other peers",
        "sync.load_compression": "parameters that a newcomer loads; the optimizer's statistics are always sent whole, "
        "since rounding makes Adam's second moments zero or negative",
        "sync.size_adaptive_threshold": "for `size-adaptive`: a tensor of this many values or more is sent in 8 bits a "
        "value, a smaller one in 16",
        "sync.powersgd": "gradients are sent as products of two thin matrices; the rest is added to the next epoch's",
        "sync.powersgd.rank": "columns of the thin matrices; refused where no matrix of the model would be sent that way",
        "sync.powersgd.min_compression_ratio": "the part that has to be saved, otherwise a gradient is sent whole",
        "sync.average_state_every": "epochs from one averaging of the parameters to the next",
        "sync.mode": "`global`: gradients are averaged every epoch",
        "sync.matchmaking_seconds": "how long peers gather for a round",
        "sync.averaging_timeout_seconds": "longer than `matchmaking_seconds`; after it a round is given up",
    },
    "Data and needs": {
        "data.index": "the list of shards",
        "data.sha256": "hash of that list",
        "needs.memory_gb": "in units of 10⁹ bytes",
        "needs.vram_gb": "the GPU's memory, in units of 10⁹ bytes; not asked of a computer without a GPU",
        "needs.disk_gb": "free space for the data, in units of 10⁹ bytes",
        "needs.upload_mbit": "shown to the volunteer; each peer of a round averages an equal part, whatever it can upload",
    },
}

Found = tuple[str, f.Field | str, tuple[str, ...]]
"""A field's path, its declaration, and the kinds that have it: recipe and model type."""

_english = translator(ENGLISH)


def declared(fields: Mapping[str, f.Field], inside: str = "", kinds: tuple[str, ...] = ()) -> Iterator[Found]:
    """Every field; one that several kinds have is yielded once for each."""
    for name, field in fields.items():
        path = f"{inside}{name}"
        inner = field.field if isinstance(field, f.Nullable) else field
        if isinstance(inner, f.Variant):
            yield f"{path}.{inner.tag}", f.Choice(tuple(inner.kinds)), kinds
            for kind, its in inner.kinds.items():
                yield from declared(its.fields, f"{path}.", (*kinds, kind))
        elif isinstance(inner, f.Object):
            if inner is not field:
                yield path, "null, or an object of the following fields", kinds
            yield from declared(inner.fields, f"{path}.", kinds)
        else:
            yield path, field, kinds


ALWAYS_ALIKE: Final[Mapping[type, str]] = {
    f.Flag: "true or false",
    f.Tokenizer: "`bytes`, or an object with `url` and `sha256` of a `tokenizer.json`",
    f.PublicKey: "`ed25519:` and 32 bytes in base64",
    f.Moment: "time in UTC, as `2027-12-31T00:00:00Z`",
    f.PeerAddress: "address of a peer",
}


def kind_of(field: f.Field | str) -> str:
    """Type and bounds in words."""
    match field:
        case str():
            return field
        case f.Choice(now, later):
            return ", ".join(f"`{name}`" for name in now) + "".join(f". Later: `{name}`" for name in later)
        case f.Nullable(inner):
            return f"{kind_of(inner)}, or null"
        case f.Several(inner, least, most):
            return f"list of {least if least == most else f'{least} to {most}'}: {kind_of(inner)}"
        case f.Pattern():
            return _english.say(field.words)
        case f.WebAddress(empty):
            return "https address (http on this computer itself)" + (", or empty" if empty else "")
        case f.Whole() | f.Number() | f.PlainText():
            return bounds(field)
        case _:
            return ALWAYS_ALIKE[type(field)]


def bounds(field: f.Whole | f.Number | f.PlainText) -> str:
    match field:
        case f.Whole(least, most):
            return f"{least}" if least == most else f"whole number, {least} to {most}"
        case f.Number(least, most, above):
            return (
                f"number, above {least:.16g} and up to {most:.16g}" if above else f"number, {least:.16g} to {most:.16g}"
            )
        case f.PlainText(most, least):
            return f"text, {least} to {most} characters"


class Reference:
    """The declared fields by path: the declaration of each, and the kinds of recipe and model that have it."""

    def __init__(self) -> None:
        self.fields: dict[str, list[str]] = {}
        self._kinds: dict[str, list[tuple[str, ...]]] = {}
        for path, field, kinds in declared(declaration(FIELD).fields):
            words = kind_of(field)
            if path == "recipe.model.type":
                words += f" with `{kinds[0]}`"
            kept = self.fields.setdefault(path, [])
            if words not in kept:
                kept.append(words)
            self._kinds.setdefault(path, []).append(kinds)

    def only(self, path: str) -> str:
        """The recipes or model types that have the field; "" if all have it."""
        mine = self._kinds[path]
        alike = dict.fromkeys(kinds for its in self._kinds.values() for kinds in its if len(kinds) == len(mine[0]))
        if set(mine) == alike.keys():
            return ""
        names: dict[str, None] = {}
        for kinds in mine:
            whole = all(other in mine for other in alike if other[0] == kinds[0])
            names[f"`{kinds[0]}`" if whole else f"`{kinds[-1]}` in `{kinds[0]}`"] = None
        return f"Only with {', '.join(names)}: "

    def row(self, path: str, meaning: str) -> str:
        return f"| `{path}` | {'; '.join(self.fields[path])} | {self.only(path)}{meaning} |"


def tables() -> str:
    """The tables in Markdown. Raises ValueError for a field without a meaning, and a meaning without a field."""
    reference = Reference()
    meanings = {path for its in SECTIONS.values() for path in its}
    if wrong := meanings ^ reference.fields.keys():
        raise ValueError(f"declared without a meaning, or the other way round: {', '.join(sorted(wrong))}")
    head = "\n\n| field | type and bounds | meaning |\n|---|---|---|\n"
    return "\n".join(
        f"### {title}{head}" + "".join(f"{reference.row(path, meaning)}\n" for path, meaning in its.items())
        for title, its in SECTIONS.items()
    )


def page(old: str) -> str:
    """The page with the tables of the current declaration."""
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    sys.stdout.write(f"{PAGE}\n")
