"""What front ends say of each of several devices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from english import in_english
from fakes import make_progress
from skep.core.device import ComputingDevice, PowerCap
from skep.core.policy.allowance import Allowance
from skep.core.policy.conditions import Condition, Conditions, answered
from skep.core.policy.device_shares import Ceiling
from skep.core.session.devices import device_states
from skep.core.session.snapshot import Snapshot
from skep.core.text import verbatim

READ = Conditions().with_seen(
    {
        Condition.TEMPERATURE: answered(82.0, each={"cuda:0": 67.0, "cuda:1": 82.0}),
        Condition.POWER: answered(142.0, each={"cuda:0": 142.0}),
    }
)
BOTH = Snapshot(
    devices=(ComputingDevice("cuda:0", "RTX 4070"), ComputingDevice("cuda:1", "RTX 4070", 0.5)),
    conditions=READ,
    allowance=Allowance(0.8, verbatim("Because.")),
    progress=replace(make_progress(), share_measured=0.6),
)


def test_two_cards_of_a_model_are_told_apart_with_what_each_did():
    first, second = device_states(BOTH)
    assert (first.name, first.share, first.celsius, first.watts, first.memory_free) == (
        *("RTX 4070 (cuda:0)", 0.6, 67.0),
        *(142.0, None),
    )
    assert (second.name, second.share, second.celsius, second.watts) == ("RTX 4070 (cuda:1)", 0.3, 82.0, None)


def test_one_device_is_no_list():
    assert device_states(replace(BOTH, devices=BOTH.devices[:1])) == ()
    assert device_states(Snapshot()) == ()


def test_ranks_on_the_processor_have_its_temperature():
    ranks = (ComputingDevice("cpu:0", "CPU"), ComputingDevice("cpu:1", "CPU"))
    warm = Conditions().with_seen({Condition.TEMPERATURE: answered(50.0, each={"cpu": 50.0})})
    assert [each.celsius for each in device_states(replace(BOTH, devices=ranks, conditions=warm))] == [50.0, 50.0]


def test_while_paused_no_device_computes_whatever_was_measured():
    paused = replace(BOTH, allowance=Allowance(0.0, verbatim("Paused.")))
    assert [each.share for each in device_states(paused)] == [0.0, 0.0]


def test_before_anything_is_measured_no_share_is_told():
    assert [each.share for each in device_states(replace(BOTH, progress=None))] == [None, None]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"ceilings": {"cuda:1": Ceiling(0.4, verbatim("Too warm."))}}, "Too warm."),
        ({"ceilings": {"cuda:1": Ceiling(0.8, verbatim("Too warm."))}}, "Too warm."),
        ({"ceilings": {"cuda:1": Ceiling(0.9, verbatim("Too warm."))}}, ""),  # the share of all is lower
        ({"power_caps": {"cuda:1": PowerCap(150.0)}}, "Limited to 150 W."),
        ({"power_caps": {"cuda:1": PowerCap(refused=verbatim("No."))}}, "No power cap. No."),
        ({"power_caps": {"cuda:0": PowerCap(150.0)}}, ""),
    ],
)
def test_what_holds_a_device_back_is_said(changes: dict[str, Any], said: str):
    assert in_english(device_states(replace(BOTH, **changes))[1].held_back) == said
