"""Collects the licences of everything in a build into its folder `licenses`, with a list by package.

Something bundled that includes no licence, and none is named for here, is refused.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path, PurePath
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
TEXTS: Final = Path(__file__).resolve().parent / "licences"
NAMES: Final = re.compile(r"(licen[cs]e|copying|notice|authors|copyright)", re.IGNORECASE)
"""Prefixes of the names of licence files."""
STAND_INS: Final = {
    "morphys": ("MIT",),
    "nvidia-ml-py": ("BSD-3-Clause",),
    "prefetch-generator": ("Unlicense",),
    "pyside6-essentials": ("LGPL-3.0", "GPL-3.0"),
    "shiboken6": ("LGPL-3.0", "GPL-3.0"),
    "tokenizers": ("Apache-2.0",),
    "varint": ("MIT",),
}
"""Packages that name their licence and include no text of it."""
HEADING: Final = """What skep is built of: name, version, licence, home. The texts lie beside this file, in a folder for each.

skep itself is under the Apache License 2.0 (skep.txt). Qt and PySide6 are used under the LGPL version 3: they are
libraries of their own in _internal/PySide6, which you may replace by your own build of them.

"""
Row = tuple[str, ...]


class Lacking(Exception):
    """A package of which there is no licence."""


P2PD: Final = (
    "p2pd (in hivemind)",
    "go-libp2p-daemon",
    "see its home",
    "https://github.com/learning-at-home/go-libp2p-daemon",
)
"""hivemind includes this linked program without a list of its contents."""


def collect(folder: Path, work: Path, packages: dict[str, Distribution]) -> None:
    """Write `folder`/licenses for the bundled packages. `work` holds PyInstaller's notes of the files taken from the
    system.
    """
    target = folder / "licenses"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    shutil.copyfile(ROOT / "LICENSE", target / "skep.txt")
    bundled = sorted(packages.items())
    try:
        for name, found in bundled:
            _copy_texts(name, found, target / name)
    except Lacking as error:
        sys.exit(f"{error}.")
    rows = [
        _python(target),
        *((found.metadata["Name"], found.version, kind(found), _home(found)) for _, found in bundled),
        *_of_the_system(work, target),
        *([P2PD] if "hivemind" in packages else []),
    ]
    lines = [" · ".join(part for part in row if part) for row in rows]
    (target / "INDEX.txt").write_text(HEADING + "\n".join(lines) + "\n", encoding="utf-8")


def _copy_texts(name: str, found: Distribution, folder: Path) -> None:
    """Copy a package's own texts or their substitutes. Raises Lacking."""
    for text in texts(found):
        _copy(text, folder)
    if not folder.exists():
        for licence in stand_ins(name):
            folder.mkdir(exist_ok=True)
            (folder / f"{licence}.txt").write_text(_stand_in(licence, found), encoding="utf-8")


def stand_ins(name: str) -> tuple[str, ...]:
    """The licences of a package without a text of its own. Raises Lacking."""
    if name not in STAND_INS:
        raise Lacking(f"no licence comes with {name}: name one in STAND_INS of licences.py")
    return STAND_INS[name]


def is_text(file: PurePath) -> bool:
    """Whether a file of a package is a licence."""
    return NAMES.match(file.name) is not None and file.suffix not in {".py", ".pyc", ".pyi", ".so", ".h"}


def texts(found: Distribution) -> Iterator[Path]:
    """The licence files of a package."""
    for file in found.files or ():
        if is_text(file):
            yield Path(str(found.locate_file(file)))


def _copy(text: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    target, number = folder / text.name, 2
    while target.exists() and target.read_bytes() != text.read_bytes():
        target = folder / f"{text.stem}-{number}{text.suffix}"
        number += 1
    shutil.copyfile(text, target)


def _stand_in(licence: str, found: Distribution) -> str:
    source = ROOT / "LICENSE" if licence == "Apache-2.0" else TEXTS / f"{licence}.txt"
    holder = found.metadata.get("Author") or found.metadata.get("Author-email") or f"the authors of {found.name}"
    return source.read_text(encoding="utf-8").replace("@HOLDER@", holder)


def _python(target: Path) -> Row:
    number = sysconfig.get_python_version()
    for place in (Path(sysconfig.get_path("stdlib")) / "LICENSE.txt", Path(f"/usr/share/doc/python{number}/copyright")):
        if place.is_file():
            _copy(place, target / "python")
            return ("Python", sys.version.split()[0], "PSF-2.0", "https://www.python.org")
    sys.exit("Python's own licence was not found beside it.")


def kind(found: Distribution) -> str:
    if said := found.metadata.get("License-Expression"):
        return str(said)
    classifiers = [each for each in found.metadata.get_all("Classifier") or () if each.startswith("License")]
    ends = ", ".join(each.rpartition("::")[2].strip() for each in classifiers)
    return ends or str(found.metadata.get("License") or "see its text").partition("\n")[0]


def _home(found: Distribution) -> str:
    urls = [each.partition(", ")[2] for each in found.metadata.get_all("Project-URL") or ()]
    return str(found.metadata.get("Home-page") or next(iter(urls), ""))


def _of_the_system(work: Path, target: Path) -> list[Row]:
    """The Debian packages whose libraries PyInstaller took, with their copyright files; none on other systems."""
    if shutil.which("dpkg-query") is None:
        return []
    rows = []
    for package in sorted(
        {owner for library in _taken(work, target.parent / "_internal") if (owner := _owner(library))}
    ):
        text = Path("/usr/share/doc") / package / "copyright"
        if text.is_file():
            (target / "system").mkdir(exist_ok=True)
            shutil.copyfile(text, target / "system" / f"{package}.txt")
        rows.append((package, _dpkg("-W", "-f", "${Version}", package), f"see system/{package}.txt"))
    return rows


def _taken(work: Path, internal: Path) -> set[Path]:
    """System libraries in the build: PyInstaller notes the source of each file, including files removed later."""
    notes = next(work.glob("**/COLLECT-00.toc"))
    entries = ast.literal_eval(notes.read_text(encoding="utf-8"))[0]
    return {
        Path(source)
        for place, source, *_ in entries
        if str(source).startswith(("/usr/lib", "/lib")) and (internal / place).is_file()
    }


def _owner(library: Path) -> str:
    """The Debian package of a library, "" for none. dpkg knows a file by the path it was unpacked to."""
    real = library.resolve()
    unmerged = Path(str(real).removeprefix("/usr"))
    for path in (library, real, unmerged):
        if said := _dpkg("-S", str(path)):
            return said.partition(":")[0]
    return ""


def _dpkg(*asked: str) -> str:
    done = subprocess.run(["dpkg-query", *asked], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
