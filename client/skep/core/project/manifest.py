"""The manifest: the complete description of a project for the computers that train it. Data, never code.

Frozen dataclasses declare every field with its bounds, those of a recipe in its own file in `skep.recipes`; the rules
between fields follow. Manifests are parsed only by `skep.recipes.registry.parse_manifest`. The signature is verified
before the bytes are parsed (adapters.signing).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from skep.core.errors import ManifestError
from skep.core.project.addresses import Reach, host_of, may_be_global, web_host
from skep.core.project.data import Project, Recipe, Shape
from skep.core.project.fields import (
    HASH,
    PROJECT_ID,
    Choice,
    Field,
    FieldError,
    Later,
    Moment,
    Nullable,
    Number,
    Object,
    PeerAddress,
    PlainText,
    PublicKey,
    Several,
    WebAddress,
    Whole,
    declared,
    key_text,
)
from skep.core.strict_json import read_object
from skep.core.text import Text

BYTES: Final = "bytes"
BYTE_VOCABULARY: Final = 256
MANIFEST_BYTES_LIMIT: Final = 64 * 1024


@dataclass(frozen=True)
class Publisher:
    name: Annotated[str, PlainText(80)]
    key: Annotated[bytes, PublicKey()]
    """Raw Ed25519 public key, 32 bytes."""


OptimizerName = Literal["adamw", "sgd", "lamb"]
ScheduleKind = Literal["constant", "linear", "cosine", "exponential"]
Compression = Literal["none", "float16", "scaled-float16", "uniform-8bit", "size-adaptive"]


@dataclass(frozen=True)
class OptimizerSpec:
    """`betas` are those of Adam and LAMB; for SGD the first is the momentum, and the second is not used."""

    name: OptimizerName
    learning_rate: Annotated[float, Number(0, 10, above=True)]
    betas: Annotated[tuple[float, float], Several(Number(0, 0.99999), 2, 2)]
    weight_decay: Annotated[float, Number(0, 10)]
    clip_norm: Annotated[float | None, Nullable(Number(0, 1e6, above=True))]


@dataclass(frozen=True)
class Schedule:
    kind: ScheduleKind
    warmup_epochs: Annotated[int, Whole(0, 1_000_000)]
    total_epochs: Annotated[int, Whole(1, 10_000_000)]


@dataclass(frozen=True)
class PowerSGD:
    """Gradients are sent as products of two thin matrices of `rank` columns if that saves `min_compression_ratio`."""

    rank: Annotated[int, Whole(1, 1024)]
    min_compression_ratio: Annotated[float, Number(0, 0.99, above=True)]

    def applies_to(self, shape: Shape) -> bool:
        """Whether a tensor of this shape is compressed: when it is a matrix, and compression saves enough."""
        return len(shape) > 1 and 1 - self.rank * sum(shape) / math.prod(shape) >= self.min_compression_ratio


SYNC_MODES: Final = {
    "global": "global_rounds",
}
"""The synchronization modes of peers, each with its module in `skep.worker.swarm`."""


@dataclass(frozen=True)
class Sync:
    target_batch_size: Annotated[int, Whole(2, 10_000_000)]
    offload_optimizer: bool
    reuse_grad_buffers: bool
    delay_optimizer_step: bool
    delay_grad_averaging: bool
    delay_state_averaging: bool
    grad_compression: Compression
    state_compression: Compression
    load_compression: Compression
    size_adaptive_threshold: Annotated[int, Whole(1, 2**31)]
    powersgd: PowerSGD | None
    average_state_every: Annotated[int, Whole(1, 1000)]
    mode: Annotated[str, Choice(tuple(SYNC_MODES), ("local",))]
    matchmaking_seconds: Annotated[float, Number(2, 600, why=Text("manifest.since_peer_may_take_good"))]
    averaging_timeout_seconds: Annotated[float, Number(5, 3600)]

    @property
    def silence_seconds(self) -> float:
        """How long nothing may come of a groupmate's data before it counts as gone."""
        return max(3.0, min(10.0, self.matchmaking_seconds))

    @property
    def size_adaptive(self) -> bool:
        """Whether the threshold decides how gradients or parameters are sent in a round."""
        return "size-adaptive" in {self.grad_compression, self.state_compression}


PROTOCOL: Final = 2
"""The version of what skep's peers do together beside hivemind's protocol. Peers of two versions are in two swarms."""
SHARED: Final = (
    # when an epoch ends, and what follows
    "target_batch_size",
    "average_state_every",
    "mode",
    # into how many parts a tensor is split, which must be equal for all peers
    "grad_compression",
    "state_compression",
    "size_adaptive_threshold",
    "powersgd",
)
"""The fields of `sync` that must be equal for peers of one run."""


@dataclass(frozen=True)
class DataSource:
    index: Annotated[str, WebAddress()]
    """Address of the shard index."""
    sha256: Annotated[str, HASH]


@dataclass(frozen=True)
class Needs:
    memory_gb: Annotated[float, Number(0, 4096)]
    vram_gb: Annotated[float, Number(0, 4096)]
    disk_gb: Annotated[float, Number(0, 65536)]
    upload_mbit: Annotated[float, Number(0, 100_000)]


@dataclass(frozen=True)
class Manifest:
    id: Annotated[str, PROJECT_ID]
    revision: Annotated[int, Whole(1, 2**31)]
    title: Annotated[str, PlainText(80)]
    summary: Annotated[str, PlainText(400)]
    publisher: Publisher
    homepage: Annotated[str, WebAddress(empty=True)]
    license: Annotated[str, PlainText(80)]
    expires: Annotated[datetime, Moment()]
    """Aware, UTC."""
    membership: Literal["open", "invited", "moderated"]
    """Who may take part; in a moderated project newcomers take the state from donors and hosts only (`invitation`)."""
    initial_state: Literal["swarm", "signed"]
    """What a newcomer begins with: the state of the swarm's donors, or the publisher's checkpoint (`signed_checkpoint`)."""
    peers: Annotated[tuple[str, ...], Several(PeerAddress(), 1, 64)]
    recipe: Recipe
    optimizer: OptimizerSpec
    schedule: Schedule
    sync: Sync
    precision: Literal["auto", "fp32", "bf16", "fp16"]
    activation_checkpointing: Literal["auto", "on", "off"]
    data: DataSource
    needs: Needs

    @property
    def run_id(self) -> str:
        """`id`, a dash, and eight hex digits of a digest of what must be equal (no dots).

        docs/manifest.md has the derivation for other programs.
        """
        return self.run_id_of(PROTOCOL)

    def run_id_of(self, protocol: int) -> str:
        """The run id of peers whose skep has that version of the protocol."""
        text = json.dumps(_canonical(self._must_agree(protocol)), sort_keys=True, separators=(",", ":"))
        return f"{self.id}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def _must_agree(self, protocol: int) -> dict[str, Any]:
        schedule, sync = asdict(self.schedule), asdict(self.sync)
        if self.schedule.kind == "constant":
            del schedule["total_epochs"]  # here it changes no learning rate, so that a revision may extend the run
        if not self.sync.size_adaptive:
            sync["size_adaptive_threshold"] = None
        return {
            "protocol": protocol,
            "publisher": key_text(self.publisher.key),
            "recipe": asdict(self.recipe),
            "optimizer": asdict(self.optimizer),
            "schedule": schedule,
            "sync": {name: sync[name] for name in SHARED},
        }

    @property
    def by_invitation(self) -> bool:
        return self.membership != "open"

    @property
    def begins_signed(self) -> bool:
        """Whether peers take no state from each other: a newcomer begins with the publisher's signed checkpoint."""
        return self.initial_state == "signed"

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.publisher.key)


@dataclass(frozen=True)
class VerifiedProject(Project):
    """A project of this home. `text` is the manifest as it was signed, which is passed to the worker."""

    manifest: Manifest
    text: str


def _canonical(value: Any) -> Any:
    """`value` without addresses, since a hash identifies a file wherever it is stored, and 1.0 as 1."""
    match value:
        case dict():
            return {name: _canonical(each) for name, each in value.items() if name != "url"}
        case list() | tuple():
            return [_canonical(each) for each in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def fingerprint(key: bytes) -> str:
    """The fingerprint of a publisher's raw public key: 16 hex digits of its SHA-256, in groups of four."""
    digits = hashlib.sha256(key).hexdigest()[:16]
    return " ".join(digits[place : place + 4] for place in range(0, 16, 4))


# --- the learning rate: it depends on the epoch only, so that all peers use the same one

EXPONENTIAL_END: Final = 0.01
"""The factor of an exponential schedule at its last epoch."""


def factor(schedule: Schedule, epoch: int) -> float:
    """The factor of the base learning rate in `epoch` (0, 1, …).

    Warm-up rises linearly over `warmup_epochs`, from 1/(n+1) to just below 1. After it, "constant" stays at 1; the
    others fall until `total_epochs` and stay there: "linear" and "cosine" to 0, "exponential" by the same part in every
    epoch to EXPONENTIAL_END.
    """
    if epoch < schedule.warmup_epochs:
        return (epoch + 1) / (schedule.warmup_epochs + 1)
    length = max(1, schedule.total_epochs - schedule.warmup_epochs)
    done = min(1.0, (epoch - schedule.warmup_epochs) / length)
    match schedule.kind:
        case "linear":
            return 1.0 - done
        case "cosine":
            return (1.0 + math.cos(math.pi * done)) / 2.0
        case "exponential":
            return float(EXPONENTIAL_END**done)
        case "constant":
            return 1.0


# --- the rules between fields, and reading


def check_rules(sync: Sync, recipe: Recipe, schedule: Schedule) -> None:
    """Raise FieldError for a combination of fields that cannot work."""
    check_flags(vars(sync))
    if sync.averaging_timeout_seconds <= sync.matchmaking_seconds:
        raise FieldError("sync.averaging_timeout_seconds", Text("manifest.must_longer_than_matchmaking_seconds"))
    recipe.check()
    if schedule.warmup_epochs >= schedule.total_epochs:
        raise FieldError("schedule.warmup_epochs", Text("manifest.must_below_total_epochs"))
    powersgd = sync.powersgd
    if powersgd and not any(powersgd.applies_to(shape) for shape in recipe.trained):
        raise FieldError(
            "sync.powersgd.rank",
            Text("manifest.too_high_no_matrix_model", min_compression_ratio=powersgd.min_compression_ratio),
        )


def check_flags(sync: Mapping[str, Any]) -> None:
    """Raise FieldError for a combination of flags that can never train."""
    if sync["delay_grad_averaging"] and not sync["delay_optimizer_step"]:
        raise FieldError("sync.delay_grad_averaging", Text("manifest.needs_delay_optimizer_step_there"))
    if sync["delay_optimizer_step"] and not sync["offload_optimizer"]:
        raise FieldError("sync.delay_optimizer_step", Text("manifest.needs_offload_optimizer_step_runs"))
    if sync["delay_optimizer_step"] and not sync["delay_state_averaging"]:
        raise FieldError("sync.delay_optimizer_step", Text("manifest.needs_delay_state_averaging_state"))


def declaration(recipe: Field) -> Object:
    """The manifest's fields, with those of its recipe."""
    fields = declared(Manifest, recipe=recipe).fields
    # the field of the file is called "format"
    return Object(lambda format, **rest: Manifest(**rest), {"format": Whole(1, 1), **fields})  # noqa: A006, ARG005


PUBLISHER: Final = Text("manifest.tell_project_publisher_nothing_was")


def parse(raw: bytes, recipe: Field) -> Manifest:
    """The manifest in `raw`, every field checked, its recipe read by `recipe`.

    Raises ManifestError with a sentence that names the field.
    """
    body = read_object(raw, MANIFEST_BYTES_LIMIT, invalid)
    try:
        manifest = _read(body, recipe)
        check_rules(manifest.sync, manifest.recipe, manifest.schedule)
    except Later as error:
        raise ManifestError(
            Text("manifest.manifest", reason=error.text), Text("manifest.update_skep_ask_publisher_another")
        ) from None
    except FieldError as error:
        raise invalid(error.text) from None
    return manifest


def _read(body: dict[str, Any], recipe: Field) -> Manifest:
    try:
        # manifests that were signed before there was this field stay valid
        read: Manifest = declaration(recipe).read({"initial_state": "swarm"} | body, "")
    except Later:
        # invalid combinations are reported before values that only a later version supports
        check_flags(body["sync"])
        raise
    return read


def invalid(phrase: Text) -> ManifestError:
    return ManifestError(Text("manifest.manifest_not_valid", phrase=phrase), PUBLISHER)


def check_expiry(manifest: Manifest, now: datetime) -> None:
    """Raise ManifestError when the manifest has expired at `now` (aware)."""
    if manifest.expires <= now:
        raise ManifestError(
            Text("manifest.manifest_expired", title=manifest.title, expires=f"{manifest.expires:%Y-%m-%d}"),
            Text("manifest.ask_publisher_newer_one"),
        )


_HOST_SHOWN: Final = 60


def check_reach(manifest: Manifest, reach: Reach) -> None:
    """Raise ManifestError when the manifest names a host that its project may not reach.

    That is checked for seeds too, although libp2p dials them: a public project must not make volunteers probe their
    own network.
    """
    if reach is Reach.ANY:
        return
    named = [("data.index", web_host(manifest.data.index))]
    named += [("homepage", web_host(manifest.homepage))] if manifest.homepage else []
    named += [("recipe", web_host(file.address)) for file in manifest.recipe.files]
    named += [(f"peers[{number}]", host_of(peer)) for number, peer in enumerate(manifest.peers)]
    for field, host in named:
        if not may_be_global(host):
            raise ManifestError(
                Text("manifest.names_host_not_internet", field=field, host=host[:_HOST_SHOWN]),
                Text("manifest.add_file_own_network"),
            )
