"""The part `refused`: ways to get in, bad addresses, forbidden operations, and generated input for each parser.

Each row is a suite that has passed. One that fails leaves no row, and runs again at the next start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

from report import Row

from faults.rows import ROOT, Measured, Part

MARK = "pytest.mark.way_in"
LAST_CHARACTERS = 2_000


def suites() -> dict[str, list[str]]:
    """The commands. Those with peers run each file in a process of its own."""
    files = [
        str(file.relative_to(ROOT)) for file in sorted((ROOT / "tests").rglob("test_*.py")) if MARK in file.read_text()
    ]
    with_peers = [file for file in files if file.startswith("tests/swarm/")]
    alone = [file for file in files if file not in with_peers]
    two = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "--max-worker-restart", "0"]
    return {
        "ways to get in": [*two, "-m", "way_in", *alone],
        "ways to get in among peers": [sys.executable, "tests/each_file.py", "2", "-m", "way_in", "--", *with_peers],
        "addresses, paths and names": [*two, "tests/adapters/net/test_hostile_addresses.py"],
        "forbidden operations": [*two, "tests/worker/sandbox/test_forbidden.py"],
        "generated input of each parser": [sys.executable, "benchmarks/parsers.py"],
    }


def measure(numbers: range) -> Iterator[Measured]:
    """Raises RuntimeError when a suite fails."""
    commands = suites()
    for number in numbers:
        name = list(commands)[number % len(commands)]
        begun = time.monotonic()
        done = subprocess.run(
            commands[name],
            check=False,
            cwd=ROOT,
            env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stdout[-LAST_CHARACTERS:]}")
        said = done.stdout.strip().splitlines()[-1:]
        yield {"number": number, "suite": name, "said": said, "seconds": round(time.monotonic() - begun, 1)}


def judged(rows: list[Measured]) -> list[Row]:
    return [Row("suites that passed", len({row["suite"] for row in rows}), "", None, [], least=len(suites()))]


PART = Part("refused", "ways in, addresses, forbidden operations, parsers", len(suites()), measure, judged)
