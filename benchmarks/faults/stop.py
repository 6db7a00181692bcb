"""The part `stop`: SIGSTOP of the worker, the DHT, p2pd and the averagers in turn, as a hang of each."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from report import Row

from faults.family import Role
from faults.kill import by_role, no_harm
from faults.places import trained_volunteer
from faults.recovery import stop_one
from faults.rows import Measured, Part, attempted
from faults.volunteer import Volunteer

ROLES = [role for role in Role if role is not Role.FRONT_END]
NOTICED = 90.0
WITHIN = 150.0
"""Seconds for noticing and the restart; then the volunteer is started anew."""


def measure(numbers: range) -> Iterator[Measured]:
    with trained_volunteer() as volunteer:
        for number in numbers:
            role = ROLES[number % len(ROLES)]
            about = {"number": number, "role": role}
            row = attempted(about, stopped, volunteer, role)
            yield row
            if row.get("back") is None:
                volunteer.train_anew()


def stopped(volunteer: Volunteer, role: Role) -> Measured:
    return stop_one(volunteer, role, WITHIN).row()


def judged(rows: list[Measured]) -> list[Row]:
    noticed = [row["noticed"] for row in rows if row["noticed"] is not None]
    late = len(rows) - sum(each <= NOTICED for each in noticed)
    back = [row["back"] for row in rows if row["back"] is not None]
    return [
        *no_harm(rows),
        Row(f"not noticed within {NOTICED:g} s", late, "", 0, noticed),
        Row("not training again", len(rows) - len(back), "", 0, back),
        *([Row("noticed, median", statistics.median(noticed), "s", NOTICED, noticed)] if noticed else []),
        *by_role(rows),
    ]


PART = Part("stop", "SIGSTOP of a process of a volunteer", 100, measure, judged)
