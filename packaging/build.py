"""Builds the frozen skep: the app alone into dist/skep-app, and with the training stack, licences and a table of sizes
into dist/skep.

    python packaging/build.py [--app-only]

PyInstaller freezes the programs once for both. The app alone gets the training stack as a compute pack (packs.py).
Nothing is signed, packaged or installed; deb.py and portable.py make packages of the folders.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import py_compile
import shutil
import subprocess
import sys
import sysconfig
import time
from datetime import UTC, datetime
from importlib.metadata import Distribution, version
from pathlib import Path
from typing import Any, Final

import inventory
import licences
import sizes
import slim

from skep.adapters.process.programs import ROOT_FILE

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
FOLDER: Final = ROOT / "dist" / "skep"
"""The programs with the training stack."""
APP: Final = ROOT / "dist" / "skep-app"
"""The programs alone."""
WORK: Final = ROOT / "build" / "package"
FACTS: Final = WORK / "skep-build.json"
LIBRARIES: Final = ("torch", "hivemind", "transformers", "PySide6-Essentials", "pyinstaller")


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--app-only", action="store_true", help="without the folder that has the training stack too")
    arguments = made.parse_args()
    freeze(APP)
    internal = internal_of(APP)
    step("the practice swarm's texts", lambda: lay_sources(internal))
    if platform.system() == "Linux":
        step("unused libraries", lambda: slim.drop_unneeded(internal))
    finish(APP, inventory.light(), "sizes-app.md", inventory.APP_SIZE_LIMIT)
    if arguments.app_only:
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(APP, FOLDER, symlinks=True)
    internal = internal_of(FOLDER)
    step("the training stack", lambda: lay_trees(internal))
    limit = None if is_gpu_build() else inventory.SIZE_LIMIT
    finish(FOLDER, inventory.light() | inventory.trees(), "sizes.md", limit)


def internal_of(folder: Path) -> Path:
    """Where the frozen programs' files are."""
    return folder / "skep.app" / "Contents" / "Frameworks" if platform.system() == "Darwin" else folder / "_internal"


def finish(folder: Path, bundled: dict[str, Distribution], table: str, limit: int | None) -> None:
    """Strip what is built, add the licences, list the sizes. Ends the build if it has more than `limit` bytes."""
    if platform.system() == "Linux":
        step("symbols", lambda: slim.strip(folder / "_internal"))
    step("licences", lambda: licences.collect(folder, WORK, bundled))
    tidy_modes(folder)
    total = sizes.write(folder, WORK / table)
    say(f"{folder}: {total / 1e6:.0f} MB; the size of each part is in {WORK / table}.")
    if limit is not None and total > limit:
        sys.exit(f"That is more than the {limit / 1e6:.0f} MB that inventory.py allows.")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def step(name: str, work: Any) -> None:
    began = time.monotonic()
    work()
    say(f"{name}: {time.monotonic() - began:.0f} s")


def is_gpu_build() -> bool:
    """Whether torch includes GPU libraries, which alone are larger than the limit."""
    return "+cpu" not in version("torch") and platform.system() != "Darwin"


def freeze(folder: Path) -> None:
    """Run PyInstaller on skep.spec and move the programs to `folder`, replacing an earlier one."""
    for each in (WORK, folder.parent):
        each.mkdir(parents=True, exist_ok=True)
    FACTS.write_text(json.dumps(facts(), indent=2) + "\n", encoding="utf-8")
    made = WORK / "frozen"
    options = ["--noconfirm", "--log-level", "WARN", "--distpath", str(made), "--workpath", str(WORK)]
    environ = {**os.environ, "SKEP_BUILD_FACTS": str(FACTS), "PYTHONHASHSEED": "0"}
    if root := updates_root():
        shutil.copyfile(root, WORK / ROOT_FILE)
        environ["SKEP_BUILD_ROOT"] = str(WORK / ROOT_FILE)
    command = [sys.executable, "-m", "PyInstaller", *options, str(HERE / "skep.spec")]
    step("the programs", lambda: subprocess.run(command, env=environ, check=True))
    shutil.rmtree(folder, ignore_errors=True)
    (made if platform.system() == "Darwin" else made / "skep").rename(folder)


def facts() -> dict[str, Any]:
    """Data about the build, for `skep self-test` and error reports. SOURCE_DATE_EPOCH sets its time."""
    now = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    return {
        "version": version(inventory.NAME),
        "commit": _git("rev-parse", "--short=12", "HEAD") + ("-changed" if _git("status", "--porcelain") else ""),
        "built": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.platform(),
        "libraries": {name: version(name) for name in LIBRARIES},
    } | ({"updates": os.environ["SKEP_UPDATES"]} if updates_root() else {})


def updates_root() -> Path | None:
    """The root of the repository for this build's updates, None for no updates. Ends the build if only one of two
    variables is set.
    """
    address, root = os.environ.get("SKEP_UPDATES", ""), os.environ.get("SKEP_UPDATES_ROOT", "")
    if bool(address) != bool(root) or (root and not Path(root).is_file()):
        sys.exit(
            "SKEP_UPDATES is the address of a repository, and SKEP_UPDATES_ROOT the file of its root: both or none."
        )
    return Path(root) if root else None


def _git(*arguments: str) -> str:
    """The output of git, "unknown" outside of a checkout."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def lay_trees(internal: Path) -> None:
    """Copy the training stack's files and compile them: an installed skep cannot write bytecode there later."""
    for tree in inventory.trees().values():
        for place, source in inventory.files(tree):
            target = internal / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    for name in {place.parts[0] for tree in inventory.trees().values() for place, _ in inventory.files(tree)}:
        compileall.compile_dir(
            internal / name,
            quiet=2,
            stripdir=str(internal),
            workers=2,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    for single in internal.glob("*.py"):
        py_compile.compile(
            str(single), dfile=single.name, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
        )


def lay_sources(internal: Path) -> None:
    """Copy the standard library's sources, which `skep practice` learns from; the programs do not run them."""
    root = Path(sysconfig.get_path("stdlib"))
    target = internal / sys.platlibdir / f"python{sys.version_info.major}.{sys.version_info.minor}"
    for source in root.rglob("*.py"):
        place = source.relative_to(root)
        if not inventory.SOURCES_UNUSED & set(place.parts) and not place.parts[0].startswith("config-"):
            (target / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target / place)


def tidy_modes(folder: Path) -> None:
    """Make files readable by all users, programs (not libraries) executable, and nothing writable by others, whatever
    the umask.
    """
    for path in (folder, *folder.rglob("*")):
        if path.is_symlink():
            continue
        runs = path.is_dir() or (path.stat().st_mode & 0o100 and ".so" not in path.suffixes)
        path.chmod(0o755 if runs else 0o644)


if __name__ == "__main__":
    main()
