"""The state that this computer has kept of a run, by its file's name alone: no tensor is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skep.adapters.storage.paths import Home
from skep.core.project.manifest import Manifest

_NAME: Final = re.compile(r"epoch-(\d{8})\.safetensors", re.ASCII)


@dataclass(frozen=True)
class Kept:
    """A file with the model and the optimizer's state of a run after `epoch` epochs; `last`: the run is finished."""

    path: Path
    epoch: int
    last: bool


def kept(home: Home, manifest: Manifest) -> Kept | None:
    """The newest state that a worker of this home has saved of the manifest's run; None if there is none, or no access."""
    try:
        names = [path.name for path in (home.snapshots_folder / manifest.run_id).iterdir()]
    except OSError:
        return None
    found = max(filter(None, map(_NAME.fullmatch, names)), key=lambda match: match[0], default=None)
    if found is None:
        return None
    epoch = int(found[1])
    return Kept(home.snapshots_folder / manifest.run_id / found[0], epoch, epoch >= manifest.schedule.total_epochs)
