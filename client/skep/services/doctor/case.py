"""What the doctor examines, and one check as a task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from skep import bootstrap
from skep.adapters.storage.paths import Home
from skep.core.findings import Check, Finding, State, seed_down
from skep.core.project import met_peers
from skep.core.project.manifest import VerifiedProject
from skep.core.session.snapshot import Snapshot
from skep.core.settings import settings as declared
from skep.core.settings.setting import Value
from skep.core.text import Text
from skep.dialling import may_be_dialled, own_networks

WITHIN_SECONDS: Final = 30.0
"""How long all checks together may take; what has not answered by then is reported as such."""


@dataclass(frozen=True)
class Case:
    """One examination: `project` None looks at this computer only; `snapshot` is the running skep's, None if none runs.

    `seeds` are multiaddresses besides those of the manifest. `pack` is the folder of the compute pack to use.
    """

    home: Home
    project: VerifiedProject | None = None
    seeds: tuple[str, ...] = ()
    snapshot: Snapshot | None = None
    settings: dict[str, Value] = field(default_factory=lambda: dict(declared.DEFAULTS))
    pack: Path | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """The multiaddresses of all seeds."""
        named = self.project.manifest.peers if self.project is not None else ()
        return tuple(dict.fromkeys((*named, *self.seeds)))

    def known(self, now: float) -> Sequence[met_peers.Known]:
        """The peers of this run that are remembered at `now` (seconds since 1970), the one met last first."""
        assert self.project is not None
        try:
            with (self.home.known_peers_folder / met_peers.file_name(self.project.run_id)).open("rb") as file:
                return met_peers.met(file.read(met_peers.READ_AT_MOST), now)
        except OSError:
            return []

    def dialled(self) -> tuple[str, ...]:
        """The addresses of those through which a join is tried here while no seed answers."""
        ours = own_networks()
        return tuple(each.address for each in self.known(time.time()) if may_be_dialled(each.address, ours))

    @property
    def seed_down(self) -> tuple[State, Text]:
        """How bad it is that a seed does not answer, and what to do."""
        return seed_down(others=len(self.addresses) > 1, known=bool(self.dialled()))

    @property
    def is_running(self) -> bool:
        """Whether the running skep is in the swarm of this project."""
        seen, project = self.snapshot, self.project
        if seen is None or project is None or seen.project is None or not seen.joined or seen.progress is None:
            return False
        return seen.project.run_id == project.run_id

    def as_set(self) -> Case:
        """With the home's settings. Raises SettingsError, StorageError."""
        return replace(self, settings=bootstrap.settings(self.home).load())


@dataclass(frozen=True)
class Task:
    """A check that runs in a thread of its own; `run` may raise SkepError, and yields each finding when it is known."""

    check: Check
    run: Callable[[], Iterable[Finding]]
    subject: str = ""
