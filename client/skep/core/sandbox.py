"""The sandbox of the worker: its guards, and which of them a system enforces. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from skep.core.text import Text


class Level(StrEnum):
    """How much of the sandbox is used. All but BEST exist to measure, and to test what a system without a part does."""

    BEST = "best"
    """Everything that this system has."""
    LANDLOCK = "landlock"
    """Without a private root folder, as on systems that forbid user namespaces."""
    ROOT = "root"
    """Without Landlock, as on systems that do not have it."""
    NONE = "none"


class Guard(StrEnum):
    """What the sandbox keeps the worker from, in the order in which it is listed."""

    FILES = "files"
    """Files other than the worker's own folders, the libraries and the devices."""
    PROGRAMS = "programs"
    """Starting programs other than p2pd."""
    SERVICES = "services"
    """Reaching other programs by their sockets, as session bus, screen, keyring and Docker, or by shared memory."""
    PROCESSES = "processes"
    """Reading, changing or signalling other processes."""
    CALLS = "calls"
    """Calls to the system that training never needs, such as raw sockets, tracing or mounting."""
    PRIVILEGES = "privileges"
    """Having or gaining the rights of an administrator."""
    LIMITS = "limits"
    """Core dumps, tasks and files without limit."""
    MEMORY = "memory"
    """Memory without limit: of all its processes together, by the kernel."""

    @property
    def label(self) -> Text:
        return _LABELS[self]


_LABELS: Final[Mapping[Guard, Text]] = {
    Guard.FILES: Text("sandbox.files"),
    Guard.PROGRAMS: Text("sandbox.programs"),
    Guard.SERVICES: Text("sandbox.services"),
    Guard.PROCESSES: Text("sandbox.processes"),
    Guard.CALLS: Text("sandbox.calls"),
    Guard.PRIVILEGES: Text("sandbox.privileges"),
    Guard.LIMITS: Text("sandbox.limits"),
    Guard.MEMORY: Text("sandbox.memory"),
}


class Sandbox(msgspec.Struct, frozen=True):
    """What is enforced. `missing` has the system's reason for each guard that is not, in the system's words."""

    missing: dict[Guard, str] = {}

    @property
    def enforced(self) -> tuple[Guard, ...]:
        return tuple(guard for guard in Guard if guard not in self.missing)

    def __str__(self) -> str:
        """One line for the log."""
        lacking = [f"{guard} ({self.missing[guard]})" for guard in Guard if guard in self.missing]
        return f"enforced: {', '.join(self.enforced) or 'nothing'}; missing: {', '.join(lacking) or 'nothing'}"
