"""Asking peers in a process of their kind, `skep.worker.probe`, since only such a process loads the training stack."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from skep import bootstrap
from skep.adapters.net.tcp_port import check_free
from skep.adapters.process.helper import helper
from skep.adapters.process.process_tree import Mark, Tree, mark
from skep.adapters.process.programs import module_command
from skep.core.errors import BadInput
from skep.core.findings import Check, Finding, Questions, State, from_line
from skep.core.session.snapshot import Snapshot
from skep.core.text import Text
from skep.services.doctor.case import Case

END_SECONDS: Final = 1.0
"""How long the process may take to end by itself."""

PARTS: Final = 5
"""A peer may take this part of the time for an answer: the process starts, the seeds are silent, and then a remembered peer
answers a connection, a ping and a look-up.
"""

log = logging.getLogger(__name__)


def peers(case: Case, within: float) -> Iterator[Finding]:
    """What peers say, each when it is known, in at most about `within` seconds; at last what was not found out."""
    assert case.project is not None
    wanted = {Check.HANDSHAKE, Check.SWARM, Check.REACHABILITY}
    if case.is_running and case.snapshot is not None and case.snapshot.progress is not None:
        yield from _as_seen(case, case.snapshot, case.snapshot.progress.peers)
        wanted = {Check.HANDSHAKE}
    for finding in _ask(case, within):
        yield finding
        wanted.discard(finding.check)
    for check in Check:
        if check in wanted:
            yield Finding(check, State.FAIL, Text("doctor.no_answer_within", seconds=within), Text("doctor.try_again"))


def _as_seen(case: Case, snapshot: Snapshot, others: int) -> Iterator[Finding]:
    """By the running skep, which is in this swarm."""
    if others > 0:
        yield Finding(Check.SWARM, State.OK, Text("doctor.swarm_averages", count=others))
    else:
        yield Finding(Check.SWARM, State.WARN, Text("doctor.swarm_alone"), Text("doctor.wait_for_peers"))
    yield _reached(case, snapshot)


def _reached(case: Case, snapshot: Snapshot) -> Finding:
    """How others reach the running skep, and how far that is known: its worker has asked them when it joined."""
    advice = Text("doctor.forward_port", setting="network.port", mapping="network.map_port")
    if snapshot.client_mode:
        if case.settings["network.client_mode"] == "on":
            by_setting = Text("doctor.client_by_setting", setting="network.client_mode")
            return Finding(Check.REACHABILITY, State.OK, by_setting)
        return Finding(Check.REACHABILITY, State.OK, Text("doctor.is_client"), advice)
    if snapshot.relayed:
        return Finding(Check.REACHABILITY, State.OK, Text("doctor.is_relayed"), advice)
    if snapshot.verified:
        return Finding(Check.REACHABILITY, State.OK, Text("doctor.is_reachable"))
    if bootstrap.listen_host(case.addresses).startswith("127."):
        return Finding(Check.REACHABILITY, State.OK, Text("doctor.loopback_only"))
    if case.settings["network.client_mode"] == "off":
        found = Text("doctor.unverified_listener", setting="network.client_mode")
        return Finding(Check.REACHABILITY, State.WARN, found, advice)
    return Finding(Check.REACHABILITY, State.WARN, Text("doctor.not_verified"), advice)


def _ask(case: Case, within: float) -> Iterator[Finding]:
    with helper(module_command("skep.worker.probe", case.pack), log, END_SECONDS) as (process, stdin, stdout, folder):
        tree = Tree(mark(process.pid) or Mark(process.pid, time.time()), held=True, folder=folder)
        too_slow = threading.Timer(within, tree.kill)
        too_slow.start()
        try:
            stdin.write(msgspec.json.encode(_questions(case, folder, within)) + b"\n")
            for line in iter(stdout.readline, b""):
                yield from_line(line)
        except (OSError, ValueError):
            log.warning("the process that asks peers said something unexpected", exc_info=True)
        finally:
            too_slow.cancel()


def _questions(case: Case, folder: Path, within: float) -> Questions:
    assert case.project is not None
    return Questions(
        seeds=case.addresses,
        known=case.dialled(),
        run_id=case.project.run_id,
        run_folder=str(folder),
        port=_port(case),
        listen_host=bootstrap.listen_host(case.addresses),
        map_port=bool(case.settings["network.map_port"]),
        client_mode=str(case.settings["network.client_mode"]),
        invited=case.project.manifest.by_invitation,
        is_running=case.is_running,
        within=within,
        patience=within / PARTS,
    )


def _port(case: Case) -> int:
    """The port of the settings, where a router may lead to; any other while something uses it."""
    port = int(case.settings["network.port"])
    try:
        check_free("0.0.0.0", port)  # noqa: S104 - as a worker listens
    except BadInput:
        return 0
    return port
