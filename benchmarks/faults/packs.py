"""The part `packs`: the built app fetches a compute pack to join the practice swarm, and is interrupted at random moments.

Its network is cut, it is killed, its disk is full: in each run once, in turns, while the pack is fetched, laid down or
tried. Then the app goes on by itself, or is asked again, as a person would, until the pack is used, and in some runs until
a contribution is confirmed. It runs in a bare Debian, 12 and 13 in turns, in which its .deb was installed, in a network
namespace and with its home on a small disk of its own (as root), so that neither harms anything else.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from report import Row

from faults.bare_debian import RELEASES, Debian, installed
from faults.disk import own_mounts
from faults.pack_app import LOOK_SECONDS, REPOSITORY, App, app, check_build, new_home
from faults.pack_server import PORT, PackServer, pack_server
from faults.places import own_folder
from faults.rows import Measured, Part
from network_namespaces import run
from screen_reader import ScreenReader, screen_reader
from small_disks import filled
from tray_desktops import Desktop, desktop

CLONE_NEWNET = 0x40000000
DISK_GB = 2
PACK_BYTES = 1.07e9
"""What a whole fetch of the pack `cpu` writes: its wheels, and the files that are laid down."""
WHEEL_BYTES = 0.3e9
CUT_SECONDS = (3.0, 12.0, 45.0)
"""In turn: too short for a timeout, longer than one, and longer than all attempts."""
TRIED_SECONDS = 4.0
"""A trial is interrupted within this time."""
WITHIN = 900.0
"""Seconds within which a very busy computer fetches the pack and has a contribution confirmed."""
CONFIRMED_EACH = 5
"""In each fifth run a contribution is confirmed, for which a busy computer needs minutes."""
SEED = 17
CABLE_OUT = f"""
table inet cable {{
  chain out {{
    type filter hook output priority 0;
    tcp dport {PORT} drop
    tcp sport {PORT} drop
  }}
}}
"""


@dataclass
class Place:
    disk: Path
    debian: Debian
    server: PackServer
    screen: Desktop
    reader: ScreenReader


def measure(numbers: range) -> Iterator[Measured]:
    check_build()
    own_mounts()
    runs = sorted({number // len(KINDS) for number in numbers})
    systems = {whole: list(RELEASES)[whole % len(RELEASES)] for whole in runs}
    with contextlib.ExitStack() as removing, own_folder() as folder, contextlib.ExitStack() as stack:
        debians = {
            name: removing.enter_context(installed(RELEASES[name], REPOSITORY.parent / f"{RELEASES[name]}.log"))
            for name in sorted(set(systems.values()))
        }
        own_network()  # not before: what the .deb depends on is fetched
        server, screen = stack.enter_context(pack_server(REPOSITORY)), stack.enter_context(desktop())
        sockets = {"XDG_RUNTIME_DIR": str(folder / "runtime")}
        Path(sockets["XDG_RUNTIME_DIR"]).mkdir(mode=0o700)
        reader = stack.enter_context(screen_reader(screen.environ | sockets))
        for whole, name in systems.items():
            place = Place(folder / "disk", debians[name], server, screen, reader)
            facts = {"system": name, "build": check_build(debians[name].programs)}
            with disk(place.disk, folder / "disk.img"):
                for row in interrupted(place, whole):
                    if row["number"] in numbers:
                        said = [each.replace("\u200b", "").replace(str(folder), "FOLDER") for each in row["said"]]
                        yield row | {"said": said} | facts


def own_network() -> None:
    """What this process and its children reach is only themselves. Raises RuntimeError when that cannot be had."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise RuntimeError(f"there is no network to cut ({os.strerror(ctypes.get_errno())}): it takes root")
    run("ip", "link", "set", "lo", "up")
    # screens of other networks have the same numbers, and their sockets are files too
    Path("/tmp/.X11-unix").mkdir(mode=0o1777, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "mode=1777", "none", "/tmp/.X11-unix")


@contextlib.contextmanager
def disk(folder: Path, image: Path) -> Iterator[None]:
    """A disk of its own at `folder`, in a sparse file."""
    folder.mkdir(exist_ok=True)
    with image.open("wb") as file:
        file.truncate(DISK_GB << 30)
    try:
        run("mkfs.ext4", "-q", "-m", "0", str(image))
        run("mount", "-o", "loop", str(image), str(folder))
        try:
            yield
        finally:
            run("umount", "--lazy", str(folder))
    finally:
        image.unlink()


# --- one run


def interrupted(place: Place, number: int) -> list[Measured]:
    """The rows of one run, with each kind of interruption once."""
    chance = random.Random(f"{SEED} {number}")
    kinds = chance.sample(sorted(KINDS), len(KINDS))
    home = new_home(place.disk / "home")
    place.server.packs = home.packs_folder
    place.server.asked.clear()
    rows: list[Measured] = []
    with app(place.debian, home, place.screen, place.reader) as one:
        for turn, kind in enumerate(kinds):
            begun, stage = wait_for_a_moment(place, one, chance), one.stage()
            row = {"number": number * len(KINDS) + turn, "kind": kind, "stage": stage, "mb": round(begun / 1e6)}
            asked = len(place.server.asked)
            rows.append(row | KINDS[kind](place, one, CUT_SECONDS[number % len(CUT_SECONDS)]) | go_on(one))
            rows[-1]["asked"] = asked
        one.until(lambda: one.store.current is not None, WITHIN)
        if is_confirmed := number % CONFIRMED_EACH == 0:
            one.until(one.confirmed, WITHIN)
        whole = one.broken()
    for row, until in zip(rows, [*(each["asked"] for each in rows[1:]), None], strict=True):
        later = place.server.asked[row.pop("asked") : until]
        row["twice_verified"] = sum(each.again for each in later if each.verified)
        row["twice_come"] = sum(each.again for each in later if not each.verified)
        row["broken"] = row["broken"] + whole
    sizes = {each.sha256: each.size for each in place.server.asked}
    rows[-1] |= {
        "sent_mb": round(sum(each.sent for each in place.server.asked) / 1e6, 1),
        "pack_mb": round(sum(sizes.values()) / 1e6, 1),
        "confirmed": is_confirmed,
    }
    return rows


def wait_for_a_moment(place: Place, one: App, chance: random.Random) -> float:
    """Wait until some byte of all that are written, or for a moment of the trial; returns the bytes on the disk."""
    written, trial = used(place.disk), chance.random() * TRIED_SECONDS
    # two of three moments are among the wheels that are still to come, which are few of the bytes
    last = WHEEL_BYTES if written < WHEEL_BYTES and chance.random() < 2 / 3 else PACK_BYTES
    until = chance.uniform(written, max(written, last))
    deadline = time.monotonic() + WITHIN
    while (written := used(place.disk)) < until and one.store.current is None:
        if one.process.poll() is not None or time.monotonic() > deadline:
            raise TimeoutError(f"the pack is not got: {one.sentences()}")
        if (one.store.root / "next").is_symlink() and one.stage() == "trying":
            time.sleep(trial)
            break
        time.sleep(LOOK_SECONDS)
    return written


def used(folder: Path) -> float:
    return float(shutil.disk_usage(folder).used)


# --- interruptions: each returns what the app showed, files that were broken, processes that were left, seconds


def cut(_place: Place, one: App, seconds: float) -> Measured:
    """Nothing between the app and the server arrives for some seconds, and nobody is told."""
    run("nft", "-f", "-", given=CABLE_OUT)
    try:
        said = watched(one, seconds)
    finally:
        run("nft", "delete", "table", "inet", "cable")
    return {"said": said, "broken": one.broken() if one.is_idle else [], "left": [], "seconds": seconds}


def kill(_place: Place, one: App, _seconds: float) -> Measured:
    left = one.kill()
    return {"said": [], "broken": one.broken(), "left": left, "seconds": 0.0}


def fill(place: Place, one: App, seconds: float) -> Measured:
    """Not a byte is free for some seconds, or until that was said."""
    free = shutil.disk_usage(place.disk).free
    large = place.disk / "large"
    subprocess.run(["fallocate", "-l", str(max(4096, free - (1 << 20))), large], check=False, capture_output=True)
    try:
        with filled(place.disk):
            said = watched(one, seconds)
    finally:
        large.unlink()
    return {"said": said, "broken": one.broken() if one.is_idle else [], "left": [], "seconds": seconds}


KINDS: dict[str, Callable[[Place, App, float], Measured]] = {
    "network cut": cut,
    "kill -9": kill,
    "full disk": fill,
}


def watched(one: App, seconds: float) -> list[str]:
    """What the page says at the end of that time, or when the join has failed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not one.is_idle:
        time.sleep(LOOK_SECONDS)
    return one.sentences()


def go_on(one: App) -> Measured:
    """Start the app again if it has ended, ask again if the join has failed; else it goes on by itself."""
    if (code := one.process.poll()) is not None:
        one.start()
        return {"on": "started again", "code": code}
    if one.is_idle and one.store.current is None:
        one.join()
        return {"on": "asked again"}
    return {"on": "by itself"}


def judged(rows: list[Measured]) -> list[Row]:
    def total(name: str) -> float:
        return float(sum(row[name] if isinstance(row[name], int) else len(row[name]) for row in rows))

    of = [0.0] * len(rows)
    crashed = sum(row["on"] == "started again" and row["kind"] != "kill -9" for row in rows)
    mute = sum(row["on"] == "asked again" and not row["said"] for row in rows)
    ended = [row["sent_mb"] - row["pack_mb"] for row in rows if "confirmed" in row]
    confirmed = [1.0 for row in rows if row.get("confirmed")]
    made = [
        Row("broken files of packs", total("broken"), "", 0, of),
        Row("verified bytes fetched twice", total("twice_verified"), "B", 0, of),
        Row("other bytes on disk fetched twice", total("twice_come"), "B", 0, of),
        Row("ended without a sentence", mute, "", 0, of),
        Row("the app ended without being killed", crashed, "", 0, of),
        Row("processes left 5 s after a kill", total("left"), "", 0, of),
        Row("runs that ended with the whole pack in use", len(ended), "", None, ended),
        Row("of them with a confirmed contribution", len(confirmed), "", None, confirmed),
    ]
    if ended:
        made.append(Row("sent and not arrived, most in a run", max(ended), "MB", None, ended))
    counts = Counter(f"{row['kind']} while {row['stage']}" for row in rows)
    counts.update(f"interrupted in {row['system']}" for row in rows if "system" in row)
    return made + [Row(name, n, "", None, [0.0] * n) for name, n in sorted(counts.items())]


PART = Part("packs", "a compute pack's way onto the computer is interrupted", 3 * 10, measure, judged)
