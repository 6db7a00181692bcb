"""Runs a part of skep's GPU suite on this computer, with the PyTorch that this Python has, and without a network.

    ./run PART [--to FOLDER]
    ./run power --may-change-card [--to FOLDER]

`tests`, `ranks` and `sharding` are the GPU tests, `demo` a practice swarm, and the others the parts of benchmarks/gpu.py;
each takes at most 8 minutes, and only `power` changes a setting of the card. Results name the card and lie in FOLDER, by
default `results` beside this file. The packages are laid into a virtual environment beside this file at the first run.
Exit code 2 without a CUDA device or a usable PyTorch. Only the standard library is used here.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import venv
from pathlib import Path
from typing import TextIO

HERE = Path(__file__).resolve().parent
SKEP = HERE / "skep"
ENVIRONMENT = HERE / "environment"
PYTHON = ENVIRONMENT / "bin" / "python"
OLDEST_TORCH = (2, 9)
"""The first one that lets FSDP's messages be replaced, which every worker loads."""
SECONDS = 480
"""The longest that a part may take."""
MAY_CHANGE = "--may-change-card"
GPU_TESTS = ["-m", "pytest", "-m", "gpu", "-v", "-W", "default", "-p", "no:cacheprovider"]
ALONE = {"ranks": "tests/gpu/test_ranks_gpu.py", "sharding": "tests/gpu/test_sharding_gpu.py"}
"""Tests that fork ranks before their process uses the card, so that no other tests may run in it."""
PARTS = {
    "tests": [*GPU_TESTS, "tests/gpu", *(f"--ignore={each}" for each in ALONE.values())],
    **{part: [*GPU_TESTS, file] for part, file in ALONE.items()},
    "memory": ["benchmarks/gpu.py", "memory"],
    "demo": ["-m", "skep.cli.main", "demo"],
    # by default each precision is compared three times, for longer: with three precisions that may exceed SECONDS
    "steps": ["benchmarks/gpu.py", "steps", "--seconds", "5", "--repeats", "2"],
    "shares": ["benchmarks/gpu.py", "shares"],
    "giveback": ["benchmarks/gpu.py", "giveback"],
    "power": ["benchmarks/gpu.py", "power", MAY_CHANGE],
}
LOOK = """
import json, torch
found = torch.cuda.is_available()
name = torch.cuda.get_device_name(0) if found else ""
print(json.dumps([torch.__version__, found, name]))
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--to", type=Path, default=HERE / "results", help="folder of the results")
    parser.add_argument(MAY_CHANGE, action="store_true", help="allow a part to set the card's power limit meanwhile")
    options = parser.parse_args()
    if MAY_CHANGE in PARTS[options.part] and not options.may_change_card:
        return refuse(f"{options.part} changes settings of the card: allow it with {MAY_CHANGE}.")
    wanted = (HERE / "python-version").read_text().strip()
    running = "{}.{}".format(*sys.version_info)
    if running != wanted:
        return refuse(f"This kit is for Python {wanted}, and this is Python {running}: make one with PYTHON={running}.")
    missing = [name for name in ("torch", "scipy") if importlib.util.find_spec(name) is None]
    if missing:
        names = " and no ".join(missing)
        return refuse(f"{sys.executable} has no {names}: install it, or name another Python by PYTHON=….")
    lay(Path(importlib.util.find_spec("torch").origin).parent.parent)
    version, found, card = json.loads(subprocess.run([PYTHON, "-c", LOOK], capture_output=True, check=True).stdout)
    if why := too_old(version):
        return refuse(why)
    if not found:
        return refuse(f"PyTorch {version} finds no CUDA device: the GPU suite needs one.")
    return run(options.part, options.to.resolve(), f"{card}, PyTorch {version}, Python {running}")


def too_old(version: str) -> str:
    """What is said if skep needs a newer PyTorch."""
    if tuple(map(int, version.split(".")[:2])) >= OLDEST_TORCH:
        return ""
    return "PyTorch {} is older than {}.{}, which skep needs: install a newer one.".format(version, *OLDEST_TORCH)


def refuse(why: str) -> int:
    sys.stderr.write(f"{why}\n")
    return 2


def lay(torch_packages: Path) -> None:
    """Make the virtual environment, unless it is there: ours first, then the packages beside PyTorch."""
    if ENVIRONMENT.exists():
        return
    new = ENVIRONMENT.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    venv.create(new, symlinks=True)
    packages = next((new / "lib").glob("python*")) / "site-packages"
    with tarfile.open(HERE / "packages.tar.xz") as archive:
        archive.extractall(packages, filter="data")
    (packages / "skep-gpu-kit.pth").write_text(f"{SKEP / 'client'}\n{torch_packages}\n")
    new.rename(ENVIRONMENT)


def run(part: str, to: Path, what: str) -> int:
    to.mkdir(parents=True, exist_ok=True)
    arguments = PARTS[part] + (["--to", str(to)] if PARTS[part][0] == "benchmarks/gpu.py" else [])
    begun, log = time.monotonic(), to / f"gpu-{part}.log"
    command = [PYTHON, "-u", *arguments]
    with (
        log.open("w") as file,
        subprocess.Popen(command, cwd=SKEP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child,
    ):
        tell(file, f"{part}: {what}\n")
        over = threading.Timer(SECONDS, child.terminate)
        over.start()
        assert child.stdout is not None
        for line in child.stdout:
            tell(file, line)
        code = child.wait()
        over.cancel()
        tell(file, f"{part}: exit code {code} after {time.monotonic() - begun:.0f} s\n")
    return code


def tell(file: TextIO, text: str) -> None:
    for stream in (file, sys.stdout):
        stream.write(text)
        stream.flush()


if __name__ == "__main__":
    sys.exit(main())
