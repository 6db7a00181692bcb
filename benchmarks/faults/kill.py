"""The part `kill`: kill -9 of a process chosen at random, at a random moment of training, again and again.

Five seconds later none of the old processes may be left: five after the kill, if the front end or the worker was killed.
If the DHT's process, p2pd or an averager was killed, five after the end of the worker, which has to notice that first.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator

from report import Row

from faults.family import Role
from faults.places import trained_volunteer
from faults.recovery import kill_one
from faults.rows import Measured, Part, attempted
from faults.volunteer import Volunteer

SEED = 15
WITHIN = 60.0
"""Seconds after which it counts as not recovered, and is started anew."""
MEDIAN = 20.0
LEFT = "old processes left 5 s after the end of the front end or the worker"
LONGEST_DELAY = 10.0
"""Seconds, more than an epoch of the practice swarm, from the last confirmed contribution to the kill."""


def choice(number: int) -> tuple[Role, float]:
    """The role and the delay of one row; the same in every run."""
    random_one = random.Random(f"{SEED} {number}")
    return random_one.choice(list(Role)), random_one.uniform(0.0, LONGEST_DELAY)


def measure(numbers: range) -> Iterator[Measured]:
    with trained_volunteer() as volunteer:
        for number in numbers:
            role, delay = choice(number)
            time.sleep(delay)
            about = {"number": number, "seed": SEED, "role": role, "delay": round(delay, 2)}
            row = attempted(about, killed, volunteer, role)
            yield row
            if row.get("back") is None:
                volunteer.train_anew()


def killed(volunteer: Volunteer, role: Role) -> Measured:
    return kill_one(volunteer, role, WITHIN).row()


def judged(rows: list[Measured]) -> list[Row]:
    # one that did not come back in time counts with that time in the median
    back = [WITHIN if row["back"] is None else row["back"] for row in rows]
    failed = sum(row["back"] is None for row in rows)
    return [
        *no_harm(rows),
        Row(f"not training again within {WITHIN:g} s", failed, "", 0, [0.0] * len(rows)),
        *([Row("training again, median", statistics.median(back), "s", MEDIAN, back)] if back else []),
        *by_role(rows),
    ]


def no_harm(rows: list[Measured]) -> list[Row]:
    """What no fault may cost."""
    return [
        Row("contributions lost", sum(row["lost"] for row in rows), "", 0, [row["lost"] for row in rows]),
        Row("contributions doubled", sum(row["doubled"] for row in rows), "", 0, [row["doubled"] for row in rows]),
        Row("other identity", sum(not row["same_identity"] for row in rows), "", 0, [0.0] * len(rows)),
        Row(LEFT, sum(bool(row["left"]) for row in rows), "", 0, [0.0] * len(rows)),
    ]


def by_role(rows: list[Measured]) -> list[Row]:
    made = []
    for role in Role:
        own = [row for row in rows if row["role"] == role]
        back = [row["back"] for row in own if row["back"] is not None]
        if own:
            made.append(Row(f"{role}: training again", len(back), f"of {len(own)}", None, back, least=len(own)))
    return made


PART = Part("kill", "kill -9 of a random process of a volunteer", 200, measure, judged)
