"""The composition root: creates the adapters for the ports, the engine, and the control socket.

Front ends call it and use ports, the engine and plain data. Nothing is started implicitly, and what is started here is
a context manager that ends it. Adapters are imported where they are used, so that commands such as `skep pause` do
not load what only joining needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skep.adapters.clock import SystemClock
from skep.adapters.net import control_socket
from skep.adapters.net.control_socket import ControlServer
from skep.adapters.storage.files import os_errors
from skep.adapters.storage.paths import Home, default_home, expanded, make_run_folder
from skep.core.device import Device, PowerCap
from skep.core.errors import BadInput, NotRunning, SkepError, StorageError, UpdateError
from skep.core.policy.allowance import PauseState
from skep.core.policy.conditions import Conditions
from skep.core.project import links
from skep.core.project.addresses import host_of, is_loopback
from skep.core.project.manifest import Manifest, VerifiedProject
from skep.core.session import control, step
from skep.core.session import messages as m
from skep.core.session.snapshot import Snapshot
from skep.core.session.timeline import KEPT
from skep.core.settings.setting import Value
from skep.core.text import Problem, Text
from skep.core.traffic import caps_of
from skep.ports import Catalogue, Clock, Devices, Identity, Ledger, Sensor, SettingsStore

if TYPE_CHECKING:
    from skep.adapters.process.autostart import Autostart
    from skep.adapters.storage.invitations import KeptInvitations
    from skep.adapters.storage.publisher_keys import PublisherKeys
    from skep.adapters.storage.secrets import HomeSecrets
    from skep.engine.engine import Engine

GB: Final = 1_000_000_000


def home(chosen: str | None, environ: Mapping[str, str]) -> Home:
    """The chosen folder, or the default one, not created yet. Raises BadInput."""
    if chosen is not None and (not chosen or "\0" in chosen):
        raise BadInput(Text("application.home_needs_name_folder"))
    made = Home(default_home(environ) if chosen is None else expanded(chosen))
    made.check()
    return made


def clock() -> Clock:
    return SystemClock()


def devices() -> Devices:
    from skep.adapters.gpu.devices import LocalDevices

    return LocalDevices()


def power_cap(device: Device) -> PowerCap | None:
    """The power limit of the device; None for the processor, which has none."""
    from skep import senses

    return senses.power_cap(device)


def all_sensors(home: Home) -> Sequence[Sensor]:
    """All sensors of this computer, to be read once."""
    from skep import senses

    return senses.for_one_look(home, str(settings(home).load()["compute.device"]))


def settings(home: Home, mended: Callable[[Problem], None] | None = None) -> SettingsStore:
    """With `mended`, which is for the holder of the home, a damaged file is replaced, and `mended` is told so."""
    from skep.adapters.process.autostart import SettingsWithAutostart
    from skep.adapters.storage.settings_file import Mending, PauseFile, SettingsFile

    mending = mended and Mending(mended, guard=partial(PauseFile(home.pause_file).save, paused=True, until=None))
    kept = SettingsFile(home.settings_file, home.settings_copy_file, mending=mending)
    return SettingsWithAutostart(kept, autostart(home))


def autostart(home: Home) -> Autostart:
    """The autostart entry of skep in this home."""
    from skep.adapters.process.autostart import autostart as start_of

    usual = default_home({name: value for name, value in os.environ.items() if name != "SKEP_HOME"})
    return start_of(home.root, usual, os.environ)


def set_settings_aside(home: Home) -> Path | None:
    """Reset to the defaults; returns the old file's new path, None if there was no file. Raises StorageError."""
    from skep.adapters.storage.settings_file import SettingsFile

    return SettingsFile(home.settings_file).set_aside()


def identity(home: Home) -> Identity:
    """What this computer is known by in projects by invitation."""
    from skep.adapters.storage.identity import FileIdentity

    home.create()
    return FileIdentity(home.identity_file, home.peer_id_file)


def identity_in(home: Home, project: Manifest) -> Identity:
    """What this computer is known by in a project: each open project gets its own identity, so that peers cannot link them."""
    from skep.adapters.storage.identity import FileIdentity

    if project.by_invitation:
        return identity(home)
    with os_errors(
        Text("paths.folder_cannot_used", root=str(home.identities_folder)),
        Text("secrets.check_folder_permissions_free_disk"),
    ):
        home.identities_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    publisher = project.fingerprint.replace(" ", "")  # another one's project of the same id is another project
    return FileIdentity(home.identities_folder / f"{project.id}-{publisher}.key")


def renew_identity(home: Home) -> Path | None:
    """Give this computer a new identity for projects by invitation; returns the old key's new path, None without one.
    Hold the home first.
    """
    from skep.adapters.storage.identity import FileIdentity

    return FileIdentity(home.identity_file, home.peer_id_file).renew()


def catalogue(home: Home) -> Catalogue:
    from skep.adapters.net.catalogue import FileCatalogue, fetch_over_web

    home.create()
    proxy = str(settings(home).load()["network.proxy"])
    return FileCatalogue(home.projects_folder, fetch=partial(fetch_over_web, proxy=proxy))


def secrets(home: Home) -> HomeSecrets:
    """The home's secrets; the keyring is not accessed yet."""
    from skep.adapters.storage.secrets import FileSecrets, HomeSecrets, KeyringSecrets

    home.create()
    return HomeSecrets(KeyringSecrets(str(home.root)), FileSecrets(home.secrets_folder))


def publisher_keys(home: Home) -> PublisherKeys:
    from skep.adapters.storage.publisher_keys import PublisherKeys

    return PublisherKeys(home.keys_folder, secrets(home))


def kept_invitations(home: Home) -> KeptInvitations:
    from skep.adapters.storage.invitations import KeptInvitations

    return KeptInvitations(secrets(home), lambda: identity(home).peer_id)


def pack(home: Home) -> Path | None:
    """The folder of the compute pack that processes with the training stack get; None where they need none.

    A process that was started with a pack gives it to those that it starts. Raises UpdateError where one is missing.
    """
    from skep.adapters.packs.laying import RECORD
    from skep.adapters.packs.store import PackStore
    from skep.adapters.process.programs import has_own_stack

    given = Path(sys.path[0])
    if (given / RECORD).is_file():
        return given
    if has_own_stack():
        return None
    current = PackStore(home.packs_folder).current
    if current is None:
        raise UpdateError(Text("packs.none_here"), Text("packs.fetch_one"))
    return current


def limit_memory(pid: int, leave: int) -> None:
    """Have the kernel limit the memory and tasks of a process and its children, where the system offers that.

    `leave` is the bytes to leave free for other programs. It takes hundredths of a second, at most two.
    """
    if sys.platform == "linux":
        from skep.adapters.linux import scope  # its libraries exist on Linux only

        scope.limit_memory(pid, leave)


def look(home: Home) -> Snapshot:
    """The initial snapshot of an engine in this home, with its sensors read once. Raises SkepError."""
    from skep import senses
    from skep.adapters.storage.settings_file import PauseFile
    from skep.engine import sensing

    home.create()
    values, (paused, until) = settings(home).load(), PauseFile(home.pause_file).load()
    conditions = Conditions(graphical=senses.is_graphical()).with_seen(sensing.look(all_sensors(home), clock()))
    with ledger(home) as kept:
        reactions = kept.reactions(KEPT)
    pause = PauseState(until) if paused else None
    now, zone = clock().wall(), clock().zone()
    return step.initial(values, pause, now, zone=zone, conditions=conditions, reactions=reactions)


@contextmanager
def ledger(home: Home) -> Iterator[Ledger]:
    """The ledger, opened in the calling thread. Raises StorageError."""
    from skep.adapters.storage.ledger_sqlite import SqliteLedger

    home.create()
    opened = SqliteLedger(home.ledger_file)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def hold(home: Home) -> Iterator[Sequence[Problem]]:
    """Hold the lock of the home, and write its log; yields what was damaged and is mended, for `build`.

    Raises AlreadyRunning, StorageError.
    """
    from skep.adapters.process.process_tree import sweep_leftovers
    from skep.adapters.process.single_instance import instance_lock
    from skep.adapters.storage.logs import collect_logs

    home.create()
    with instance_lock(home.lock_file), collect_logs(home.logs_folder, "skep"):
        sweep_leftovers(home.worker_file)
        mended: list[Problem] = []
        with suppress(SkepError):  # whoever loads them later raises the same error
            settings(home, mended.append).load()
        yield mended


@contextmanager
def build(
    home: Home,
    join: m.Join | None = None,
    *,
    mended: Sequence[Problem] = (),
    show: Callable[[str], None] | None = None,
    notify: Callable[[Problem], None] | None = None,
    packed: Callable[[], Path | None] | None = None,
) -> Iterator[Engine]:
    """An engine that is not started yet, and its control socket. Hold the home first.

    With `join`, the port and the identity are checked now; without, the engine may stay idle, and they are checked when
    it joins. `mended` is said first. `show` is as in `serve`, `notify` as in Engine. `packed` is asked for the
    folder of the compute pack instead of `pack`. Raises SettingsError, BadInput when the port is in use, StorageError.
    """
    from skep import senses
    from skep.adapters.net.revocations import PublishedRevocations
    from skep.adapters.net.shards_http import HttpShards
    from skep.adapters.process.worker import WorkerProcess
    from skep.adapters.storage.ledger_sqlite import BRIEFLY_BUSY_SECONDS, SqliteLedger
    from skep.adapters.storage.logs import open_log
    from skep.adapters.storage.settings_file import PauseFile
    from skep.engine.engine import Engine

    def proxy() -> str:
        return str(engine.snapshot.settings["network.proxy"])

    if join is not None:
        _free_host(join.project, join.seeds, int(settings(home).load()["network.port"]))
        _ = identity_in(home, join.project.manifest).path
    engine = Engine(
        clock=SystemClock(),
        make_worker=partial(
            WorkerProcess,
            registry_file=home.worker_file,
            make_run_folder=make_run_folder,
            stderr_log=open_log(home.logs_folder, "worker"),
            pack=packed or partial(pack, home),
            limit_memory=limit_memory,
        ),
        open_ledger=lambda: SqliteLedger(
            home.ledger_file,
            once_open=BRIEFLY_BUSY_SECONDS,
            mended=lambda said: engine.post(m.ProblemArose(said)),
        ),
        shards=HttpShards(
            home.cache_folder,
            home.checkpoint_notes_folder,
            limit_bytes=lambda: int(float(engine.snapshot.settings["disk.cache_gb"]) * GB),
            keep_free_bytes=lambda: int(float(engine.snapshot.settings["disk.keep_free_gb"]) * GB),
            proxy=proxy,
            rate=lambda: caps_of(engine.snapshot.settings).download,
        ),
        settings=settings(home, lambda said: engine.post(m.ProblemArose(said))),
        pauses=PauseFile(home.pause_file),
        identity=partial(identity_in, home),
        listen_host=lambda start: _free_host(start.project, start.options.seeds, start.options.port),
        invitations=kept_invitations(home),
        revocations=PublishedRevocations(home.revocations_folder, proxy=proxy),
        sensors=senses.for_engine(home, lambda: engine),
        graphical=senses.is_graphical(),
        snapshots_folder=str(home.snapshots_folder),
        known_peers_folder=str(home.known_peers_folder),
        shards_folder=str(home.cache_folder),
        notify=notify,
    )
    for said in mended:
        engine.post(m.ProblemArose(said))
    with senses.power_capped(home, engine), serve(home, engine, show):
        yield engine


def _free_host(project: VerifiedProject, seeds: Sequence[str], port: int) -> str:
    """The address to listen at for a swarm. Raises BadInput when the port in the settings is in use."""
    from skep.adapters.net.tcp_port import check_free

    host = listen_host((*project.manifest.peers, *seeds))
    check_free(host, port)
    return host


def listen_host(peers: Sequence[str]) -> str:
    """The address to listen at: loopback for a swarm on loopback addresses only, otherwise all interfaces."""
    if peers and all(is_loopback(host_of(peer)) for peer in peers):
        return "127.0.0.1"
    return "0.0.0.0"  # noqa: S104 - other peers connect to us; that is how averaging works


@contextmanager
def serve(home: Home, engine: Engine, show: Callable[[str], None] | None = None) -> Iterator[None]:
    """Serve the engine's control socket to other processes; if it cannot be opened, the engine says so and goes on.

    `show` raises the front end's window, if it has one, with a link to show or "".
    """

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if show is not None and request.get("verb") == "show":
            show(links.shown(request.get("link")))
            return {"ok": True}
        said, commands = control.decide(request, engine.snapshot, clock().wall(), clock().zone())
        for command in commands:
            engine.post(command)
        return said

    with ExitStack() as opened:
        try:
            opened.enter_context(ControlServer(home.control_file, answer))
        except StorageError as error:
            engine.post(m.ProblemArose(error.problem))
        yield


def ask(home: Home, request: dict[str, Any]) -> dict[str, Any]:
    """The answer of the running skep. Raises NotRunning, or the error in the answer."""
    return control.result(control_socket.ask(home.control_file, request))


def change_settings(home: Home, values: dict[str, Value]) -> None:
    """Have the running skep set and save these settings, or save them if none runs. Raises SkepError."""
    try:
        ask(home, {"verb": "settings", "values": values})
    except NotRunning:
        home.create()
        settings(home).save(values)
