"""The one place that picks the real parts: adapters for the ports, an engine made of them, and the control socket.

It must not decide anything; front ends call it and see ports, the engine and plain data. Nothing starts before it is
asked for, and what is started here is a context manager that ends it. An adapter is loaded where it is picked: who types
`skep pause` need not wait for what only joining takes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skep.adapters import control_socket
from skep.adapters.clock import SystemClock
from skep.adapters.control_socket import ControlServer
from skep.adapters.paths import Home, default_home, make_run_folder
from skep.core import control, invitation, links, manifest, precision, session
from skep.core import estimate as estimates
from skep.core import fit as fit_check
from skep.core import messages as m
from skep.core.conditions import Conditions
from skep.core.errors import BadInput, DoesNotFit, InvitationError, NotRunning
from skep.core.estimate import Estimate
from skep.core.fit import Fit, Verdict
from skep.core.manifest import Manifest, parse
from skep.core.model import Device, PauseState, PowerCap, Problem, Project
from skep.core.settings import Value
from skep.core.snapshot import Snapshot
from skep.core.timeline import KEPT
from skep.ports import Catalogue, Clock, Devices, Identity, Ledger, Post, Sensor, SettingsStore

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from skep.adapters.autostart import Autostart
    from skep.adapters.catalogue import FileCatalogue
    from skep.adapters.invitations import KeptInvitations
    from skep.adapters.publisher_keys import PublisherKeys
    from skep.adapters.secrets import HomeSecrets
    from skep.adapters.worker_process import WorkerProcess
    from skep.engine import Engine

GB: Final = 1_000_000_000
_LOOPBACK: Final = re.compile(r"/(ip4/127\.\d+\.\d+\.\d+|ip6/::1|dns[46]?/localhost)(/|$)")


@dataclass(frozen=True)
class Parts:
    """What a front end holds while it is in a swarm."""

    engine: Engine
    clock: Clock


def home(chosen: str | None, environ: Mapping[str, str]) -> Home:
    """The folder that was chosen, or the usual one, not made yet. Raises BadInput."""
    made = Home(default_home(environ) if chosen is None else Path(chosen).expanduser().absolute())
    made.check()
    return made


def clock() -> Clock:
    return SystemClock()


def devices() -> Devices:
    from skep.adapters.gpu import LocalDevices

    return LocalDevices()


def power_cap(device: Device) -> PowerCap | None:
    """Whether and how the device's power can be limited; None for the processor, which has no such limit."""
    from skep import senses

    return senses.power_cap(device)


def all_sensors(home: Home) -> Sequence[Sensor]:
    """Every sensor there is here, for one look at each."""
    from skep import senses

    return senses.for_one_look(home, str(settings(home).load()["compute.device"]))


def settings(home: Home) -> SettingsStore:
    from skep.adapters.autostart import SettingsWithAutostart
    from skep.adapters.settings_file import SettingsFile

    return SettingsWithAutostart(SettingsFile(home.settings_file), autostart(home))


def autostart(home: Home) -> Autostart:
    """What starts skep in this home at login."""
    from skep.adapters.autostart import autostart as start_of

    usual = default_home({name: value for name, value in os.environ.items() if name != "SKEP_HOME"})
    return start_of(home.root, usual, os.environ)


def set_settings_aside(home: Home) -> Path | None:
    """Begin with the defaults; where the old file is now, None where there was none. Raises StorageError."""
    from skep.adapters.settings_file import SettingsFile

    return SettingsFile(home.settings_file).set_aside()


def identity(home: Home) -> Identity:
    from skep.adapters.identity import FileIdentity

    home.create()
    return FileIdentity(home.identity_file)


def catalogue(home: Home) -> Catalogue:
    return _catalogue(home)


def _catalogue(home: Home) -> FileCatalogue:
    from skep.adapters.catalogue import FileCatalogue
    from skep.adapters.manifest_fetch import fetch_over_web

    home.create()
    return FileCatalogue(home.projects_folder, fetch=partial(fetch_over_web, proxy=_proxy(settings(home).load())))


def _proxy(values: Mapping[str, Value]) -> str:
    return str(values["network.proxy"])


def add_project(home: Home, source: str, *, consent: bool) -> Project:
    """Verify and keep the manifest at a path or URL. `consent` lets a new revision use more than before.

    Raises ManifestError, StorageError.
    """
    return _catalogue(home).add(source, consent=consent)


def check_fit(home: Home, project: Project) -> Sequence[str]:
    """Remarks on how the project fits this computer. Raises DoesNotFit with why it does not, ManifestError."""
    plan = parse(project.manifest.encode())
    check_expiry(plan)
    if lacking := precision.lacking(plan, devices().list(), str(settings(home).load()["compute.device"])):
        raise DoesNotFit(lacking, precision.HINT, remedy="setting:compute.device")
    found = fit(home, plan)
    if found.verdict is Verdict.TOO_BIG:
        raise DoesNotFit(" ".join(found.reasons), "Nothing was downloaded. Choose a smaller project.")
    return found.reasons


def fit(home: Home, plan: Manifest) -> Fit:
    """What the fit check says about this computer as it is now."""
    import psutil

    from skep.adapters.shard_cache import free_bytes

    home.create()
    disk = free_bytes(home.root)
    return fit_check.check(plan, devices().list(), memory=psutil.virtual_memory().total, disk_free=disk)


def estimate(plan: Manifest) -> Estimate:
    """What the project would take of this computer and give to the swarm."""
    import psutil

    return estimates.estimate(plan, devices().list(), cores=psutil.cpu_count(logical=False) or 1)


def read_manifest(path: str) -> Manifest:
    """The manifest in a file, its signature checked; nothing of it is kept. Raises ManifestError, BadInput."""
    from skep.adapters import signing

    if "://" in path:
        raise BadInput("Only a file can be looked at without keeping it.", f"skep project add {path} fetches it.")
    return signing.load_verified(signing.given_path(path))[2]


def known_manifest(home: Home, name: str) -> Manifest:
    """The manifest of a project in the catalogue. Raises BadInput."""
    return parse(catalogue(home).find(name).manifest.encode())


def check_expiry(plan: Manifest) -> None:
    """Raises ManifestError when the manifest has expired."""
    manifest.check_expiry(plan, datetime.now(UTC))


def secrets(home: Home) -> HomeSecrets:
    """The home's secrets; the keyring is not asked yet."""
    from skep.adapters.secrets import FileSecrets, HomeSecrets, KeyringSecrets

    home.create()
    return HomeSecrets(KeyringSecrets(str(home.root)), FileSecrets(home.secrets_folder))


def publisher_keys(home: Home) -> PublisherKeys:
    from skep.adapters.publisher_keys import PublisherKeys

    return PublisherKeys(home.keys_folder, secrets(home))


def private_key(home: Home, chosen: str | None, public: bytes) -> Ed25519PrivateKey:
    """The private key called `chosen`, or in that file; where none is chosen, the one that belongs to `public`.

    Raises BadInput, SecretsError.
    """
    from skep.adapters import signing
    from skep.adapters.publisher_keys import DEFAULT_NAME

    keys = publisher_keys(home)
    known = {key.name: key for key in keys.all()}
    if chosen is not None:
        return keys.private(known[chosen]) if chosen in known else signing.load_private(Path(chosen))
    fitting = [key for key in known.values() if key.public == public]
    if fitting:
        return keys.private(fitting[0])
    earlier = home.keys_folder / "publisher.key"  # where skep kept a key before it used the keyring
    return signing.load_private(earlier) if earlier.exists() else keys.private(keys.find(DEFAULT_NAME))


def kept_invitations(home: Home) -> KeptInvitations:
    from skep.adapters.invitations import KeptInvitations

    return KeptInvitations(secrets(home), lambda: identity(home).peer_id)


def check_invitation(home: Home, project: Project) -> None:
    """Raises InvitationError where the project wants an invitation and this computer has no good one, SecretsError."""
    kept_invitations(home).present(project)


def accept_invitation(home: Home, path: Path, *, in_file: bool) -> Project:
    """Check the invitation in a file and keep it; the project it is to. Raises InvitationError, SecretsError."""
    from skep.adapters import invitations

    raw = invitations.read_file(path)
    wanted = invitation.read(raw, invitations.verify).project
    try:
        project = catalogue(home).find(wanted)
    except BadInput:
        raise InvitationError(
            f'The invitation is to a project that is not known here, "{wanted}".', "Add the project first."
        ) from None
    kept_invitations(home).accept(raw, parse(project.manifest.encode()), in_file=in_file)
    return project


def make_key(path: Path) -> tuple[bytes, str]:
    """A new publisher's key at `path`: the public key, raw and as a manifest names it. Raises BadInput."""
    from skep.adapters import signing

    public = signing.make_key(path)
    return public, signing.key_text(public)


def sign(home: Home, path: Path, chosen: str | None) -> Path:
    """Sign a manifest with the key called `chosen`, or in that file; the signature file. Raises BadInput, SecretsError."""
    from skep.adapters import signing

    private = private_key(home, chosen, signing.publisher_of(path))
    return signing.sign_with(path, private, chosen or "the key kept here")


def look(home: Home) -> Snapshot:
    """What an engine in this home would start from now, its sensors read once. Raises SkepError."""
    from skep import senses, sensing
    from skep.adapters.pause_file import PauseFile

    home.create()
    values, (paused, until) = settings(home).load(), PauseFile(home.pause_file).load()
    conditions = Conditions(graphical=senses.is_graphical()).with_seen(sensing.look(all_sensors(home), clock()))
    with ledger(home) as kept:
        reactions = kept.reactions(KEPT)
    pause = PauseState(until) if paused else None
    now, zone = clock().wall(), clock().zone()
    return session.initial(values, pause, now, zone=zone, conditions=conditions, reactions=reactions)


@contextmanager
def ledger(home: Home) -> Iterator[Ledger]:
    """The ledger for one look from the calling thread. Raises StorageError."""
    from skep.adapters.ledger_sqlite import SqliteLedger

    home.create()
    opened = SqliteLedger(home.ledger_file)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def hold(home: Home) -> Iterator[None]:
    """Make the home ours alone meanwhile, and collect its log. Raises AlreadyRunning, StorageError."""
    from skep.adapters.logs import collect_logs
    from skep.adapters.process_tree import sweep_leftovers
    from skep.adapters.single_instance import InstanceLock

    home.create()
    with InstanceLock(home.lock_file), collect_logs(home.logs_folder, "skep"):
        sweep_leftovers(_registry(home))
        yield


@contextmanager
def build(
    home: Home,
    join: m.Join | None = None,
    *,
    show: Callable[[str], None] | None = None,
    notify: Callable[[Problem], None] | None = None,
) -> Iterator[Parts]:
    """An engine that is not started yet, and other terminals' way to it. Hold the home first.

    With `join` it is told beforehand whether that can listen; without, the engine may stay idle, and what it joins later
    is looked at then. `show` is as in `serve`, `notify` as in Engine. Raises SettingsError, BadInput when the port that
    the settings name is taken.
    """
    from skep import senses
    from skep.adapters.ledger_sqlite import SqliteLedger
    from skep.adapters.pause_file import PauseFile
    from skep.adapters.shards_http import HttpShards
    from skep.adapters.tcp_port import check_free
    from skep.engine import Engine

    values = settings(home).load()
    if join is not None:
        check_free(listen_host(addresses(join.project, join.seeds)), int(values["network.port"]))
    shards = HttpShards(
        home.cache_folder,
        limit_bytes=_bytes(values["disk.cache_gb"]),
        keep_free_bytes=_bytes(values["disk.keep_free_gb"]),
        proxy=lambda: _proxy(engine.snapshot.settings),
    )

    def make_worker(post: Post) -> WorkerProcess:
        from skep.adapters.logs import open_log
        from skep.adapters.worker_process import WorkerProcess

        return WorkerProcess(
            post,
            registry_file=_registry(home),
            make_run_folder=make_run_folder,
            stderr_log=open_log(home.logs_folder, "worker"),
        )

    engine = Engine(
        clock=SystemClock(),
        make_worker=make_worker,
        open_ledger=lambda: SqliteLedger(home.ledger_file),
        shards=shards,
        settings=settings(home),
        pauses=PauseFile(home.pause_file),
        identity=identity(home),
        listen_host=_listen_host_of,
        invitations=kept_invitations(home),
        sensors=senses.for_engine(home, lambda: engine),
        graphical=senses.is_graphical(),
        notify=notify,
    )
    with senses.power_capped(home, engine), serve(home, engine, show):
        yield Parts(engine, SystemClock())


def _registry(home: Home) -> Path:
    return home.root / "worker.json"


def _bytes(gigabytes: Value) -> int:
    return int(float(gigabytes) * GB)


def addresses(project: Project, seeds: Sequence[str]) -> Sequence[str]:
    """Every address the swarm may be reached at."""
    return (*parse(project.manifest.encode()).peers, *seeds)


def _listen_host_of(wanted: m.StartWorker) -> str:
    """Raises BadInput when the port that the settings name is taken."""
    from skep.adapters.tcp_port import check_free

    host = listen_host(addresses(wanted.project, wanted.seeds))
    check_free(host, wanted.port)
    return host


def listen_host(peers: Sequence[str]) -> str:
    """Where to listen: a swarm that lives on this computer's loopback alone need not be open to the network."""
    if peers and all(_LOOPBACK.match(peer) for peer in peers):
        return "127.0.0.1"
    return "0.0.0.0"  # noqa: S104 - other peers connect to us; that is how averaging works


@contextmanager
def serve(home: Home, engine: Engine, show: Callable[[str], None] | None = None) -> Iterator[None]:
    """Let other terminals ask and command the engine meanwhile.

    `show` raises the front end's window, where it has one, with a link to look at or "".
    """

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if show is not None and request.get("verb") == "show":
            show(links.shown(request.get("link")))
            return {"ok": True}
        said, commands = control.decide(request, engine.snapshot, clock().wall(), clock().zone())
        for command in commands:
            engine.post(command)
        return said

    with ControlServer(home.control_file, answer):
        yield


def ask(home: Home, request: dict[str, Any]) -> dict[str, Any]:
    """The running skep's answer. Raises NotRunning, or what the answer says went wrong."""
    return control.result(control_socket.ask(home.control_file, request))


def change_settings(home: Home, values: dict[str, Value]) -> None:
    """Let the running skep set and save these, or save them where none runs. Raises SkepError."""
    try:
        ask(home, {"verb": "settings", "values": values})
    except NotRunning:
        home.create()
        settings(home).save(values)
