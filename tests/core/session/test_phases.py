"""What both front ends say of a phase and of a stage."""

import pytest

from english import in_english
from skep.core.session import phases
from skep.core.session.phases import Stage
from skep.language.units import THIN

NOW = 1000.0


def test_every_stage_has_a_label_of_its_own():
    assert [in_english(stage.label) for stage in Stage] == [
        "Check this computer",
        "Fetch training data",
        "Reach the swarm",
        "Warm up",
        "Load the model's state",
    ]


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (None, "Trying again."),
        (NOW, "Trying again."),
        (NOW - 5, "Trying again."),
        (NOW + 30, f"Trying again in 30{THIN}s."),
        (NOW + 90, f"Trying again in 1{THIN}min 30{THIN}s."),
    ],
)
def test_the_next_attempt_is_counted_down(at, said):
    assert in_english(phases.restarting(at, NOW)) == said


@pytest.mark.parametrize(
    ("until", "said"),
    [
        (None, "Leaving the swarm."),
        (NOW + 42, f"Leaving after the next round, in 42{THIN}s at most."),
        (NOW - 1, f"Leaving after the next round, in 0{THIN}s at most."),
    ],
)
def test_a_wait_for_the_last_round_is_counted_down(until, said):
    assert in_english(phases.leaving(until, NOW)) == said
