"""Injects faults into running peers and measures what each costs.

    make test-faults PART=kill COUNT=20

Every row is stored when it is measured, in benchmarks/faults-PART.jsonl with the commit and the machine, and counted at
the next start with the same commit: a part that is interrupted, or that needs longer than --minutes, goes on there.
With --more N, each start takes N rows besides. Only `soak` cannot go on: its rows are counted too, but the next start runs other processes, from their first epoch.
Exits with 1 when a quantity misses its target, with 2 when a part could not be measured or not all of it yet.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent / "tests")]

from report import HERE, MISSED, UNMEASURED, say

from faults import (
    churn,
    debians,
    disk,
    donor,
    hostile,
    hostile_tables,
    kill,
    link,
    lockstep,
    packs,
    refused,
    soak,
    stall,
    start,
    stop,
)
from faults.rows import FAILURES, Part, Rows, write_table

PARTS: list[Part] = [
    kill.PART,
    stop.PART,
    stall.PART,
    soak.PART,
    churn.PART,
    start.PART,
    donor.PART,
    link.PART,
    disk.PART,
    packs.PART,
    debians.PART,
    refused.PART,
    hostile.PART,
    lockstep.LOCKSTEP,
    lockstep.STOCK,
]


def main() -> int:
    parts = {part.name: part for part in PARTS}
    known = "; ".join(f"{part.name}: {part.about}, {part.count} rows" for part in PARTS)
    parser = argparse.ArgumentParser(description=f"What a fault costs. {known}.")
    parser.add_argument("part", choices=parts)
    wanted_rows = parser.add_mutually_exclusive_group()
    wanted_rows.add_argument("--count", type=int, help="rows of this commit, those that are there included")
    wanted_rows.add_argument("--more", type=int, help="rows besides those of this commit that are there")
    parser.add_argument("--minutes", type=float, default=50.0, help="begin no row after that (50)")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the rows")
    asked = parser.parse_args()
    part = parts[asked.part]
    rows, ends = Rows(part, asked.out), time.monotonic() + 60 * asked.minutes
    there = len(rows.of_this_commit())
    count = part.count if asked.count is None else asked.count
    if asked.more is not None:
        count = there + asked.more
    wanted = range(there, count)
    try:
        with closing(part.measure(wanted)) as trials:
            for row in trials if wanted else ():
                rows.append(row)
                say(", ".join(f"{name} {value}" for name, value in row.items()))
                if time.monotonic() > ends:
                    break
    except (*FAILURES, RuntimeError, subprocess.SubprocessError) as error:
        say(f"cannot go on: {error}")
        return UNMEASURED
    finally:
        write_table(PARTS, asked.out)
        hostile_tables.write(asked.out)
    missed, measured = False, rows.of_this_commit()
    for each in part.quantities(measured):
        missed |= each.missed
        say(f"{each.name}: {each.value:.4g} {each.unit} ({each.target or 'no target'}){' missed' * each.missed}")
    if len(measured) < count:
        say(f"{len(measured)} of {count} rows" + (": the next start goes on" if asked.more is None else ""))
    return MISSED if missed else UNMEASURED * (len(measured) < count)


if __name__ == "__main__":
    sys.exit(main())
