"""Measures skep's worker against a stock hivemind loop and a bare PyTorch loop, alternating, in one run.

    python benchmarks/against_stock                  all rows, in about five hours on 2 cores
    python benchmarks/against_stock --only memory    measures this anew, and keeps the other rows

Every peer is a separate process with one thread; stock peers train with stock peers and skep's with skep's, on
loopback, with the same model, data, flags and step batch. What counts as a sample is said in `peers.py`. Values are
medians of `--repeats` with their smallest and largest. The rows of each measure are stored in
benchmarks/against-stock.json and .md when they are there, instead of its earlier ones; of one that could not be measured
a row that says so. Exits with 1 when a row misses its bound, with 2 when one could not be measured. Each function
documents what its rows measure and why. What a lost peer costs both kinds is in `make test-faults PART=stall`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent / "tests")]

import psutil
from faults.rows import MEASURED, this_commit
from machine import machine
from report import HERE, MISSED, UNMEASURED, Unmeasured, say

from against_stock.joining import measure_join, measure_newcomers
from against_stock.memory import measure_memory
from against_stock.others import measure_gpu, measure_lightning
from against_stock.rates import measure_epochs, measure_speed, measure_stop
from against_stock.rows import Row, kept, table, words, write
from against_stock.shaped import measure_shaped
from against_stock.wire import WIRES, measure_wire
from skep.core.errors import SkepError

COMPARED = (*MEASURED, "benchmarks/against_stock")
"""What the rows depend on."""
MEASURES: dict[str, Callable[[int], list[Row]]] = {
    "speed": measure_speed,
    "epochs": measure_epochs,
    "join": measure_join,
    **{f"newcomers-{length}": partial(measure_newcomers, length=length) for length in (5, 10, 30)},
    "slow-link": partial(measure_shaped, cut=False),
    "slow-link-cut": partial(measure_shaped, cut=True),
    "memory": measure_memory,
    "stop": measure_stop,
    **{f"wire-{name}": partial(measure_wire, name=name) for name in WIRES},
    "lightning": measure_lightning,
    "gpu": measure_gpu,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES), help="some of the measures")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--to", type=Path, default=HERE / "against-stock", help="written there, as .json and .md")
    options = parser.parse_args()
    unmeasured = False
    for name in options.only:
        commit = this_commit(COMPARED)
        try:
            rows = MEASURES[name](options.repeats)
        except (Unmeasured, OSError, RuntimeError, subprocess.SubprocessError, psutil.Error, SkepError) as error:
            reason = str(error).partition("\n")[0].replace("|", "/")
            rows, unmeasured = [Row(name, "", [], note=f"not measured: {reason}")], True
        if this_commit(COMPARED) != commit:
            say(f"{name} is not stored: what is measured was changed during the measurement")
            return UNMEASURED
        for row in rows:
            row.measure, row.date, row.machine = name, f"{datetime.now(UTC):%Y-%m-%d}", machine()
            row.commit = commit
            say(f"{row.name}: {words(row.skep)} | {words(row.other)} {row.note}")
        stored = [*kept(options.to.with_suffix(".json"), MEASURES, leaving_out=[name]), *rows]
        stored.sort(key=lambda row: list(MEASURES).index(row.measure))
        write(stored, options.to)
    stored = kept(options.to.with_suffix(".json"), MEASURES, leaving_out=[])
    sys.stdout.write(table(stored))
    missed = any(row.missed for row in stored if row.measure in options.only)
    return UNMEASURED if unmeasured else MISSED * missed


if __name__ == "__main__":
    sys.exit(main())
