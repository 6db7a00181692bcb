"""The doctor's findings as data: on the pipe, in order, the worst of them, and the judgement of a clock."""

import json

import pytest

from english import in_english
from skep.core.findings import Check, Finding, State, clock_finding, from_line, listed, seed_down, to_line, worst
from skep.core.text import Text

FULL = Finding(
    Check.SEED,
    State.FAIL,
    Text("doctor.seed_silent", seed="a:1", failure=Text("swarm.refuses_connection")),
    Text("doctor.only_seed_down"),
    "a:1",
    0.25,
)
BARE = Finding(Check.CLOCK, State.OK, Text("doctor.clock_plausible"))


@pytest.mark.parametrize("finding", [FULL, BARE])
def test_a_finding_passes_the_pipe_unchanged(finding):
    line = to_line(finding)
    assert "\n" not in line
    assert from_line(line) == finding
    assert in_english(from_line(line).found) == in_english(finding.found)


@pytest.mark.parametrize(
    "line",
    [
        "no json",
        "[]",
        json.dumps(json.loads(to_line(BARE)) | {"id": "fortune"}),
        json.dumps(json.loads(to_line(BARE)) | {"state": "lovely"}),
        json.dumps(json.loads(to_line(BARE)) | {"found": "words"}),
        json.dumps(json.loads(to_line(BARE)) | {"seconds": [1]}),
        "[" * 100_000,
    ],
)
def test_a_line_that_is_no_finding_is_refused(line):
    with pytest.raises(ValueError):  # noqa: PT011 - the kind alone matters
        from_line(line)


def test_every_check_has_a_title():
    assert len({in_english(check.label) for check in Check}) == len(Check)


def test_they_are_listed_by_check_and_otherwise_as_they_came():
    second = Finding(Check.SEED, State.OK, Text("doctor.seed_answers", seed="b:1", milliseconds=3.0), subject="b:1")
    assert listed([FULL, second, BARE]) == [BARE, FULL, second]


@pytest.mark.parametrize(
    ("states", "result"),
    [
        ([], State.OK),
        ([State.OK, State.SKIPPED], State.OK),
        ([State.OK, State.WARN], State.WARN),
        ([State.WARN, State.FAIL, State.OK], State.FAIL),
    ],
)
def test_the_worst_counts_and_what_was_skipped_does_not(states, result):
    assert worst([Finding(Check.CLOCK, state, Text("doctor.clock_plausible")) for state in states]) is result


@pytest.mark.parametrize(
    ("ahead", "uncertain", "state", "words"),
    [
        (0.9, 0.1, State.OK, "The clock agrees with that of a:1."),
        (-2.5, 0.1, State.WARN, "behind that of a:1"),
        (2.5, 0.1, State.WARN, "ahead of that of a:1"),
        (10.0, 0.5, State.FAIL, "The clock is 10 s ahead of that of a:1."),
        # a slow answer proves nothing
        (3.2, 2.5, State.OK, "agrees"),
        (3.2, 1.0, State.WARN, "ahead"),
    ],
)
def test_a_clock_is_judged_by_what_is_certain(ahead, uncertain, state, words):
    found = clock_finding("a:1", ahead, uncertain)
    assert found.state is state
    assert words in in_english(found.found).replace("\N{THIN SPACE}", " ")
    assert bool(found.advice) == (state is not State.OK)


def test_a_clock_is_compared_with_those_of_several_peers_too():
    for ahead, said in ((0.0, "The clock agrees with that of remembered peers."), (-2.5, "behind that of remembered")):
        found = clock_finding(Text("doctor.the_known_peers"), ahead, 0.1)
        assert (said in in_english(found.found), found.subject) == (True, "")


@pytest.mark.parametrize(
    ("others", "known", "state", "words"),
    [
        (False, False, State.FAIL, "only seed. Check the internet connection"),
        (False, True, State.WARN, "only seed, but a remembered peer is enough to join"),
        (True, False, State.WARN, "Another seed is enough"),
        (True, True, State.WARN, "Another seed is enough"),
    ],
)
def test_a_seed_that_is_down_is_a_failure_only_where_nobody_else_leads_into_the_swarm(others, known, state, words):
    found, advice = seed_down(others=others, known=known)
    assert found is state
    assert words in in_english(advice)
