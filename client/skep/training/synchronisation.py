"""The options of a script's synchronisation, by hivemind's names, as the Sync that the worker's parts take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypedDict

from hivemind import compression
from hivemind.optim.power_sgd_averager import PowerSGDGradientAverager

from skep.core.project.fields import FieldError, declared
from skep.core.project.manifest import Sync, check_flags
from skep.core.text import Text
from skep.training.words import refused
from skep.worker.swarm.averaging.codecs import CODECS

Codec = Any
"""The name of a compression, or hivemind's object."""


class SyncOptions(TypedDict, total=False):
    """How the peers of a run average, by the names of hivemind.Optimizer; each peer of a run needs the same.

    A compression is "none", "float16", "scaled-float16", "uniform-8bit" or "size-adaptive" (8 bits for tensors of at
    least `size_adaptive_threshold` values, float16 for others), or the object of hivemind that does the same.
    `grad_averager_factory` is a functools.partial of hivemind's PowerSGDGradientAverager with `averager_rank` and
    `min_compression_ratio`. Times are seconds.
    """

    offload_optimizer: bool
    reuse_grad_buffers: bool
    delay_optimizer_step: bool
    delay_grad_averaging: bool
    delay_state_averaging: bool
    grad_compression: Codec
    state_averaging_compression: Codec
    load_state_compression: Codec
    size_adaptive_threshold: int
    grad_averager_factory: Callable[..., Any] | None
    average_state_every: int
    matchmaking_time: float
    averaging_timeout: float


DEFAULTS: Final[Mapping[str, Any]] = {
    "offload_optimizer": False,
    "reuse_grad_buffers": False,
    "delay_optimizer_step": False,
    "delay_grad_averaging": False,
    "delay_state_averaging": False,
    "grad_compression": "none",
    "state_averaging_compression": "none",
    "load_state_compression": "none",
    "size_adaptive_threshold": 2**16 + 1,
    "grad_averager_factory": None,
    "average_state_every": 1,
    "matchmaking_time": 5.0,
    "averaging_timeout": 30.0,
}
OWN_NAMES: Final = {
    "state_averaging_compression": "state_compression",
    "load_state_compression": "load_compression",
    "grad_averager_factory": "powersgd",
    "matchmaking_time": "matchmaking_seconds",
    "averaging_timeout": "averaging_timeout_seconds",
}
"""Those options that the manifest's `sync` names in another way."""
COMPRESSIONS: Final = ("grad_compression", "state_averaging_compression", "load_state_compression")
_SYNC: Final = declared(Sync)


def synchronisation(target_batch_size: int, options: SyncOptions) -> Sync:
    """The Sync of these options; those that are missing have their DEFAULTS.

    Raises BadInput with a sentence that names the option.
    """
    if unknown := sorted(set(options) - set(DEFAULTS)):
        raise refused(
            Text("script.option_not_known", name=unknown[0]), Text("script.options_are", names=tuple(DEFAULTS))
        )
    wanted = {**DEFAULTS, **options}
    names, thresholds = zip(*(_codec(name, wanted[name]) for name in COMPRESSIONS), strict=True)
    wanted.update(zip(COMPRESSIONS, names, strict=True))
    given = {each for each in thresholds if each is not None}
    if len(given) > 1:
        raise refused(Text("script.two_thresholds"), Text("script.give_one_threshold"))
    if given:
        wanted["size_adaptive_threshold"] = given.pop()
    wanted["grad_averager_factory"] = _powersgd(wanted["grad_averager_factory"])
    body = {OWN_NAMES.get(name, name): value for name, value in wanted.items()}
    body |= {"target_batch_size": target_batch_size, "mode": "global"}
    try:
        sync: Sync = _SYNC.read(body, "")
        _check(sync)
    except FieldError as error:
        raise refused(Text("script.option_not_valid", name=_argument(error.path), phrase=error.phrase)) from None
    return sync


def _check(sync: Sync) -> None:
    """Raise FieldError for a combination that cannot work."""
    check_flags(vars(sync))
    if sync.averaging_timeout_seconds <= sync.matchmaking_seconds:
        raise FieldError("averaging_timeout_seconds", Text("script.must_be_longer_than_matchmaking_time"))


def _argument(path: str | Text) -> str:
    """The argument that a field of the manifest was made from."""
    field = str(path).removeprefix("sync.").partition(".")[0]
    return next((name for name, own in OWN_NAMES.items() if own == field), field)


def _codec(name: str, given: object) -> tuple[str, int | None]:
    """The name of a compression, and the threshold of one that has one. Raises BadInput."""
    match given:
        case str():
            return given, None  # the manifest's check names those that there are
        case compression.SizeAdaptiveCompression(
            threshold=int(threshold),
            less=compression.Float16Compression(),
            greater_equal=compression.Uniform8BitQuantization(),
        ):
            return "size-adaptive", threshold
        case _:
            pass
    for known, kind in CODECS.items():
        if type(given) is kind:
            return known, None
    raise refused(Text("script.compression_not_known", name=name), Text("script.compressions_are", names=tuple(CODECS)))


def _powersgd(factory: object) -> dict[str, Any] | None:
    """The manifest's `powersgd` of a factory of gradient averagers. Raises BadInput for another one."""
    if factory is None:
        return None
    if isinstance(factory, partial) and factory.func is PowerSGDGradientAverager and not factory.args:
        options = {"min_compression_ratio": 0.5, **factory.keywords}
        if set(options) == {"averager_rank", "min_compression_ratio"}:
            return {"rank": options["averager_rank"], "min_compression_ratio": options["min_compression_ratio"]}
    raise refused(Text("script.averager_not_known"), Text("script.give_powersgd"))
