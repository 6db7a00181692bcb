"""Builds the compute packs into dist/packs: wheels by their SHA-256, and the list that skep reads, for a repository.

    python packaging/packs.py [NAME …]            build locked packs, all of them without a name
    python packaging/packs.py --lock NAME …       choose the wheels anew and write packaging/packs/NAME.toml

Without --lock nothing is chosen: every wheel must be the one of the lock file, byte by byte, so that two builds have the
same hashes. A package that is published as source only is built here, reproducibly. Wheels come by pip, as it is
configured, and are kept in build/packs. pack_locks.py describes the lock files.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path, PurePosixPath
from typing import Final

import inventory
import licences
import msgspec
import pack_locks
from pack_locks import Lock, LockedWheel
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

from skep.core.packs import Pack, PackKind, PackList, Wheel, list_name, read_packs, wheel_target, write_packs

ROOT: Final = Path(__file__).resolve().parent.parent
TO: Final = ROOT / "dist" / "packs"
KEPT: Final = ROOT / "build" / "packs"
CONSTRAINTS: Final = ROOT / "constraints.txt"
UNUSED: Final = inventory.UNUSED_TREES | {
    "cuda-toolkit",  # has no files, and only names NVIDIA's other packages
    "triton",  # torch's compiler for GPUs, 200 MB; skep compiles no model
}
"""Requirements of the training stack that no pack has."""
EPOCH: Final = "315532800"
"""The time in wheels that are built here: 1980-01-01, the first that a ZIP file can have."""
ARCHITECTURES: Final = "import torch; print(torch._C._cuda_getArchFlags())"
_CAPABILITY: Final = re.compile(r"sm_(\d+)(\d)")
_GFX: Final = re.compile(r"gfx[0-9a-f]+")
_CHUNK: Final = 1 << 20


def main() -> int:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("names", nargs="*", metavar="NAME", help="a pack, as declared in packaging/packs")
    made.add_argument("--lock", action="store_true", help="choose the wheels anew, by the index")
    chosen = made.parse_args()
    if chosen.lock and not chosen.names:
        made.error("name the packs to lock")
    try:
        for name in chosen.names if chosen.lock else ():
            lock = make_lock(name)
            pack_locks.write(name, lock)
            say(f"{pack_locks.FOLDER / name}.toml: {len(lock.wheel)} wheels, {_mb(each.size for each in lock.wheel)}.")
        build(chosen.names, all_of_them=not chosen.names)
    except (OSError, ValueError, licences.Lacking) as error:
        sys.stderr.write(f"No packs were built: {error}.\n")
        return 2
    return 0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class Places:
    """The folder of the lock files, the file of pinned versions, the folder of fetched wheels, that of what is built."""

    locks: Path = pack_locks.FOLDER
    pins: Path = CONSTRAINTS
    kept: Path = KEPT
    to: Path = TO


# --- building


def build(names: Sequence[str], places: Places = Places(), *, all_of_them: bool = False) -> None:
    """Fetch what is missing and write the packs, replacing those built before. Raises ValueError, OSError.

    Packs that are not locked are refused, or left out with a word if all are asked for.
    """
    locks = {
        name: pack_locks.read(name, places.locks) for name in (pack_locks.names(places.locks) if all_of_them else names)
    }
    for name, lock in [*locks.items()]:
        if (reason := _reason_against(name, lock)) and not all_of_them:
            raise ValueError(reason)
        if reason:
            say(f"Left out: {reason}.")
            del locks[name]
    for name, lock in locks.items():
        fetch(name, lock, places.kept)
    building = places.to.with_name(f".{places.to.name}-building")
    shutil.rmtree(building, ignore_errors=True)
    (building / "wheels").mkdir(parents=True)
    try:
        lists: dict[str, list[Pack]] = defaultdict(list)
        for name, lock in locks.items():
            lists[list_name(*lock.for_whom)].append(_lay_out(name, lock, places.kept, building))
        for file, packs in lists.items():
            raw = write_packs(PackList(tuple(packs)))
            read_packs(raw)  # a list that skep would refuse is not published
            (building / file).write_bytes(raw)
        shutil.rmtree(places.to, ignore_errors=True)
        building.rename(places.to)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    for file, packs in lists.items():
        for pack in packs:
            say(f"{file}: {pack.name}, {pack.to_fetch / 1e6:.0f} MB to fetch, {pack.unpacked / 1e6:.0f} MB laid down.")


def _reason_against(name: str, lock: Lock) -> str:
    """Why a pack cannot be built, "" if it can."""
    if lock.wheel:
        return ""
    where = f" that reaches {lock.index}" if lock.index else ""
    return f"{name} is not locked: make packs PACK={name} LOCK=1 locks it on a {lock.system} computer{where}"


def _lay_out(name: str, lock: Lock, kept: Path, to: Path) -> Pack:
    """Link the wheels of a pack into `to`, and write its table. Raises ValueError."""
    wheels, rows = [], []
    for locked in lock.wheel:
        source = kept / locked.file
        with zipfile.ZipFile(source) as opened:
            unpacked = sum(member.file_size for member, path in members(opened) if inventory.is_kept(path))
            rows.append((locked, unpacked, _licence(opened)))
        wheel = Wheel(locked.name, locked.version, locked.file, locked.sha256, locked.size, unpacked)
        target = to / wheel_target(wheel)
        if not target.exists():
            os.link(source, target)
        wheels.append(wheel)
    (to / f"{name}.md").write_text(_table(rows), encoding="utf-8")
    return Pack(name, lock.kind, lock.torch, tuple(wheels), lock.driver, lock.cards, inventory.PRUNED, inventory.KEPT)


def members(opened: zipfile.ZipFile) -> Iterator[tuple[zipfile.ZipInfo, str]]:
    """The files of a wheel that may be laid down, with their paths in site-packages.

    Those in `NAME.data` are scripts and data outside of it, unless they are in purelib or platlib (Binary distribution
    format, packaging.python.org). Raises ValueError for a `.pth` file, which no pack may have.
    """
    for member in opened.infolist():
        path = PurePosixPath(member.filename)
        top, *below = path.parts
        if top.endswith(".data"):
            if below[:1] not in (["purelib"], ["platlib"]):
                continue
            path = PurePosixPath(*below[1:])
        if len(path.parts) == 1 and path.suffix == ".pth":
            raise ValueError(f"{opened.filename} has {path}, which a pack does not read")
        if not member.is_dir():
            yield member, path.as_posix()


def _described(opened: zipfile.ZipFile) -> Distribution:
    notes = next(name.split("/")[0] for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
    return PathDistribution(zipfile.Path(opened, f"{notes}/"))


def _licence(opened: zipfile.ZipFile) -> str:
    """The licence that a wheel names. Raises Lacking if its text is neither in the wheel nor here."""
    found = _described(opened)
    if not any(licences.is_text(PurePosixPath(path)) for _, path in members(opened) if inventory.is_kept(path)):
        licences.stand_ins(canonicalize_name(found.name))
    return licences.kind(found)


def _table(rows: Iterable[tuple[LockedWheel, int, str]]) -> str:
    found = sorted(rows, key=lambda row: -row[0].size)
    lines = ["| package | version | licence | MB to fetch | MB laid down |", "|---|---|---|---:|---:|"]
    lines += [
        f"| {each.name} | {each.version} | {licence} | {each.size / 1e6:.1f} | {unpacked / 1e6:.1f} |"
        for each, unpacked, licence in found
    ]
    totals = sum(each.size for each, _, _ in found), sum(unpacked for _, unpacked, _ in found)
    lines.append(f"| all of it | | | {totals[0] / 1e6:.1f} | {totals[1] / 1e6:.1f} |")
    return "\n".join(lines) + "\n"


def _mb(sizes: Iterable[int]) -> str:
    return f"{sum(sizes) / 1e6:.0f} MB"


# --- fetching


def fetch(name: str, lock: Lock, kept: Path) -> None:
    """Bring every wheel of a lock into `kept`, exactly as it is locked. Raises ValueError, OSError."""
    kept.mkdir(parents=True, exist_ok=True)
    missing = [wheel for wheel in lock.wheel if not _is_there(wheel, kept)]
    published = [wheel for wheel in missing if not wheel.source_sha256]
    if published:
        say(f"Fetching {len(published)} wheels of {name}, {_mb(wheel.size for wheel in published)} …")
        asked = [f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}" for wheel in published]
        _pip(name, lock, ["download", "--no-deps", "--only-binary=:all:"], asked, kept)
    for wheel in missing:
        if wheel.source_sha256:
            exact = f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.source_sha256}"
            _build_wheel(name, lock, exact, kept)
    if other := [wheel.file for wheel in lock.wheel if not _is_there(wheel, kept)]:
        raise ValueError(f"{', '.join(other)} of {name} cannot be had as locked: there is another file of that version")


def _is_there(wheel: LockedWheel, kept: Path) -> bool:
    file = kept / wheel.file
    return file.is_file() and file.stat().st_size == wheel.size and _sha256(file) == wheel.sha256


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _build_wheel(name: str, lock: Lock, asked: str, to: Path) -> None:
    """Build the wheel of a package that is published as source: the same bytes for the same source and setuptools."""
    wanted = ["wheel", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--no-binary=:all:"]
    _pip(name, lock, wanted, [asked], to)


def _pip(name: str, lock: Lock, command: Sequence[str], asked: Sequence[str], to: Path) -> None:
    """Run pip for a pack; its files go into `to`. It checks every file's hash if one is asked for. Raises ValueError with pip's own word."""
    index = ["--extra-index-url", lock.index] if lock.index else []
    place = "--wheel-dir" if command[0] == "wheel" else "--dest"
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join(asked) + "\n")
        file.flush()
        done = subprocess.run(
            [sys.executable, "-m", "pip", *command, "--quiet", *index, place, str(to), "--requirement", file.name],
            env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            umask=0o022,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        word = (said or ["it said nothing"])[0].removeprefix("ERROR: ").rstrip(".")
        raise ValueError(f"pip cannot fetch {name}{f', also not from {lock.index}' if lock.index else ''}: {word}")


# --- locking


def make_lock(name: str, places: Places = Places(), requirements: Sequence[str] | None = None) -> Lock:
    """The pack's declaration with all wheels, chosen by the index and the pinned versions. They are in `kept` afterwards.

    `requirements` are those of the training stack beside torch. Raises ValueError, OSError.
    """
    lock = pack_locks.read(name, places.locks)
    here = platform.system().lower(), platform.machine(), f"cp{sys.version_info.major}{sys.version_info.minor}"
    if here != lock.for_whom:
        raise ValueError(f"{name} is locked on {' '.join(lock.for_whom)}, and this is {' '.join(here)}")
    # `==` also takes builds of another kind, such as 2.13.0+cpu for 2.13.0
    asked = [*(_of_the_stack() if requirements is None else requirements), f"torch==={lock.torch}"]
    limits = ["--constraint", str(places.pins), "--no-build-isolation"]
    places.kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=places.kept) as folder:
        found = Path(folder)
        _pip(name, lock, ["download", "--find-links", str(places.kept), *limits], asked, found)
        wheels = [
            _locked(name, lock, file, found) for file in sorted(found.iterdir()) if _name(file) not in _left_out()
        ]
        for wheel in wheels:
            (found / wheel.file).replace(places.kept / wheel.file)
    wheels.sort(key=lambda wheel: wheel.name)
    made = msgspec.structs.replace(lock, wheel=tuple(wheels))
    return msgspec.structs.replace(made, cards=_cards(made, places.kept))


def _of_the_stack() -> list[str]:
    """The training stack's requirements, without torch, which the pack declares."""
    return [str(_plain(each)) for each in inventory.requirements(inventory.NAME, "train") if each.name != "torch"]


def _plain(asked: Requirement) -> Requirement:
    asked.marker = None
    return asked


def _left_out() -> set[str]:
    """Packages that the frozen programs have, and those that nothing loads."""
    return {*inventory.light(), *UNUSED}


def _name(file: Path) -> str:
    parsed = parse_wheel_filename(file.name) if file.suffix == ".whl" else parse_sdist_filename(file.name)
    return canonicalize_name(parsed[0])


def _locked(name: str, lock: Lock, file: Path, folder: Path) -> LockedWheel:
    """A file that pip chose; a source archive is built into a wheel."""
    source = ""
    if file.suffix != ".whl":
        source = _sha256(file)
        built = folder / "built"
        built.mkdir(exist_ok=True)
        _build_wheel(name, lock, f"{file.resolve()}", built)
        [wheel] = built.iterdir()
        file = wheel.rename(folder / wheel.name)
    _, version, _, _ = parse_wheel_filename(file.name)
    return LockedWheel(_name(file), str(version), file.name, _sha256(file), file.stat().st_size, source)


def _cards(lock: Lock, kept: Path) -> tuple[str, ...]:
    """The cards that torch has code for, by torch itself; none for packs that do not depend on the card."""
    if lock.kind not in (PackKind.CUDA, PackKind.ROCM):
        return ()
    with tempfile.TemporaryDirectory(dir=kept) as folder:
        for wheel in lock.wheel:
            with zipfile.ZipFile(kept / wheel.file) as opened:
                for member, path in members(opened):
                    if inventory.is_kept(path):
                        target = Path(folder, path)
                        target.parent.mkdir(parents=True, exist_ok=True)
                        with opened.open(member) as source, target.open("wb") as file:
                            shutil.copyfileobj(source, file, _CHUNK)
        done = subprocess.run(
            [sys.executable, "-c", ARCHITECTURES],
            env={**os.environ, "PYTHONPATH": folder},
            capture_output=True,
            text=True,
            check=False,
        )
    said = (done.stderr.splitlines() or [""])[-1] if done.returncode else done.stdout
    found = _GFX.findall(said) if lock.kind is PackKind.ROCM else [".".join(each) for each in _CAPABILITY.findall(said)]
    if done.returncode or not found:
        raise ValueError(f"torch {lock.torch} does not say which cards it has code for: {said.strip()}")
    return tuple(dict.fromkeys(found))


if __name__ == "__main__":
    sys.exit(main())
