"""The checks of this computer: the running skep, home and disk, devices, keyring, and the clock by itself."""

from __future__ import annotations

import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from skep import bootstrap
from skep.adapters.net.tcp_port import check_free
from skep.adapters.process.programs import made_at
from skep.adapters.storage.secrets import KeyringSecrets
from skep.adapters.storage.shard_cache import free_bytes
from skep.core.device import ALL, Device, DeviceKind, chosen
from skep.core.errors import BadInput, InvitationError, SecretsError, StorageError
from skep.core.findings import Check, Finding, State
from skep.core.plain_text import plain
from skep.core.project import fit
from skep.core.project.needs import memory_needed
from skep.core.sandbox import Guard, Sandbox
from skep.core.session.phases import Phase
from skep.core.text import Text
from skep.services.doctor.case import Case
from skep.services.joining import check_invitation
from skep.services.protection import protection

KEYRING_SECONDS: Final = 10.0
SOON_FULL: Final = bootstrap.GB
"""Bytes; with less room than this, the next download may fill the disk."""


def running(case: Case) -> Iterator[Finding]:
    """Whether skep runs here, and its port if it does not."""
    seen = case.snapshot
    if seen is None:
        port = int(case.settings["network.port"])
        yield Finding(Check.RUNNING, State.OK, Text("doctor.not_running"))
        yield from _port(port)
    elif seen.problem is not None:
        yield Finding(Check.RUNNING, State.WARN, seen.problem.title, seen.problem.hint)
    elif seen.phase is Phase.IDLE or seen.project is None:
        yield Finding(Check.RUNNING, State.OK, Text("doctor.running_idle"))
    else:
        yield Finding(Check.RUNNING, State.OK, Text("doctor.running_in", title=plain(seen.project.title)))


def _port(port: int) -> Iterator[Finding]:
    try:
        check_free("0.0.0.0", port)  # noqa: S104 - as a worker listens
    except BadInput as error:
        yield Finding(Check.RUNNING, State.FAIL, error.title, error.hint, f"port {port}")


def home(case: Case) -> Iterator[Finding]:
    """Whether the home can be written to, and the disk has room for the project beside what shall stay free."""
    root = case.home.root
    try:
        case.home.create()
        with tempfile.NamedTemporaryFile(dir=root) as probe:
            probe.write(b"skep")
            probe.flush()
    except StorageError as error:
        yield Finding(Check.HOME, State.FAIL, error.title, error.hint)
    except OSError as error:
        reason = str(error.strerror or error)
        found = Text("doctor.home_read_only", root=str(root), reason=reason)
        yield Finding(Check.HOME, State.FAIL, found, Text("doctor.make_writable"))
    else:
        yield _disk(case, free_bytes(root))


def _disk(case: Case, free: int) -> Finding:
    keep = float(case.settings["disk.keep_free_gb"]) * bootstrap.GB
    needed = 0.0
    if case.project is not None:
        needed = max(0.0, memory_needed(case.project.manifest, ()).disk - _size(case.home.cache_folder))
    room = free - keep - needed
    sizes = {"free": free, "keep": round(keep), "needed": round(needed)}
    found = Text("doctor.disk_needs", **sizes) if needed else Text("doctor.disk", **sizes)
    if room < 0:
        return Finding(Check.HOME, State.FAIL, found, Text("doctor.free_space", setting="disk.keep_free_gb"))
    if room < SOON_FULL:
        return Finding(Check.HOME, State.WARN, found, Text("doctor.free_space", setting="disk.keep_free_gb"))
    return Finding(Check.HOME, State.OK, found)


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.glob("*")) if folder.is_dir() else 0


def devices(case: Case) -> Iterator[Finding]:
    """Each device, with the reason where one cannot be used."""
    found, wanted = bootstrap.devices().list(), str(case.settings["compute.device"])
    plan = case.project.manifest if case.project is not None else None
    usable = [each for each in found if each.unusable is None]
    for each in found:
        yield _device(each)
    for name in sorted(set(chosen(wanted)) - {"", ALL}):
        if not any(_is_meant(each, name) for each in usable):
            missing = Text("doctor.device_missing", wanted=name, setting="compute.device")
            yield Finding(Check.DEVICE, State.FAIL, missing, Text("doctor.choose_device"), name)
    if plan is not None and (lacking := fit.lacking(plan, found, wanted)):
        yield Finding(Check.DEVICE, State.FAIL, lacking, fit.HINT, wanted)


def _device(each: Device) -> Finding:
    if each.unusable is not None:
        found = Text("doctor.device_not", name=plain(each.name), why=each.unusable)
        return Finding(Check.DEVICE, State.WARN, found, subject=each.choice)
    return Finding(Check.DEVICE, State.OK, Text("doctor.device_can", name=plain(each.name)), subject=each.choice)


def _is_meant(device: Device, wanted: str) -> bool:
    return wanted == device.choice or (wanted == "cuda" and device.kind in (DeviceKind.NVIDIA, DeviceKind.AMD))


def keyring(case: Case) -> Iterator[Finding]:
    """The invitation to a project that needs one; otherwise whether the keyring stores a secret, unless none is needed."""
    if case.project is None:
        yield _ring(case)
    elif not case.project.manifest.by_invitation:
        yield Finding(Check.KEYRING, State.SKIPPED, Text("doctor.no_invitation_needed"))
    else:
        try:
            check_invitation(case.home, case.project)
        except (InvitationError, SecretsError) as error:
            yield Finding(Check.KEYRING, State.FAIL, error.title, error.hint)
        else:
            yield Finding(Check.KEYRING, State.OK, Text("doctor.invited"))


def _ring(case: Case) -> Finding:
    ring = KeyringSecrets(str(case.home.root), patience=KEYRING_SECONDS)
    try:
        ring.put("doctor", secrets.token_hex(8))
        ring.delete("doctor")
    except SecretsError as error:
        return Finding(Check.KEYRING, State.WARN, error.title, Text("doctor.keyring_only_for_invitations"))
    return Finding(Check.KEYRING, State.OK, Text("doctor.keyring_works"))


def sandbox(look: Callable[[], Sandbox | None] = protection, platform: str = sys.platform) -> Iterator[Finding]:
    """What this system keeps the training process from, guard by guard where something is missing."""
    if platform != "linux":
        yield Finding(Check.SANDBOX, State.SKIPPED, Text("doctor.sandbox_linux_only"))
        return
    found = look()
    if found is None:
        yield Finding(Check.SANDBOX, State.WARN, Text("doctor.sandbox_not_tried"), Text("doctor.sandbox_hint_log"))
        return
    for guard in (each for each in Guard if each in found.missing):
        lacking = Text("doctor.sandbox_lacks", guard=guard.label, why=plain(found.missing[guard]))
        newer, systemd = Text("doctor.sandbox_hint_newer"), Text("doctor.sandbox_hint_systemd")
        yield Finding(Check.SANDBOX, State.WARN, lacking, systemd if guard is Guard.MEMORY else newer, str(guard))
    if not found.missing:
        yield Finding(Check.SANDBOX, State.OK, Text("doctor.sandbox_whole"))


def clock(built: Callable[[], float] = made_at) -> Iterator[Finding]:
    """Whether the clock can be right: this skep was `built` (wall clock seconds) in the past."""
    if time.time() < built():
        yield Finding(Check.CLOCK, State.FAIL, Text("doctor.clock_before_skep"), Text("doctor.set_clock"))
    else:
        yield Finding(Check.CLOCK, State.OK, Text("doctor.clock_plausible"))
