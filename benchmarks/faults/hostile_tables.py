"""`hostile.md` and the table of SECURITY.md: what each attack did when it was measured last, to skep and to stock peers."""

from __future__ import annotations

from pathlib import Path

from faults import hostile, lockstep
from faults.rows import ROOT, Measured, stored

SECURITY = ROOT / "SECURITY.md"
HEADING = "## Attacks that are tried\n"
NOT_YET, NOT_REACHED = "not measured yet", "not reached"
ABOUT = [
    "`make test-hostile`. Of three workers, a seed that keeps the state, and a newcomer that joins during the attack: seconds are",
    "from the newcomer's start, and from the attack's end. A donor's answers are the newcomers that asked it, often none. An",
    "epoch's size is the number of samples that all honest peers brought to its round, in parts of its target; the worst mean of",
    "an attack may be 5 % off, and one epoch may be lost, more than half of it. `honest parameters`: the largest difference from those of the same run without the attack, of three",
    "peers in lockstep; at most 1e-6 where the attack can be refused. `stock`: what it does to stock hivemind in the same place.",
    "",
]
HEAD = (
    "| attack | attempts | answered | peers with an ended process | newcomer trained | each confirmed | memory | epoch |"
    " epochs lost | honest parameters | can only be limited because | stock | commit | machine |"
)


def write(folder: Path) -> None:
    """`hostile.md` in the folder of the rows; SECURITY.md too, if that is the repository's."""
    live, ours, stock = (
        {row["attack"]: row for row in stored(folder / f"faults-{part.name}.jsonl")}
        for part in (hostile.PART, lockstep.LOCKSTEP, lockstep.STOCK)
    )
    if not live:
        return
    lines = [*ABOUT, HEAD, "|---" * HEAD.count(" | ") + "|---|"]
    for name, row in live.items():
        beside = [ours_in_lockstep(ours.get(name)), why(ours.get(name)), stocks(stock.get(name))]
        lines.append(f"| {' | '.join([name, *alive(row), *beside, row['commit'], row['machine']])} |")
    (folder / "hostile.md").write_text("\n".join(lines) + "\n")
    if folder == ROOT / "benchmarks":
        write_security(live, ours, stock)


def write_security(live: dict[str, Measured], ours: dict[str, Measured], stock: dict[str, Measured]) -> None:
    """The attacks that were tried on both, at the end of SECURITY.md."""
    rows = [
        f"| {name} | {stocks(stock[name])} | {skeps(row, ours[name])} |"
        for name, row in live.items()
        if name in ours and name in stock
    ]
    if not rows:
        return
    lines = ["| attack | stock hivemind | skep |", "|---|---|---|", *rows]
    before = SECURITY.read_text().partition(HEADING)[0].rstrip("\n")
    SECURITY.write_text(f"{before}\n\n{HEADING}\n" + "\n".join(lines) + "\n")


def alive(row: Measured) -> list[str]:
    joined, confirmed = (f"{row[name]} s" if row[name] is not None else "**never**" for name in ("joined", "confirmed"))
    size = hostile.size(row)
    return [
        str(row["said"].get("tried", 0)),
        str(row["said"].get("answered", 0)),
        ", ".join(row["ended"]) or "none",
        joined,
        confirmed,
        f"+{row['memory']:.0f} MB",
        "none ended" if size is None else f"{size:.2f}",
        str(hostile.cost(row)),
    ]


def ours_in_lockstep(row: Measured | None) -> str:
    if row is None:
        return NOT_YET
    if found := lockstep.harm(row):
        return found if row["limited"] else f"**{found}**"
    return f"{row['difference']:.0e}" if lockstep.reached(row) else NOT_REACHED


def why(row: Measured | None) -> str:
    return row["limited"] if row else ""


def stocks(row: Measured | None) -> str:
    if row is None:
        return NOT_YET
    return lockstep.harm(row) or ("nothing" if lockstep.reached(row) else NOT_REACHED)


def skeps(live: Measured, ours: Measured) -> str:
    """What an attack did to skep, of both parts."""
    found = harm_alive(live)
    harm = lockstep.harm(ours)
    if ours["limited"]:
        found.append(f"limited: {ours['limited']}" + f" ({harm})" * bool(harm))
    elif harm:
        found.append(harm)
    return "; ".join(found) or "no effect"


def harm_alive(row: Measured) -> list[str]:
    """Of the running swarm; the size of epochs only where these were long enough to have one."""
    size = hostile.size(row)
    off = size is not None and "target" in row and abs(size - 1) > hostile.SIZE
    return [
        *([f"ends {', '.join(row['ended'])}"] if row["ended"] else []),
        *(["the newcomer did not train"] if row["joined"] is None else []),
        *(["not all were confirmed"] if row["confirmed"] is None else []),
        *([f"+{row['memory']:.0f} MB"] if row["memory"] > hostile.MEMORY else []),
        *([f"epochs of {size:.2f} of their target"] if off else []),
        *(["loses an epoch"] if hostile.cost(row) == hostile.COST else []),
        *([f"loses {hostile.cost(row)} epochs"] if hostile.cost(row) > hostile.COST else []),
    ]
