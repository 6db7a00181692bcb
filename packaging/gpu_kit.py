"""Makes dist/gpu-kit: what a computer with a GPU and PyTorch lacks to run skep's GPU suite, without a network.

    python packaging/gpu_kit.py [--python 3.12]

The folder contains skep's sources, its tests and benchmarks, `packages.tar.xz` with hivemind and all other packages for
that Python on Linux (x86-64), and `run`, which installs them into a virtual environment beside it. PyTorch, what only
PyTorch requires, and SciPy are those of the computer.
"""

from __future__ import annotations

import argparse
import lzma
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from importlib.metadata import Distribution
from pathlib import Path
from typing import Final

import inventory
import sizes
from packaging.requirements import Requirement

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
FOLDER: Final = ROOT / "dist" / "gpu-kit"
SIZE_LIMIT: Final = 45_000_000
"""Maximum size of the folder in bytes."""

OF_TORCH: Final = frozenset({"torch", "jinja2", "markupsafe", "mpmath", "networkx", "sympy"})
"""PyTorch and what only it requires."""
UNUSED: Final = OF_TORCH | {
    "hf-xet", "grpcio", "grpcio-tools", "setuptools",  # as in inventory.UNUSED_TREES
    "pillow",  # for images
    "scipy",  # 20 MB, which computers for machine learning have
}  # fmt: skip
FOR_TESTS: Final = ("babel", "hypothesis", "pytest", "pytest-timeout")
PRUNED: Final = ("babel/locale-data/*", "netaddr/eui/*.txt", "securesystemslib/_vendor/*/test_data/*")
KEPT: Final = tuple(f"babel/locale-data/{name}.dat" for name in ("root", "en", "de"))
SOURCES: Final = ("assets/catalogues.py", "benchmarks", "client", "pyproject.toml", "tests")
"""What of the repository is included."""
TEXT_LIMIT: Final = 500_000
"""Larger files of the sources are pictures and recordings that no GPU test reads."""
COMPRESSION: Final = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]
PLATFORMS: Final = (
    *(f"manylinux_2_{version}_x86_64" for version in (39, 35, 34, 31, 28, 27, 24, 17, 12, 5)),
    "manylinux2014_x86_64", "manylinux1_x86_64", "linux_x86_64",
)  # fmt: skip


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--python", default="3.12", help="the Python of the computer with the GPU, as 3.12")
    arguments = made.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="gpu-kit-") as work:
        wheels = fetch(packages(), arguments.python, Path(work))
        pack(wheels, FOLDER / "packages.tar.xz")
    copy_sources(FOLDER / "skep")
    for name in ("run", "run_part.py"):
        shutil.copy(HERE / "gpu" / name, FOLDER / name)
    (FOLDER / "python-version").write_text(f"{arguments.python}\n")
    total = sum(sizes.measured(FOLDER).values())
    sys.stdout.write(f"{FOLDER}: {total / 1e6:.1f} MB, for Python {arguments.python}.\n")
    if total > SIZE_LIMIT:
        sys.exit(f"That is more than the {SIZE_LIMIT / 1e6:.0f} MB that gpu_kit.py allows.")


def packages() -> list[Distribution]:
    """What the GPU suite needs beside PyTorch, as installed here."""
    asked = [*inventory.requirements(inventory.NAME), *inventory.requirements(inventory.NAME, "train")]
    found = inventory.closure([*asked, *map(Requirement, FOR_TESTS)])
    return [each for name, each in sorted(found.items()) if name not in UNUSED and not name.startswith("nvidia-cu")]


def fetch(found: Iterable[Distribution], python: str, folder: Path) -> list[Path]:
    """The wheels of these versions for that Python; those that an index has only as source are built."""
    for each in found:
        exact = f"{each.name}=={each.version}"
        pip = [sys.executable, "-m", "pip"]
        platforms = [argument for platform in PLATFORMS for argument in ("--platform", platform)]
        wanted = ["--only-binary=:all:", "--python-version", python, "--implementation", "cp", *platforms]
        download = [*pip, "download", "--quiet", "--no-deps", "--dest", str(folder), *wanted, exact]
        if subprocess.run(download, stderr=subprocess.DEVNULL, check=False).returncode:
            build = [*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), exact]
            subprocess.run(build, check=True)
    wheels = sorted(folder.glob("*.whl"))
    if own := [wheel.name for wheel in wheels if is_for_another(wheel, python)]:
        sys.exit(f"There is no wheel for Python {python} of: {', '.join(own)}.")
    return wheels


def is_for_another(wheel: Path, python: str) -> bool:
    """Whether a wheel, built here for want of another, is for this interpreter only."""
    _, interpreter, abi, _ = wheel.stem.rsplit("-", 3)
    ours = "cp" + python.replace(".", "")
    return not interpreter.startswith("py") and abi != "abi3" and ours not in interpreter.split(".")


def pack(wheels: Iterable[Path], to: Path) -> None:
    """One archive of what the wheels lay into site-packages, without the parts that nothing loads."""
    with lzma.open(to, "w", filters=COMPRESSION) as file, tarfile.open(fileobj=file, mode="w|") as archive:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as opened:
                for entry in included(opened):
                    made = tarfile.TarInfo(entry.filename)
                    made.size, made.mode = entry.file_size, entry.external_attr >> 16 & 0o777 or 0o644
                    with opened.open(entry) as content:
                        archive.addfile(made, content)


def included(wheel: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    for entry in wheel.infolist():
        name = entry.filename
        kept = inventory.is_kept(name) and not any(fnmatch(name, each) for each in PRUNED)
        if not entry.is_dir() and ".data/" not in name and (kept or name in KEPT):
            yield entry


def copy_sources(to: Path) -> None:
    """The files that git knows of SOURCES, and the compiled catalogues."""
    listed = subprocess.run(["git", "ls-files", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True)
    catalogues = [path.relative_to(ROOT) for path in (ROOT / "client").rglob("*.mo")]
    for name in [*listed.stdout.splitlines(), *catalogues]:
        source, target = ROOT / name, to / name
        if source.exists() and source.stat().st_size <= TEXT_LIMIT:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


if __name__ == "__main__":
    main()
