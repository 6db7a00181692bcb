"""What a script trains, and how, checked before anything is started."""

from __future__ import annotations

import ipaddress
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch

from skep.core.plain_text import first_line
from skep.core.project.fields import Field, FieldError, Number, PeerAddress, Whole
from skep.core.text import Text
from skep.training.projects import check_model, manifest_of
from skep.training.synchronisation import SyncOptions, synchronisation
from skep.training.words import refused
from skep.worker.swarm.averaging.groups import MOST_BANDWIDTH
from skep.worker.swarm.optimizers import Factory, guarded
from skep.worker.swarm.plausible import LARGEST_GRADIENT
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.strategy import Run, run_of

MakeOptimizer = Callable[[Any], torch.optim.Optimizer]
PEERS_VARIABLES: Final = ("INITIAL_PEERS", "PL_INITIAL_PEERS")
"""The second is what the published Lightning strategy reads, though it prints the first."""
RUN_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""No dot: hivemind's keys have one of their own."""

UNFIT: Final = (torch.optim.LBFGS, torch.optim.SparseAdam, torch.optim.Rprop, torch.optim.ASGD)
"""Optimizers that need the loss again, gradients of another kind, or their state from real gradients."""


@dataclass(frozen=True)
class Plan:
    """What is trained. `seeds` are a project's; `groups` those that the script gave, if any."""

    run: Run
    model: torch.nn.Module
    parameters: Sequence[torch.nn.Parameter]
    batch_size: int
    seeds: Sequence[str] = ()
    groups: Sequence[dict[str, Any]] | None = None

    @contextmanager
    def keeping_gradients(self) -> Iterator[None]:
        """A context in which the model's `zero_grad` does nothing: the gradients of all batches of an epoch stay."""
        before = vars(self.model).get("zero_grad")
        vars(self.model)["zero_grad"] = lambda set_to_none=True: None  # noqa: ARG005 - torch's argument
        try:
            yield
        finally:
            del vars(self.model)["zero_grad"]
            if before is not None:
                vars(self.model)["zero_grad"] = before


def plan_of(
    model: torch.nn.Module,
    *,
    batch_size: int,
    run_id: str,
    target_batch_size: int,
    optimizer: MakeOptimizer | None,
    project: str | Path,
    parameters: Iterable[torch.nn.Parameter] | Iterable[dict[str, Any]] | None,
    scheduler: Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler] | None,
    clip_norm: float | None,
    options: SyncOptions,
) -> Plan:
    """The plan of the arguments of `join`. Raises BadInput, ManifestError."""
    groups, grouped = _groups(model, parameters)
    flat = [each for group in groups for each in group["params"]]
    _check_parameters(flat)
    if not isinstance(batch_size, int) or batch_size < 1:  # type: ignore[redundant-expr]  # a script gives anything
        raise refused(Text("script.bad_batch_size", given=str(batch_size)), Text("script.give_batch_size"))
    if clip_norm is not None:
        _check_option(Number(0.0, LARGEST_GRADIENT, above=True), "clip_norm", clip_norm)
    if project:
        given = {"run_id": run_id, "target_batch_size": target_batch_size, "optimizer": optimizer}
        given |= {"scheduler": scheduler, "clip_norm": clip_norm, **options}
        if named := [name for name, value in given.items() if value]:
            raise refused(Text("script.project_has_it", name=named[0]), Text("script.leave_it_out"))
        manifest = manifest_of(project)
        flat = [each for each in model.parameters() if each in set(flat)]  # in the order of all peers, not of groups
        check_model(manifest, flat)
        return Plan(run_of(manifest), model, flat, batch_size, manifest.peers)
    if not RUN_ID.fullmatch(run_id):
        raise refused(Text("script.bad_run_id", given=run_id), Text("script.give_run_id"))
    if optimizer is None:
        raise refused(Text("script.no_optimizer"), Text("script.give_optimizer"))
    sync = synchronisation(target_batch_size, options)
    if sync.powersgd and not any(sync.powersgd.applies_to(tuple(each.shape)) for each in flat):
        least = sync.powersgd.min_compression_ratio
        phrase = Text("manifest.too_high_no_matrix_model", min_compression_ratio=least)
        raise refused(Text("script.option_not_valid", name="averager_rank", phrase=phrase))
    make = partial(_factory, optimizer, clip_norm, grouped=grouped)
    # so that one that cannot be used is refused now; a schedule changes the options of its groups
    tried = make(Rounds("", lambda _: None))([dict(group) for group in groups])
    if scheduler is not None:
        _check_schedule(scheduler, tried)
    return Plan(Run(run_id, sync, make, scheduler), model, flat, batch_size, groups=groups if grouped else None)


def check_place(host: str, port: int, bandwidth: float) -> None:
    """Raise BadInput for an address where this peer cannot listen, or a bandwidth that others would not believe."""
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        phrase = Text("script.must_be_ipv4_address")
        raise refused(Text("script.option_not_valid", name="host", phrase=phrase)) from None
    _check_option(Whole(0, 2**16 - 1), "port", port)
    _check_option(Number(0.0, MOST_BANDWIDTH), "bandwidth", bandwidth)


def _check_option(field: Field, name: str, given: object) -> None:
    try:
        field.read(given, name)
    except FieldError as error:
        raise refused(Text("script.option_not_valid", name=name, phrase=error.phrase)) from None


def _check_schedule(make: Callable[[torch.optim.Optimizer], Any], optimizer: torch.optim.Optimizer) -> None:
    """Raise BadInput for a schedule that cannot be stepped by the epoch alone; changes the learning rates.

    A schedule changes a tensor in place; those of the script stay as they are.
    """
    for group in optimizer.param_groups:
        group.update({name: each.clone() for name, each in group.items() if isinstance(each, torch.Tensor)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, that the optimizer has not stepped yet
        try:
            made = make(optimizer)
            fits = isinstance(made, torch.optim.lr_scheduler.LRScheduler)
            reason = "" if fits else f"{type(made).__name__} is no LRScheduler"
            if fits:
                made.step()
        except Exception as error:  # noqa: BLE001 - whatever a function of the script raises
            reason = first_line(error)
    if reason:
        raise refused(Text("script.unfit_schedule", reason=reason), Text("script.give_schedule"))


def _groups(
    model: torch.nn.Module, parameters: Iterable[torch.nn.Parameter] | Iterable[dict[str, Any]] | None
) -> tuple[list[dict[str, Any]], bool]:
    """The parameters in groups, as torch's optimizers take them, and whether the script gave groups."""
    own = (each for each in model.parameters() if each.requires_grad)
    given: list[Any] = list(own if parameters is None else parameters)
    if given and all(isinstance(each, dict) and "params" in each for each in given):
        return [{**each, "params": list(each["params"])} for each in given], True
    return [{"params": given}], False


def _check_parameters(parameters: Sequence[torch.nn.Parameter]) -> None:
    if not parameters or not all(isinstance(each, torch.Tensor) for each in parameters):
        raise refused(Text("script.no_parameters"), Text("script.give_parameters"))
    odd = next((each.dtype for each in parameters if each.dtype is not torch.float32), None)
    if odd is not None:
        raise refused(Text("script.not_float32", kind=str(odd)), Text("script.use_autocast"))
    if len(set(parameters)) != len(parameters):
        raise refused(Text("script.parameter_twice"), Text("script.give_parameters"))


def _factory(make: MakeOptimizer, clip_norm: float | None, rounds: Rounds, *, grouped: bool) -> Factory:
    def made_of(groups: Iterable[Any]) -> torch.optim.Optimizer:
        given = list(groups)
        made: Any = make(given if grouped else list(given[0]["params"]))
        if not isinstance(made, torch.optim.Optimizer):
            raise refused(Text("script.not_an_optimizer", kind=type(made).__name__), Text("script.give_optimizer"))
        if type(made) in UNFIT:
            raise refused(
                Text("script.unfit_optimizer", kind=type(made).__name__), Text("script.use_another_optimizer")
            )
        return guarded(made, rounds, clip_norm)

    return made_of


def peers_of(given: str | Iterable[str], environ: Mapping[str, str]) -> Sequence[str]:
    """The multiaddresses given, or those in the environment. Raises BadInput for one that is none."""
    if not given:
        given = next((environ[name] for name in PEERS_VARIABLES if environ.get(name)), "")
    found = re.split(r"[,\s]+", given.strip()) if isinstance(given, str) else [str(each) for each in given]
    try:
        return [PeerAddress().read(each, "initial_peers") for each in found if each]
    except FieldError as error:
        raise refused(
            Text("script.option_not_valid", name="initial_peers", phrase=error.phrase), Text("script.copy_addresses")
        ) from None
