"""The diagnostic report: versions, settings, devices, readings, connections to the seeds, and the last log lines.

One redacted text; it is neither stored nor sent. A part that fails is reported as such and does not affect the others.
"""

from __future__ import annotations

import getpass
import logging
import platform
import shutil
import socket
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import skep
from skep import bootstrap
from skep.adapters.storage.files import atomic_write, os_errors
from skep.adapters.storage.paths import Home
from skep.core.errors import SkepError
from skep.core.policy.conditions import Source
from skep.core.project.manifest import VerifiedProject
from skep.core.redact import Section, redacted_report
from skep.core.session.snapshot import Snapshot
from skep.core.settings import settings as declared
from skep.core.text import Text
from skep.engine import sensing
from skep.language.translator import ENGLISH, Translator, translator

PACKAGES: Final = ("torch", "hivemind", "transformers", "PySide6", "cryptography", "psutil")
LOG_LINES: Final = 150
"""Number of last lines of each log."""
LOG_BYTES: Final = 64 * 1024
DIAL_SECONDS: Final = 3.0
MOST_ADDRESSES: Final = 8

log = logging.getLogger("skep.services.diagnosis")


def say(message: Text) -> str:
    """`message` in English, independent of the language setting, for support."""
    return _english().say(message)


@cache
def _english() -> Translator:
    return translator(ENGLISH)


def diagnose(home: Home, snapshot: Snapshot | None = None) -> str:
    """The whole report as text; takes some seconds. `snapshot` is the running engine's, None if none runs here."""
    made = f"Made {datetime.now(UTC):%Y-%m-%d %H:%M} UTC. Read it before you pass it on; it is plain text."
    parts: tuple[tuple[str, Callable[[], Sequence[str]]], ...] = (
        ("skep diagnostics", lambda: [made]),
        ("Versions", versions),
        ("State", lambda: _state(snapshot)),
        ("Settings", lambda: _settings(home)),
        ("Devices", _devices),
        ("Readings", lambda: _readings(home)),
        ("Disk", lambda: _disk(home)),
        ("Contributions", lambda: _contributions(home)),
        ("Projects and the way to them", lambda: _projects(home, snapshot)),
        *((f"Log: {path.name}", lambda path=path: _tail(path)) for path in sorted(home.logs_folder.glob("*.log"))),
    )
    return redacted_report([Section(title, _guarded(find)) for title, find in parts], str(Path.home()), names(home))


def keep(path: Path, text: str) -> None:
    """Write a text to a file that only this user may read. Raises StorageError."""
    with os_errors(Text("app.cannot_written", path=str(path)), Text("app.choose_another_place")):
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")  # a pipe or a terminal, such as /dev/stdout, is not replaced
        else:
            atomic_write(path, text.encode(), mode=0o600)


def names(home: Home) -> dict[str, str]:
    """Names that identify the user or this computer, and their replacements."""
    found = {str(home.root): "[skep's folder]", socket.gethostname(): "[this computer]"}
    with suppress(OSError, KeyError):  # a user without a name
        found[getpass.getuser()] = "[user]"
    return {name: mask for name, mask in found.items() if name}


def _guarded(find: Callable[[], Sequence[str]]) -> Sequence[str]:
    try:
        return find()
    except SkepError as error:
        return [say(error.title)]
    except Exception as error:
        log.warning("a part of the diagnostics failed", exc_info=True)
        return [f"could not be found out ({type(error).__name__})"]


def versions() -> Sequence[str]:
    """The versions of skep, Python, the system and the main packages; the packages are not imported."""
    return [
        f"skep {skep.__version__}",
        f"Python {platform.python_version()} ({'frozen' if getattr(sys, 'frozen', False) else 'source'})",
        f"{platform.system()} {platform.release()} {platform.machine()}",
        *(f"{name} {_version(name)}" for name in PACKAGES),
    ]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _state(snapshot: Snapshot | None) -> Sequence[str]:
    if snapshot is None:
        return ["No skep runs in this home."]
    problem = snapshot.problem
    return [
        f"phase {snapshot.phase}, share {snapshot.allowance.share:.2f}: {say(snapshot.allowance.reason)}",
        f"device {snapshot.device_names or 'not chosen yet'}, failures in a row {snapshot.failures}",
        f"problem: {say(problem.title)} {say(problem.hint)}" if problem is not None else "no problem",
        *(f"holds: {each.rule} {each.allowance.share:.2f} {say(each.allowance.reason)}" for each in snapshot.holding),
    ]


def _settings(home: Home) -> Sequence[str]:
    values = bootstrap.settings(home).load()
    changed = [key for key, value in values.items() if value != declared.DEFAULTS.get(key)]
    return [f"{key} = {values[key]!r}" for key in changed] or ["all as they come"]


def _devices() -> Sequence[str]:
    return [
        f"{each.kind}:{each.index} {each.name}, memory {each.memory_free} of {each.memory_total} B free, "
        f"driver {each.driver}, {each.temperature} °C, {each.power} W, {say(each.unusable) if each.unusable else 'usable'}"
        for each in bootstrap.devices().list()
    ]


def _readings(home: Home) -> Sequence[str]:
    seen = sensing.look(bootstrap.all_sensors(home), bootstrap.clock())
    return [
        f"{condition}: {reading.value if reading.source is Source.ANSWERS else reading.source} ({say(reading.note)})"
        for condition, reading in seen.items()
    ]


def _disk(home: Home) -> Sequence[str]:
    # a home is made when something is first kept in it
    used = shutil.disk_usage(next(folder for folder in (home.root, *home.root.parents) if folder.exists()))
    return [f"{used.free / bootstrap.GB:.1f} GB free of {used.total / bootstrap.GB:.1f} GB"]


def _contributions(home: Home) -> Sequence[str]:
    with bootstrap.ledger(home) as ledger:
        totals, lost = ledger.totals(), ledger.lost_reasons()
    states = (("pending", totals.pending), ("confirmed", totals.confirmed), ("lost", totals.lost))
    return [
        *(f"{name}: {tally.samples} samples in {tally.contributions}" for name, tally in states),
        *(f"lost because {say(reason)}: {tally.contributions}" for reason, tally in lost.items()),
    ]


# --- connections to the seeds and the data


def _projects(home: Home, snapshot: Snapshot | None) -> Sequence[str]:
    active = snapshot.project if snapshot is not None else None
    # the project in the answer of another process lacks the manifest
    projects = [active] if isinstance(active, VerifiedProject) else list(bootstrap.catalogue(home).projects())
    seeds = snapshot.seeds if snapshot is not None else ()
    return [line for project in projects for line in _project(project, seeds)]


def _project(project: VerifiedProject, seeds: Sequence[str]) -> list[str]:
    plan = project.manifest
    addresses = list(dict.fromkeys((*plan.peers, *seeds)))[:MOST_ADDRESSES]
    with ThreadPoolExecutor(MOST_ADDRESSES + 1) as pool:
        data = pool.submit(reached_server, plan.data.index)
        answers = list(pool.map(reached_peer, addresses))
    return [
        f"{project.id} revision {project.revision}, key {project.fingerprint}",
        *(f"  seed {number}: {answer}" for number, answer in enumerate(answers, start=1)),
        f"  data: {data.result()}",
    ]


def reached_peer(address: str) -> str:
    """Whether the port of a multiaddress answers, as text without the address."""
    match address.split("/"):
        case ["", kind, host, "tcp", port, *_]:
            return f"{kind}, tcp {port}: {_dialled(host, int(port))}"
        case ["", kind, _, transport, port, *_]:
            return f"{kind}, {transport} {port}: not tried, since only a peer can"
        case _:
            return "no address that skep knows"


def reached_server(url: str) -> str:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}, port {port}: {_dialled(parts.hostname or '', port)}"


def _dialled(host: str, port: int) -> str:
    begun = time.monotonic()
    try:
        socket.create_connection((host, port), DIAL_SECONDS).close()
    except TimeoutError:
        return f"no answer within {DIAL_SECONDS:.0f} s"
    except (socket.gaierror, UnicodeError):  # the latter for a name that no name server can have
        return "its name is not known to the name server"
    except OSError as error:
        return error.strerror or type(error).__name__
    return f"answers, in {(time.monotonic() - begun) * 1000:.0f} ms"


# --- logs


def _tail(path: Path) -> Sequence[str]:
    with path.open("rb") as opened:
        opened.seek(max(0, path.stat().st_size - LOG_BYTES))
        return opened.read(LOG_BYTES).decode(errors="replace").splitlines()[-LOG_LINES:]
