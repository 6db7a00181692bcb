"""`skep host`: running a project's seed, state keeper and shard server, from its signed manifest.

A child process is the seed and the state keeper; the shard server runs in threads of this one. The training stack is
not imported, and the engine and ledger of the home are not used.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from skep.adapters.net.revocations import PublishedRevocations
from skep.adapters.net.tcp_port import check_seed_port
from skep.adapters.process.single_instance import instance_lock
from skep.adapters.storage import invitations, signing
from skep.adapters.storage.files import atomic_write
from skep.bootstrap import listen_host
from skep.core.errors import BadInput, SkepError
from skep.core.project import invitation, links, revocation
from skep.core.project.addresses import Reach, beside
from skep.core.project.manifest import Manifest, check_expiry
from skep.core.session.messages import Message, ProblemArose
from skep.core.text import Text
from skep.host.server.file_server import serving
from skep.host.server.folder import HostAddress, HostFolder, announced_addresses, check_named
from skep.host.server.peer_process import END_SECONDS, PeerProcess, problem_event
from skep.host.server.project_files import find_files, served_files
from skep.host.server.renewal import Pauses, Renewal
from skep.signatures import is_valid

MEASURE_SECONDS: Final = 60.0
"""Between two measurements of what the peer's processes use."""

Report = Callable[[dict[str, Any]], None]
"""Called with an event, from any thread."""


@dataclass(frozen=True)
class Hosting:
    """The operator's options. `web` is address and port of the shard server; `url` is the manifest's public address.

    `every` is the number of epochs between checkpoints, `keep` the number of checkpoints kept.
    """

    manifest: Path
    address: HostAddress
    data: Path | None = None
    web: tuple[str, int] = ("127.0.0.1", 8080)
    url: str = ""
    every: int = 10
    keep: int = 5
    invitation: Path | None = None
    """This peer's invitation, if the project requires invitations."""
    help_rounds: bool = False
    """Whether to average gradients for trainers of which none can be dialled."""
    pack: Path | None = None
    """The folder of the compute pack to use."""


def run(asked: Hosting, folder: HostFolder, report: Report, wait: Callable[[], object]) -> None:
    """Host until `wait` returns. Raises SkepError; then no process is left running."""
    raw, signature, manifest = signing.load_verified(asked.manifest)
    check_expiry(manifest, datetime.now(UTC))
    check_named(manifest.peers, asked.address, folder.identity.peer_id)
    listed = None if asked.data is None else asked.data / revocation.file_name(manifest)
    check_invited(manifest, asked.invitation, folder.identity.peer_id, listed)
    find_files(manifest.recipe, asked.data)
    host = listen_host(manifest.peers)
    with contextlib.ExitStack() as started:
        started.enter_context(instance_lock(folder.lock_file))
        check_seed_port(host, asked.address.port, Text("hosting.another_port"))
        text = folder.root / "manifest.json"
        atomic_write(text, raw)
        web = ""
        if asked.data is not None:
            signature_file = signing.signature_path(text)
            atomic_write(signature_file, signature)
            files = served_files(manifest, asked.data, asked.manifest.name, text, signature_file)
            web = started.enter_context(serving(files, asked.web[1], asked.web[0]))
        elif manifest.by_invitation:
            lists = PublishedRevocations(folder.root / "revoked")
            started.callback(lists.close)
            lists.watch(manifest, Reach.ANY, partial(_tell_problem, report))
            listed = lists.path(manifest)
        peer = RestartedPeer(_peer(asked, folder, manifest, text, listed), report)
        started.callback(peer.end)
        addresses = peer.start()
        report(
            {
                "event": "started",
                "addresses": addresses,
                "web": web,
                "link": join_link(asked, manifest),
                "run_id": manifest.run_id,
            }
        )
        wait()
        peer.ask_to_end()
    report({"event": "stopped"})


def _tell_problem(report: Report, message: Message) -> None:
    if isinstance(message, ProblemArose):
        report(problem_event(message.problem.title, message.problem.hint))


def check_invited(manifest: Manifest, file: Path | None, peer_id: str, listed: Path | None = None) -> None:
    """Raise SkepError unless `file` invites this peer to host, or the project is open and there is none.

    `listed` is the list of revoked invitations, which need not be there.
    """
    if not manifest.by_invitation:
        if file is not None:
            raise BadInput(
                Text("invitation.open_everybody_so_seed_needs", title=manifest.title),
                Text("invitation.leave_invitation_out"),
            )
        return
    if file is None:
        raise BadInput(
            Text("invitation.invited_peers_seed_one_them", title=manifest.title),
            Text("invitation.make_invitation_skep_project_invite", peer_id=peer_id),
        )
    found = invitation.read(invitations.read_file(file), is_valid)
    invitation.check(found, manifest, peer_id, datetime.now(UTC))
    known = listed and invitations.read_revocations(listed, manifest)
    if known and known.voids(found):
        raise invitation.revoked(manifest.title)
    if not invitation.gives_state(found, manifest):
        raise BadInput(
            Text("invitation.state_from_donors_only", title=manifest.title, role=found.role),
            Text("invitation.make_invitation_for_host", peer_id=peer_id),
        )


def join_link(asked: Hosting, manifest: Manifest) -> str:
    """The link that joins the project; empty if the manifest's public address is unknown."""
    address = asked.url
    if not address and asked.data is not None:
        address = beside(manifest.data.index, asked.manifest.name)
    return links.link_to(address, manifest.publisher.key) if address else ""


def _peer(asked: Hosting, folder: HostFolder, manifest: Manifest, text: Path, listed: Path | None) -> PeerProcess:
    arguments = [
        "--host",
        listen_host(manifest.peers),
        "--port",
        str(asked.address.port),
        "--identity",
        str(folder.identity.path),
    ]
    arguments += ["--manifest", str(text), "--checkpoints", str(folder.checkpoints(manifest.run_id))]
    arguments += ["--every", str(asked.every), "--keep", str(asked.keep)]
    if asked.help_rounds:
        arguments += ["--help-rounds"]
    if asked.data is not None:
        arguments += ["--files", str(asked.data.absolute())]
    if asked.invitation is not None:
        arguments += ["--invitation", str(asked.invitation)]
        arguments += ["--revoked", str(listed)] if listed else []
    for address in announced_addresses(asked.address):
        arguments += ["--announce", address]
    return PeerProcess(arguments, folder.log_file, asked.pack)


class RestartedPeer:
    """The host's peer process, restarted when it ends unexpectedly or has grown too much; its events are forwarded.

    It is measured every `measure_seconds`.
    """

    def __init__(
        self,
        process: PeerProcess,
        report: Report,
        renewal: Renewal | None = None,
        measure_seconds: float = MEASURE_SECONDS,
        pauses: Pauses | None = None,
    ) -> None:
        self._process, self._report = process, report
        self._pauses = pauses or Pauses()
        self._renewal, self._measure_seconds = renewal or Renewal(), measure_seconds
        self._renews = False
        self._deciding = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._live, name="peer", daemon=True)

    def start(self) -> list[str]:
        """Its addresses. Raises SwarmError when it does not start."""
        addresses = self._process.start()
        self._pauses.started()
        self._thread.start()
        threading.Thread(target=self._measure, name="peer growth", daemon=True).start()
        return addresses

    def ask_to_end(self) -> None:
        self._stopping.set()
        self._process.ask_to_end()

    def end(self) -> None:
        """Return when it has ended, including one that is just being restarted."""
        deadline = time.monotonic() + END_SECONDS
        while self._thread.is_alive() and time.monotonic() < deadline:
            self.ask_to_end()
            self._thread.join(0.05)
        self._process.end()

    def _live(self) -> None:
        self._listen()
        while not self._stopping.wait(0.0 if self._renews else self._pauses.next()):
            self._start_again()

    def _start_again(self) -> None:
        with self._deciding:
            self._renews = False
            self._renewal.started()
        try:
            self._process.start()
        except SkepError as error:
            if not self._stopping.is_set():
                self._report(problem_event(error.title, Text("hosting.starts_again")))
            return
        if self._stopping.is_set():  # `end` was called during the start
            self._process.end()
            return
        self._pauses.started()
        self._listen()

    def _listen(self) -> None:
        with contextlib.suppress(ValueError):  # `end` closes its stdout during the read
            for line in self._process.lines():
                self._report(line)
                self._renew_if_due(saved=line.get("event") == "checkpoint")
        if not self._renews and not self._stopping.is_set():
            self._report(problem_event(Text("hosting.seed_ended"), Text("hosting.starts_again")))

    def _measure(self) -> None:
        while not self._stopping.wait(self._measure_seconds):
            use = self._process.use()
            with self._deciding:
                has_grown = self._renewal.measured(use)
            if has_grown:
                grown = Text("hosting.seed_has_grown", memory=use.memory, threads=use.threads)
                self._report(problem_event(grown, Text("hosting.starts_afresh")))
            self._renew_if_due(saved=False)

    def _renew_if_due(self, *, saved: bool) -> None:
        with self._deciding:
            if not self._renewal.begins(saved=saved):
                return
            self._renews = True
        self._process.ask_to_end()
