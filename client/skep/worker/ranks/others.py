"""The ranks besides rank 0, as rank 0 sees them: forked, given orders, listened to with a deadline, killed if late."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import struct
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import MappingProxyType
from typing import Final

import psutil

from skep.core.device import labelled, numbered
from skep.core.project.manifest import Manifest
from skep.core.text import Problem, Text
from skep.recipes.registry import import_libraries
from skep.worker.ranks.orders import Answer, Built, Order, Refused
from skep.worker.ranks.rank import serve

PIPE_SECONDS: Final = 4
"""How long a rank may take nothing of an order, or send nothing of an answer that it has begun."""
LOOK_SECONDS: Final = 0.25
STOPPED_SECONDS: Final = 8.0
"""How long a rank may be stopped while it is waited for, such as by SIGSTOP. It computes nothing then, however slow it is."""
END_SECONDS: Final = 2.0


class RankLost(Exception):
    """The group has to be formed anew: a rank has ended, hangs, or could not take part in a collective.

    `answers` are those of the others.
    """

    def __init__(self, answers: Mapping[Other, Answer] = MappingProxyType({})) -> None:
        super().__init__()
        self.answers = answers


@dataclass(eq=False)
class Other:
    """One rank besides rank 0. `samples` are those whose gradients only it has; `id` as ComputingDevice has it."""

    process: BaseProcess
    link: Connection
    device: str
    id: str = ""
    name: str = ""
    samples: int = 0

    @property
    def stopped(self) -> bool:
        try:
            return bool(psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED)
        except psutil.NoSuchProcess:
            return False

    @property
    def label(self) -> str:
        """For notices: two cards of one model are told apart."""
        return labelled(self.name, self.device)


def fork(devices: Sequence[str], manifest: Manifest) -> Others:
    """Fork a rank for each of `devices`. Call it before a device is used, and before other processes are forked."""
    context, ranks = get_context("fork"), list[Other]()
    if devices:
        import_libraries(manifest.recipe)  # once, in memory that all ranks share
    for device in devices:
        ours, theirs = socket.socketpair()
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            ours.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", PIPE_SECONDS, 0))
        link, their_link = Connection(ours.detach()), Connection(theirs.detach())
        os.register_at_fork(after_in_child=link.close)  # or a rank would not notice the end of rank 0
        process = context.Process(target=serve, args=(their_link, manifest), daemon=True)
        process.start()
        their_link.close()
        ranks.append(Other(process, link, device))
    return Others(ranks)


@dataclass
class Others:
    """The ranks that take part, in the order of their numbers from 1 on; `lost` are those that did."""

    ranks: list[Other]
    lost: list[Other] = field(default_factory=list)
    _silent: set[Other] = field(default_factory=set)
    """Those that did not take an order, and get no other."""

    def number(self, first: str) -> str:
        """Give each rank its `id`, and return that of rank 0, whose device is `first`."""
        own, *ids = numbered([first, *(rank.device for rank in self.ranks)])
        for rank, name in zip(self.ranks, ids, strict=True):
            rank.id = name
        return own

    def tell(self, order: Order, ranks: Sequence[Other] | None = None) -> None:
        """Give `order` to `ranks`, else to all. One that does not take it is lost as soon as answers are expected."""
        line = pickle.dumps(order)
        for rank in [each for each in (self.ranks if ranks is None else ranks) if each not in self._silent]:
            try:
                rank.link.send_bytes(line)
            except OSError:
                self._silent.add(rank)

    def answers(self, within: float, ranks: Sequence[Other] | None = None) -> Mapping[Other, Answer]:
        """One answer of each of `ranks`, else of all, which may take `within` seconds, and be stopped for STOPPED_SECONDS.

        Time in which this process did not run counts as LOOK_SECONDS at most. Raises RankLost, once all that live have
        answered, if there are others: they are killed.
        """
        found: dict[Other, Answer] = {}
        awaited = [rank for rank in (self.ranks if ranks is None else ranks) if rank not in self._silent]
        gone = set(self._silent)
        looks, stopped = within / LOOK_SECONDS, Counter[Other]()
        while awaited and looks > 0:
            ready = wait([rank.link for rank in awaited], LOOK_SECONDS)
            looks -= not ready
            if not ready:
                stopped = Counter({rank: stopped[rank] + 1 for rank in awaited if rank.stopped})
                gone |= {rank for rank in awaited if stopped[rank] * LOOK_SECONDS >= STOPPED_SECONDS}
                awaited = [rank for rank in awaited if rank not in gone]
            for rank in [each for each in awaited if each.link in ready]:
                awaited.remove(rank)
                try:
                    found[rank] = pickle.loads(rank.link.recv_bytes())  # noqa: S301 - from a process forked by this one
                except (EOFError, OSError):
                    gone.add(rank)
        gone |= set(awaited)
        self.lost += [rank for rank in self.ranks if rank in gone]
        self.leave_out(gone)
        self._silent.clear()
        if gone:
            raise RankLost(found)
        return found

    def begun(self, within: float, told: Callable[[Problem], object], *, of_copies: bool = True) -> None:
        """Take the answers to Build; ranks that refuse or have ended are left out, and `told` says so.

        Unless `of_copies`, those stay that have no room for a copy of the model: they may have it for shards.
        """
        try:
            answers = self.answers(within)
        except RankLost as lost:
            answers = lost.answers
        for rank in self.lost:
            told(Problem(Text("ranks.could_not_begin", device=rank.label), Text("ranks.others_go_on")))
        self.lost.clear()
        for rank, answer in answers.items():
            if isinstance(answer, Refused) and answer.for_memory and not of_copies:
                continue
            if isinstance(answer, Refused):
                self.leave_out([rank])
                told(Problem(Text("ranks.left_out", device=rank.label), answer.problem.title, answer.problem.remedy))
            else:
                assert isinstance(answer, Built)
                rank.name = answer.name

    def leave_out(self, ranks: Collection[Other]) -> None:
        """End the processes of `ranks`, which take part no longer."""
        for rank in ranks:
            rank.process.kill()
            rank.process.join(END_SECONDS)
            with contextlib.suppress(OSError):
                rank.link.close()
        self.ranks = [rank for rank in self.ranks if rank not in ranks]
