"""Checkpoints of a run as safetensors files in one folder: written atomically, the newest few kept. The host keeps
them, and every peer its own newest one (`snapshots`).

A file holds `parameter.NAME` for each trained parameter and `optimizer.NUMBER` for each tensor of the optimizer's
state, in hivemind's order; its metadata contains the format, run id, epoch and manifest. pickle is not used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from skep.core.errors import StorageError
from skep.core.project.signed_checkpoint import FILE_FORMAT
from skep.core.text import Text
from skep.files import os_errors, replacing

PARAMETER: Final = "parameter."
OPTIMIZER: Final = "optimizer."
_NAME: Final = re.compile(r"epoch-(\d{8})\.safetensors")
_LEFTOVER: Final = re.compile(r"\.epoch-\d{8}\.safetensors\..*")
_DAMAGED: Final = Text("checkpoints.remove_it")


@dataclass(frozen=True)
class Checkpoint:
    """`parameters` by name and `optimizer` tensors in order, on the CPU; `manifest` is its raw text."""

    run_id: str
    epoch: int
    manifest: str
    parameters: Mapping[str, torch.Tensor]
    optimizer: Sequence[torch.Tensor]


class CheckpointFolder:
    """The checkpoints of one run, of which the newest `keep` are kept.

    Where the epoch has jumped by more than `jump`, it may be a false one: of the checkpoints before the first jump the
    newest `keep` stay too.
    """

    def __init__(self, folder: Path, keep: int, jump: int | None = None) -> None:
        self._folder, self._keep, self._jump = folder, keep, jump

    def paths(self) -> list[Path]:
        """Newest first. Raises StorageError."""
        with self._errors():
            try:
                return sorted((path for path in self._folder.iterdir() if _NAME.fullmatch(path.name)), reverse=True)
            except FileNotFoundError:
                return []

    def write(self, checkpoint: Checkpoint) -> Path:
        """Add it, then delete the oldest beyond `keep`. Raises StorageError; then nothing is changed."""
        path = self._folder / f"epoch-{checkpoint.epoch:08d}.safetensors"
        with self._errors():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._tidy()
            with replacing(path) as file:
                _save(checkpoint, file)
            found = self.paths()
            # a damaged one of a later epoch counts as newer
            stay = {path, *found[: self._keep], *self._before_jump(found)}
            for old in found:
                if old not in stay:
                    old.unlink()
        return path

    def written_at(self, path: Path) -> float:
        """When one of them was written, in seconds of the wall clock. Raises StorageError."""
        with self._errors():
            return path.stat().st_mtime

    def _before_jump(self, newest_first: Sequence[Path]) -> Sequence[Path]:
        """Those that stay because of a jump."""
        for number, (path, older) in reversed(list(enumerate(pairwise(newest_first), start=1))):
            if self._jump is not None and epoch_of(path) - epoch_of(older) > self._jump:
                return newest_first[number : number + self._keep]
        return ()

    def _tidy(self) -> None:
        """Remove unfinished files of a process that was killed while writing."""
        for path in self._folder.iterdir():
            if _LEFTOVER.fullmatch(path.name):
                path.unlink()

    def _errors(self) -> AbstractContextManager[None]:
        return os_errors(
            Text("checkpoints.checkpoints_cannot_read_written", folder=str(self._folder)),
            Text("secrets.check_folder_permissions_free_disk"),
        )


def epoch_of(path: Path) -> int:
    found = _NAME.fullmatch(path.name)
    assert found
    return int(found[1])


def read(path: Path) -> Checkpoint:
    """The checkpoint in a file. Raises StorageError if it is not one, or damaged."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            names = list(file.keys())
            if metadata.get("format") != FILE_FORMAT:
                raise StorageError(Text("checkpoints.not_checkpoint_skep", path=str(path)), Text("signing.check_path"))
            # copies, because the library's tensors may be parts of one block of memory, the file itself
            parameters = {
                name.removeprefix(PARAMETER): file.get_tensor(name).clone()
                for name in names
                if name.startswith(PARAMETER)
            }
            optimizer = [file.get_tensor(name).clone() for name in sorted(names) if name.startswith(OPTIMIZER)]
        return Checkpoint(metadata["run_id"], int(metadata["epoch"]), metadata["manifest"], parameters, optimizer)
    except FileNotFoundError:
        raise StorageError(
            Text("checkpoints.there_no_checkpoint", path=str(path)), Text("signing.check_path")
        ) from None
    except (OSError, SafetensorError, ValueError, KeyError):
        raise StorageError(Text("checkpoints.checkpoint_damaged_cannot_read", path=str(path)), _DAMAGED) from None


def _save(checkpoint: Checkpoint, path: Path) -> None:
    """Write it without a second copy in memory. Raises OSError."""
    try:
        save_file(_tensors(checkpoint), path, _metadata(checkpoint))
    except SafetensorError as error:  # the library's form of the system's errors
        number = re.search(r"\(os error (\d+)\)", str(error))
        raise (OSError(int(number[1]), os.strerror(int(number[1]))) if number else OSError(str(error))) from None


def _tensors(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    named = {f"{PARAMETER}{name}": tensor for name, tensor in checkpoint.parameters.items()}
    numbered = {f"{OPTIMIZER}{place:06d}": tensor for place, tensor in enumerate(checkpoint.optimizer)}
    return {name: tensor.detach().contiguous() for name, tensor in (named | numbered).items()}


def _metadata(checkpoint: Checkpoint) -> dict[str, str]:
    return {
        "format": FILE_FORMAT,
        "run_id": checkpoint.run_id,
        "epoch": str(checkpoint.epoch),
        "manifest": checkpoint.manifest,
    }
