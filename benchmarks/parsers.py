"""Generated input for each of skep's parsers: valid documents, changed at random.

    python benchmarks/parsers.py [--count 1000000]     2 minutes for 100,000 cases; writes benchmarks/parsers.json and .md

100,000 cases each. A parser may raise its declared error only, take at most a second of processor time for a case, and at
most 256 MB; some never raise any, and leave a bad document out. A case that fails is printed with its number. Exit code 1
when one fails.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

# as in the worker, before hivemind is imported: shared memory needs no process of its own
os.environ["HIVEMIND_MEMORY_SHARING_STRATEGY"] = "file_descriptor"

from report import HERE, Row, finish, say

from generated_cases import MEGABYTES, PARSERS, SECONDS, Outcome, run

COUNT: Final = 100_000


def main() -> int:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--count", type=int, default=COUNT, help="cases for each parser")
    made.add_argument("--to", type=Path, default=HERE, help="folder of the results")
    arguments = made.parse_args()
    rows: list[Row] = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for name, found in zip(PARSERS, pool.map(partial(read, count=arguments.count), PARSERS), strict=True):
            say(f"{name}: {found.refused} of {arguments.count} refused")
            for failure in found.failures:
                say(f"  case {failure}")
            rows += [
                Row(f"{name}: cases refused by an error", found.refused, f"of {arguments.count}"),
                Row(f"{name}: other errors", found.failed, "", 0),
                Row(f"{name}: slowest case", found.slowest, "s", SECONDS),
                Row(f"{name}: memory", found.megabytes, "MB", MEGABYTES),
            ]
    return finish("parsers", rows, arguments.to)


def read(name: str, count: int) -> Outcome:
    """Read the cases of one parser."""
    with tempfile.TemporaryDirectory() as folder:
        return run(name, range(count), Path(folder))


if __name__ == "__main__":
    sys.exit(main())
