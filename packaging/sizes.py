"""Lists the sizes of a folder's parts, largest first, as a Markdown table."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Final

SHOWN: Final = 20
MEGABYTE: Final = 1e6


def write(folder: Path, file: Path) -> int:
    """Write the table of `folder` into `file`; returns the total bytes."""
    found = measured(folder)
    total = sum(found.values())
    largest = found.most_common(SHOWN)
    rest = total - sum(size for _, size in largest)
    rows = [*largest, *([("everything else", rest)] if rest else []), ("all of it", total)]
    lines = ["| part | MB | share |", "|---|---:|---:|"]
    lines += [f"| {name} | {size / MEGABYTE:.1f} | {size / total:.1%} |" for name, size in rows]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return total


def measured(folder: Path) -> Counter[str]:
    """Bytes by part; hard links count once."""
    found: Counter[str] = Counter()
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            if not path.is_symlink():
                found[part_of(path.relative_to(folder).parts)] += path.stat().st_size
    return found


def part_of(parts: tuple[str, ...]) -> str:
    """The part of a file: its package, or the program itself."""
    if parts[0] != "_internal":
        return parts[0] if len(parts) > 1 else f"{parts[0]} (program)"
    below = parts[1:]
    if len(below) == 1:
        return "libraries of the system" if ".so" in below[0] or below[0].endswith(".dylib") else "loose files"
    first = below[0].removesuffix(".libs")
    if first == "lib" or first.startswith("python3"):
        return "Python's own"
    if first.endswith(".dist-info"):
        return "packages' notes"
    return first
