"""The part `disk`: a volunteer's disk, or a host's, is full or read-only at each kind of write; each file is damaged.

The home is on a small disk in a mount namespace of this process (as root), so that nothing stays mounted.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from peers import SkepPeer, Swarm
from report import Row

from damages import emptied, halved, random_bytes
from faults.disk_homes import (
    TRAINED_SECONDS,
    VERB_SECONDS,
    Place,
    Said,
    facts,
    interrupted,
    missing,
    recorded,
    row,
    run,
    start,
    traces,
)
from faults.places import own_folder, publish
from faults.rows import Measured, Part, attempted
from faults.soak import MODEL, SYNC
from free_ports import free_port
from skep.adapters.storage.paths import Home
from skep.adapters.storage.settings_file import PauseFile
from skep.host.practice.swarm import LOOPBACK, PracticeFolder, prepare_data
from small_disks import filled, read_only, small_disk
from terminals import Running, is_event, skep, wait_until

KILOBYTES = 256 * 1024
HOSTED_SHARE = 0.15
"""Of each trainer of a host, whose epochs are short."""
CLONE_NEWNS = 0x00020000
A_PAGE_LEFT = "full but for a page"
"""Then a small file is written as if there were room."""
HINDRANCES: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "full": filled,
    A_PAGE_LEFT: partial(filled, left=4096),
    "read-only": read_only,
}
VERBS: dict[str, tuple[str, ...]] = {
    "settings": ("settings", "set", "compute.idle_minutes", "7"),
    "identity": ("identity", "--new"),
    "publisher's key": ("key", "new", "--name", "mine", "--unencrypted-file"),
    "project": ("project", "add", "MANIFEST"),
    "diagnostics": ("diagnostics", "HOME/diagnostics.txt"),
}
"""Kinds of writes by one verb; MANIFEST and HOME stand for paths."""
CHANGES = {"settings": "settings", "identity": "identity", "project": "projects"}
"""The fact that a verb changes when it is done."""
FILES = (
    "settings.toml",
    "settings.last.toml",
    "ledger.sqlite",
    "identities/*.key",
    "projects/*/project.json",
    "pause.json",
    "control.json",
    "worker.json",
    "lock",
    "logs/*.log",
    "peers/*.json",
    "snapshots/*/*.safetensors",
    "cache/*.safetensors",
)
DAMAGES: dict[str, Callable[[Path], None]] = {"emptied": emptied, "halved": halved, "random bytes": random_bytes}


def measure(numbers: range) -> Iterator[Measured]:
    own_mounts()
    with own_folder() as folder, contextlib.ExitStack() as ending:
        place = Place(folder, ending)
        for number in numbers:
            with small_disk(place.disk, KILOBYTES):
                case = number % len(CASES)
                measured = attempted({"number": number, "case": case}, CASES[case], place)
            said = [each.replace(str(folder), "FOLDER") for each in measured.get("said", ())]
            yield measured | {"said": said}


def own_mounts() -> None:
    """What this process mounts, only it and its children see. Raises RuntimeError when that cannot be had."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        raise RuntimeError(f"a small disk cannot be mounted ({os.strerror(ctypes.get_errno())}): it takes root")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def by_verb(name: str, how: str) -> Callable[[Place], Measured]:
    def measured(place: Place) -> Measured:
        home, manifest = place.copied(place.used), place.manifest
        verb = [word.replace("MANIFEST", str(manifest)).replace("HOME", str(home.root)) for word in VERBS[name]]
        before = facts(home)
        with HINDRANCES[how](place.disk):
            said = run(home, *verb)
        done = said.code == 0 and how == A_PAGE_LEFT
        lost = [each for each in missing(before, facts(home)) if not (done and each == CHANGES.get(name))]
        return row(name, how, said, lost, recovered=done or (bool(said.code) and run(home, *verb).code == 0))

    return measured


def at_the_start(how: str) -> Callable[[Place], Measured]:
    """A home that has trained starts: on a full disk it goes on, and what it says is not kept is kept when there is room."""

    def measured(place: Place) -> Measured:
        home = place.copied(place.trained)
        before, shown = facts(home), set[str]()

        def trains(running: Running) -> None:
            shown.add(running.wait_for(is_event("contribution", state="confirmed"), TRAINED_SECONDS)["id"])
            (place.disk / "ballast").write_bytes(b"")
            wait_until(lambda: shown <= recorded(home), VERB_SECONDS)

        with HINDRANCES[how](place.disk):
            said = start(home, place.link, trains)
        recovered = not said.code or start(home, place.link).code is None
        return row("start", how, said, missing(before, facts(home)), recovered=recovered)

    return measured


def first_start(how: str) -> Callable[[Place], Measured]:
    def measured(place: Place) -> Measured:
        home, link = Home(place.disk / "new"), place.link
        with HINDRANCES[how](place.disk):
            said = start(home, link)
        begun = said.code is None and how == A_PAGE_LEFT
        recovered = begun or (bool(said.code) and run(home, "identity").code == 0)
        return row("first start", how, said, [], recovered=recovered)

    return measured


def while_training(place: Place) -> Measured:
    """The disk becomes full while it trains: it trains on, and all that was shown is in the ledger when there is room."""
    home = place.copied(place.trained)
    before, recovered = facts(home), []

    def trains(running: Running) -> None:
        running.wait_for(is_event("contribution", state="confirmed"), TRAINED_SECONDS)
        told = len(ids(running))
        with filled(place.disk):
            skep(home.root, *VERBS["settings"], within=VERB_SECONDS)
            skep(home.root, "pause", "--for", "1s", within=VERB_SECONDS)
            running.wait_for(lambda _: len(ids(running)) > told + 1, TRAINED_SECONDS)
        wait_until(lambda: ids(running) <= recorded(home), VERB_SECONDS)
        recovered.append(True)

    said = start(home, place.link, trains)
    lost = [each for each in missing(before, facts(home)) if each != "settings"]
    return row("while it trains", "full", said, lost, recovered=bool(recovered) and bool(said.titles))


def ids(running: Running) -> set[str]:
    return {event["id"] for event in running.named("contribution") if event["state"] == "confirmed"}


def while_data_comes(place: Place) -> Measured:
    """A shard is wanted while the disk is full: that is said and waited for, and it trains on when there is room."""
    home = place.copied(place.trained)
    before, recovered = facts(home), []
    for shard in (home.root / "cache").glob("*.safetensors"):
        shard.unlink()

    def trains(running: Running) -> None:
        with filled(place.disk):
            running.wait_for(lambda event: "training data" in event.get("title", ""), TRAINED_SECONDS)
        told = len(ids(running))
        running.wait_for(lambda _: len(ids(running)) > told, TRAINED_SECONDS)
        wait_until(lambda: ids(running) <= recorded(home), VERB_SECONDS)
        recovered.append(True)

    said = start(home, place.link, trains)
    return row("a shard comes", "full", said, missing(before, facts(home)), recovered=bool(recovered))


def hosting(place: Place) -> Measured:
    """The disk of a host becomes full: it keeps its checkpoints, says that it adds none, and does when there is room."""
    home, folder, web = Home(place.disk / "home"), PracticeFolder(place.disk.with_name("hosted")), free_port()
    folder.root.mkdir(exist_ok=True)
    index, sha256 = prepare_data(folder)
    with contextlib.suppress(FileExistsError):
        (folder.root / "shards").symlink_to(folder.served)
    _, named = skep(home.root, "host", "--address", "--port", str(free_port()), "--announce", LOOPBACK)
    changes = {"model": MODEL, "sync": SYNC}
    _, manifest = publish(folder, named["addresses"], f"http://{LOOPBACK}:{web}", sha256, changes)
    shared = Swarm(folder.root, manifest, index, named["addresses"])
    options = ["--data", str(folder.served), "--web", str(web), "--every", "1"]
    host = Running(home.root, "host", str(folder.manifest), *options)
    try:
        host.wait_for(is_event("started"), VERB_SECONDS)
        with contextlib.ExitStack() as trainers:
            for _ in range(2):
                trainers.callback(SkepPeer(shared, HOSTED_SHARE).kill)
            host.wait_for(is_event("checkpoint"), TRAINED_SECONDS)
            with filled(place.disk):
                before = checkpoints(home)
                host.wait_for(lambda event: "No space left" in event.get("title", ""), TRAINED_SECONDS)
                kept = checkpoints(home)
            told = len(host.named("checkpoint"))
            host.wait_for(lambda _: len(host.named("checkpoint")) > told, TRAINED_SECONDS)
    finally:
        error = interrupted(host)
    said = Said(None, [each["title"] for each in host.named("problem")], traces(error))
    lost = [name for name, raw in before.items() if kept.get(name) != raw]
    return row("checkpoints of a host", "full", said, lost, recovered=bool(before))


def checkpoints(home: Home) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in home.root.glob("host/checkpoints/*/epoch-*.safetensors")}


def damaged(pattern: str, how: str) -> Callable[[Place], Measured]:
    def measured(place: Place) -> Measured:
        home = place.copied(place.trained)
        if pattern == "pause.json":
            PauseFile(home.pause_file).save(paused=True, until=None)
        before, files = facts(home), list(home.root.glob(pattern))
        assert files, f"training left no {pattern}"
        for file in files:
            DAMAGES[how](file)
        said = start(home, place.link, trains_unless_paused)
        kept = said.code is None or way_on(home, place, pattern)
        return row(pattern, how, said, missing(before, facts(home)), recovered=kept)

    return measured


def trains_unless_paused(running: Running) -> None:
    """Raises AssertionError."""
    if running.named("joined"):
        running.wait_for(is_event("contribution", state="confirmed"), TRAINED_SECONDS)


def way_on(home: Home, place: Place, pattern: str) -> bool:
    """Do what the refusal says: put back a backup of the key; remove the project and add it again."""
    if pattern.startswith("identities/"):
        shutil.copytree(place.trained / "identities", home.identities_folder, dirs_exist_ok=True)
        return start(home, place.link, trains_unless_paused).code is None
    if pattern.startswith("projects/"):
        shutil.rmtree(home.projects_folder)
        return run(home, "project", "add", place.link).code == 0
    return False


CASES: list[Callable[[Place], Measured]] = [
    *(by_verb(name, how) for name in VERBS for how in HINDRANCES),
    *(first_start(how) for how in HINDRANCES),
    *(at_the_start(how) for how in HINDRANCES),
    while_training,
    *(damaged(pattern, how) for pattern in FILES for how in DAMAGES),
    while_data_comes,
    hosting,
]


def judged(rows: list[Measured]) -> list[Row]:
    of = [0.0] * len(rows)
    return [
        Row("tracebacks", sum(each["traces"] for each in rows), "", 0, of),
        Row("lost or refused without a sentence", sum(each["silent"] for each in rows), "", 0, of),
        Row("not recovered", sum(not each["recovered"] for each in rows), "", 0, of),
        Row("kinds of writes and damages", len({(each["case"], each["how"]) for each in rows}), "", None, of),
    ]


PART = Part("disk", "a disk that is full or read-only, and damaged files", len(CASES), measure, judged)
