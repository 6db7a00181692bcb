"""The processes of a joined front end, found from outside by their place in the process tree."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import StrEnum

import psutil

from families import lives

WORKER = "skep.worker.main"


class Role(StrEnum):
    FRONT_END = "front end"
    WORKER = "worker"
    DHT = "dht"
    P2PD = "p2pd"
    STATE = "state averager"
    GRADIENTS = "gradient averager"


@dataclass(frozen=True)
class Family:
    """Every process by its role, and the whole tree below the front end, which may have more."""

    roles: dict[Role, psutil.Process]
    tree: tuple[psutil.Process, ...]

    def without_front_end(self) -> tuple[psutil.Process, ...]:
        return tuple(each for each in self.tree if each != self.roles[Role.FRONT_END])


def family_of(front_end: int) -> Family | None:
    """The family, if every role is there, alive and not stopped; else None."""
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(front_end)
        tree = [root, *root.children(recursive=True)]
        roles = roles_in(tree)
        if roles.keys() == set(Role) and all(map(runs, roles.values())):
            return Family(roles, tuple(tree))
    return None


def roles_in(tree: list[psutil.Process]) -> dict[Role, psutil.Process]:
    """The roles of a front end's tree, as far as they are there. Raises psutil.Error when a process has just ended.

    The worker forks the DHT's process and the averagers', which have its command line; p2pd is a child of the DHT's
    process, or of the worker once that has ended. hivemind starts the averager of the state before that of the
    gradients, and restarts neither. Ranks are forked before all of these.
    """
    found = {Role.FRONT_END: tree[0]}
    by_parent: dict[int, list[psutil.Process]] = {}
    for process in tree[1:]:
        by_parent.setdefault(process.ppid(), []).append(process)
    workers = [each for each in by_parent.get(tree[0].pid, []) if WORKER in each.cmdline()]
    if not workers:
        return found
    worker = found[Role.WORKER] = workers[-1]
    command, forks = worker.cmdline(), list[psutil.Process]()
    for process in by_parent.get(worker.pid, []):
        if process.name() == "p2pd":
            found[Role.P2PD] = process
        elif process.cmdline() == command:
            forks.append(process)
    for fork in forks:
        for child in by_parent.get(fork.pid, []):
            if child.name() == "p2pd":
                found[Role.DHT], found[Role.P2PD] = fork, child
    dht = found.get(Role.DHT)
    averagers = sorted((each for each in forks if dht and _started(each) > _started(dht)), key=_started)
    if len(averagers) == 2:  # noqa: PLR2004 - of the state and of the gradients
        found[Role.STATE], found[Role.GRADIENTS] = averagers
    return found


def ranks_in(family: Family) -> list[psutil.Process]:
    """The processes of the worker's further devices, in the order of these. Raises psutil.Error when one has just ended."""
    worker, dht = family.roles[Role.WORKER], family.roles[Role.DHT]
    forks = [each for each in family.tree if each.ppid() == worker.pid and each.cmdline() == worker.cmdline()]
    return sorted((each for each in forks if _started(each) < _started(dht)), key=_started)


def _started(process: psutil.Process) -> float:
    return float(process.create_time())


def runs(process: psutil.Process) -> bool:
    """Whether it lives and is not stopped."""
    try:
        return lives(process) and process.status() != psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False
