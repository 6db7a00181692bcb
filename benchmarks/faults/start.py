"""The part `start`: fifty front ends are started for one home at the same time; one of them runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from report import Row

from families import kill
from faults.places import own_folder
from faults.rows import Measured, Part, attempted
from terminals import Running, devote, is_event, practice_swarm

STARTS = 50
REFUSED, SENTENCE = 1, "skep is already running in "
"""The exit code of a front end that finds another one in its home, and what it says."""
DECIDED_SECONDS = 240.0
STAYS_SECONDS = 5.0
"""So long the last one still has to run."""
JOINED_SECONDS = 120.0


def measure(numbers: range) -> Iterator[Measured]:
    with own_folder() as folder, practice_swarm(folder / "swarm") as link:
        for number in numbers:
            yield attempted({"number": number}, started_at_once, folder / f"home{number}", link, STARTS)


def started_at_once(home: Path, link: str, count: int) -> Measured:
    """How many of `count` front ends run when all others have ended, and what those said that ended otherwise."""
    devote(home)
    made = [Running(home, "join", link) for _ in range(count)]
    deadline = time.monotonic() + DECIDED_SECONDS
    try:
        while sum(each.process.poll() is None for each in made) > 1 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(STAYS_SECONDS)
        alive = [each for each in made if each.process.poll() is None]
        said = [(each.words(), bool(each.named("joined"))) for each in made if each not in alive]
        others = [words for words, joined in said if joined or not is_refusal(words)]
        if len(alive) == 1:
            alive[0].wait_for(is_event("joined"), JOINED_SECONDS)
        return {
            "starts": count,
            "running": len(alive),
            "refused": len(said) - len(others),
            "others": sorted(set(others)),
        }
    finally:
        trees = [each.family() for each in made if each.process.poll() is None]
        for each in made:
            each.finish()
        for tree in trees:
            kill(tree)


def is_refusal(words: str) -> bool:
    return words.startswith(f"exit code {REFUSED}: ") and SENTENCE in words


def judged(rows: list[Measured]) -> list[Row]:
    if not rows:
        return []
    running, refused = [row["running"] for row in rows], [row["refused"] for row in rows]
    return [
        Row("running, most", max(running), "", 1, running, least=1),
        Row("refused in a sentence, fewest", min(refused), "", None, refused, least=STARTS - 1),
    ]


PART = Part("start", "fifty front ends started at once in one home", 5, measure, judged)
