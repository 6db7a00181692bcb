"""Collects the licences of everything that a build holds into its folder `licenses`, with a list of what is whose.

It stops the build where something bundled brings no licence and none is named for it here.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path
from typing import Final

import inventory

FILES: Final = ("licen[cs]e", "copying", "notice", "authors", "copyright")
"""How the files are called that packages bring, in small letters."""
ROOT: Final = Path(__file__).resolve().parent.parent
KNOWN: Final = Path(__file__).resolve().parent / "licences"
"""Texts for what brings none of its own."""


def collect(folder: Path, work: Path) -> None:
    """Write `folder`/licenses. `work` is where PyInstaller left its notes of what it took from the system."""
    target = folder / "licenses"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    shutil.copyfile(ROOT / "LICENSE", target / "skep.txt")
    rows = [_python(target)]
    lacking = []
    for name, found in sorted((inventory.light() | inventory.trees()).items()):
        texts = list(_texts(found))
        for text in texts:
            _copy(text, target / name)
        if not texts and not _stand_in(name, target):
            lacking.append(name)
        rows.append((found.metadata["Name"], found.version, _kind(found), _home(found)))
    rows += _of_the_system(work, target)
    lines = [" · ".join(part for part in row if part) for row in rows]
    (target / "INDEX.txt").write_text(HEADING + "\n".join(lines) + "\n", encoding="utf-8")
    if lacking:
        sys.exit(f"No licence comes with {', '.join(lacking)}; put its text into {KNOWN}/<name>.txt.")


HEADING: Final = """What skep is built of: name, version, licence, home. Each text lies beside this file.
skep itself is under the Apache License 2.0 (skep.txt). Qt and PySide6 are used under the LGPL version 3: they are
libraries of their own in _internal/PySide6, which you may replace by your own build of them.

"""


def _python(target: Path) -> tuple[str, str, str, str]:
    number = sysconfig.get_python_version()
    for place in (Path(sysconfig.get_path("stdlib")) / "LICENSE.txt", Path(f"/usr/share/doc/python{number}/copyright")):
        if place.is_file():
            _copy(place, target / "python")
            return ("Python", sys.version.split()[0], "PSF-2.0", "https://www.python.org")
    sys.exit("Python's own licence was not found beside it.")


def _texts(found: Distribution) -> Iterator[Path]:
    for file in found.files or ():
        low = file.name.lower()
        is_text = file.suffix not in {".py", ".pyc", ".pyi", ".so", ".h"}
        if is_text and any(low.startswith(each.replace("[cs]", kind)) for each in FILES for kind in "cs"):
            yield Path(str(found.locate_file(file)))


def _copy(text: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    target = folder / text.name
    number = 2
    while target.exists() and target.read_bytes() != text.read_bytes():
        target = folder / f"{text.stem}-{number}{text.suffix}"
        number += 1
    shutil.copyfile(text, target)


def _stand_in(name: str, target: Path) -> bool:
    """Whether a text of ours for it was there, and copied."""
    if (known := KNOWN / f"{name}.txt").is_file():
        _copy(known, target / name)
    return known.is_file()


def _kind(found: Distribution) -> str:
    said = found.metadata.get("License-Expression") or ""
    if not said:
        ends = [
            each.rpartition("::")[2].strip() for each in found.metadata.get_all("Classifier") or () if "License" in each
        ]
        said = ", ".join(ends) or (found.metadata.get("License") or "").partition("\n")[0]
    return said


def _home(found: Distribution) -> str:
    urls = [each.partition(", ")[2] for each in found.metadata.get_all("Project-URL") or ()]
    return str(found.metadata.get("Home-page") or (urls[0] if urls else ""))


def _of_the_system(work: Path, target: Path) -> list[tuple[str, str, str, str]]:
    """The Debian packages whose libraries PyInstaller took, with their copyright files; none on other systems."""
    if shutil.which("dpkg-query") is None:
        return []
    rows = []
    for package in sorted({owner for source in _taken(work) for owner in _owners(source)}):
        text = Path("/usr/share/doc") / package / "copyright"
        if text.is_file():
            (target / "system").mkdir(exist_ok=True)
            shutil.copyfile(text, target / "system" / f"{package}.txt")
        asked = ["dpkg-query", "-W", "-f", "${Version}", package]
        number = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        rows.append((package, number, "see system/", "https://packages.debian.org"))
    return rows


def _taken(work: Path) -> set[Path]:
    """Libraries of the system in the build: PyInstaller notes for each file where it came from."""
    import ast  # noqa: PLC0415 - its notes are Python literals

    (notes,) = work.glob("**/COLLECT-00.toc")
    entries = ast.literal_eval(notes.read_text(encoding="utf-8"))[0]
    return {Path(source) for _, source, *_ in entries if str(source).startswith(("/usr/lib", "/lib"))}


def _owners(library: Path) -> Iterator[str]:
    for path in dict.fromkeys(
        (
            library,
            library.resolve(),
            Path("/lib") / library.resolve().relative_to("/usr/lib")
            if library.resolve().is_relative_to("/usr/lib")
            else library,
        )
    ):
        done = subprocess.run(["dpkg-query", "-S", str(path)], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            yield done.stdout.partition(":")[0]
            return
