"""Attacks on honest peers in lockstep: single cases of `make test-hostile`, and how its rows are judged."""

import contextlib
import math

import pytest
from faults import hostile, hostile_tables, lockstep
from faults.places import own_folder

SECONDS = 4.0


@pytest.fixture(scope="module")
def swarm():
    with own_folder() as folder, contextlib.ExitStack() as ending:
        yield lockstep.Lockstep(folder, "skep", ending, SECONDS)


@pytest.fixture(scope="module")
def reference(swarm):
    return lockstep.without_attack(swarm)


@pytest.mark.parametrize("name", ["a false epoch", "gradients that are no number"])
def test_honest_parameters_are_those_of_the_run_without_the_attack(swarm, reference, name):
    row = lockstep.attacked(swarm, name, reference, joined=False)
    assert row["said"]["tried"]
    assert not row["hung"]
    assert row["difference"] <= lockstep.EQUAL
    assert not row["lost"]
    assert not lockstep.harm(row)


def test_what_cannot_be_refused_is_declared():
    known = hostile.attacks()
    assert 5 <= sum(bool(each["limited"]) for each in known.values()) <= 10
    assert not known["nested record"]["limited"]
    assert known["negative second moments"]["newcomer"]


GOOD = {
    "attack": "a", "limited": "", "said": {"tried": 1}, "ended": [], "hung": "", "epochs": 5, "jumped": False,
    "difference": 1e-8, "groups": [], "lost": [], "newcomer": None, "memory": 3.0, "seconds": 20.0,
    "commit": "c", "machine": "m",
}  # fmt: skip
SPOILT = [
    {"ended": ["peer 0"]},
    {"hung": "not within 60 s"},
    {"difference": 2e-6},
    {"difference": math.inf},
    {"jumped": True},
    {"lost": ["round.no_group_was_found_round"]},
    {"newcomer": "never joined"},
    {"memory": 300.0},
    {"said": {}},
    {"newcomer": "", "said": {"tried": 1, "answered": 0}},
]


def good_rows():
    return [GOOD | {"attack": str(number)} for number in range(hostile.COUNT)]


@pytest.mark.parametrize("spoilt", SPOILT, ids=str)
def test_what_was_missed_is_judged_as_such(spoilt):
    assert not any(row.missed for row in lockstep.judged(good_rows()))
    assert any(row.missed for row in lockstep.judged([*good_rows(), GOOD | spoilt]))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (None, "never joined"),
        ({"event": "failed", "why": "KeyError"}, "KeyError"),
        ({"event": "joined", "epoch": 10**12, "values": [0.0]}, "in epoch 1000000000000"),
        ({"event": "joined", "epoch": 8, "values": [0.5]}, "other parameters, by 0.5"),
        ({"event": "joined", "epoch": 8, "values": [math.nan]}, "other parameters, by inf"),
        ({"event": "joined", "epoch": 8, "values": [1e-8]}, ""),
    ],
)
def test_what_became_of_a_newcomer(said, expected):
    assert lockstep.newcomer_said(said, {0: [0.0]}, range(7, 10)) == expected


def test_an_attack_that_can_only_be_limited_may_change_parameters():
    limited = GOOD | {"limited": "why", "difference": 0.3, "lost": ["a"]}
    assert not any(row.missed for row in lockstep.judged([*good_rows(), limited]))


def test_the_tables_say_what_each_did(tmp_path, monkeypatch):
    live = {
        "attack": "a", "said": {"tried": 4, "answered": 2}, "ended": [], "joined": 5.0, "confirmed": None, "memory": 9.0,
        "epochs": [110, 90], "target": 100, "commit": "c", "machine": "m",
    }  # fmt: skip
    fine = {"confirmed": 1.0, "epochs": [101]}
    rows = {
        hostile.PART: [
            live,
            live | fine | {"attack": "b"},
            live | fine | {"attack": "c"},
            live | {"attack": "untried"},
        ],
        lockstep.LOCKSTEP: [GOOD, GOOD | {"attack": "c"}, GOOD | {"attack": "b", "limited": "why", "difference": 0.25}],
        lockstep.STOCK: [GOOD | {"ended": ["peer 1"]}, GOOD | {"attack": "b"}, GOOD | {"attack": "c", "hung": "yes"}],
    }
    monkeypatch.setattr(hostile_tables, "SECURITY", tmp_path / "SECURITY.md")
    monkeypatch.setattr(hostile_tables, "stored", lambda file: rows[part_of(rows, file)])
    monkeypatch.setattr(hostile_tables, "ROOT", tmp_path)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "SECURITY.md").write_text(f"# Security\n\nAll.\n\n{hostile_tables.HEADING}\nold\n")
    hostile_tables.write(tmp_path / "benchmarks")
    shown = (tmp_path / "benchmarks/hostile.md").read_text().splitlines()[-4:]
    assert shown == [
        "| a | 4 | 2 | none | 5.0 s | **never** | +9 MB | 1.00 | 0 | 1e-08 |  | ends peer 1 | c | m |",
        "| b | 4 | 2 | none | 5.0 s | 1.0 s | +9 MB | 1.01 | 0 | other parameters, by 0.25 | why | nothing | c | m |",
        "| c | 4 | 2 | none | 5.0 s | 1.0 s | +9 MB | 1.01 | 0 | 1e-08 |  | no epoch within 60 s | c | m |",
        "| untried | 4 | 2 | none | 5.0 s | **never** | +9 MB | 1.00 | 0 | not measured yet |  | not measured yet | c | m |",
    ]
    assert (tmp_path / "SECURITY.md").read_text().splitlines()[:2] == ["# Security", ""]
    assert (tmp_path / "SECURITY.md").read_text().splitlines()[2:] == [
        "All.",
        "",
        hostile_tables.HEADING.strip(),
        "",
        "| attack | stock hivemind | skep |",
        "|---|---|---|",
        "| a | ends peer 1 | not all were confirmed |",
        "| b | nothing | limited: why (other parameters, by 0.25) |",
        "| c | no epoch within 60 s | no effect |",
    ]


def part_of(rows, file):
    return next(part for part in rows if file.name == f"faults-{part.name}.jsonl")
