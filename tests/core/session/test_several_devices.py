"""Several devices of one computer: what the session grants each of them, and tells the worker."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.session.test_step import JOINING, Course
from english import in_english
from fakes import make_joined, make_progress
from skep.core.device import ComputingDevice
from skep.core.policy.allowance import GpuMemory
from skep.core.policy.conditions import Condition, answered
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot

BOTH = (ComputingDevice("cuda:0", "Card"), ComputingDevice("cuda:1", "Card"))


def with_settings(values: dict[str, Any]) -> Course:
    return Course(Snapshot(settings=values))


def joined(**more: Any) -> m.WorkerJoined:
    return msgspec.structs.replace(make_joined(), device="Card", devices=BOTH, **more)


def warm(**degrees: float) -> m.ConditionsSeen:
    each = {device.replace("_", ":"): value for device, value in degrees.items()}
    return m.ConditionsSeen({Condition.TEMPERATURE: answered(max(each.values()), each=each)})


def test_one_card_that_is_too_warm_gets_less_while_the_other_goes_on():
    course = Course().see(*JOINING, joined(), warm(cuda_0=60.0, cuda_1=85.0))
    assert course.snapshot.allowance.share == 1.0
    assert course.snapshot.shares == {"cuda:1": pytest.approx(0.65)}
    assert course.effects == (e.SetAllowance(course.snapshot.allowance, course.snapshot.shares),)
    course.see(warm(cuda_0=60.0, cuda_1=95.0))
    assert course.snapshot.shares == {"cuda:1": 0.0}
    assert course.snapshot.phase is Phase.TRAINING


def test_when_all_cards_are_too_warm_the_share_is_that_of_the_least_warm():
    course = Course().see(*JOINING, joined(), warm(cuda_0=81.0, cuda_1=95.0))
    assert course.snapshot.allowance.share == pytest.approx(0.85)
    assert in_english(course.snapshot.allowance.reason) == "Keeping the GPU below 80 °C."


def test_cards_that_share_one_model_all_wait_for_the_one_that_is_too_warm():
    course = Course().see(*JOINING, joined(in_step=True), warm(cuda_0=60.0, cuda_1=85.0))
    assert course.snapshot.allowance.share == pytest.approx(0.65)


def test_once_the_warm_card_is_lost_it_holds_back_no_other():
    course = Course().see(*JOINING, joined(), warm(cuda_0=60.0, cuda_1=85.0))
    course.see(m.WorkerProgress(make_progress(), devices=BOTH[:1]))
    assert course.snapshot.shares == {}


def test_a_card_has_the_temperature_cap_of_its_own():
    course = with_settings({"compute.device_limits": "cuda:0 60C"})
    course.see(*JOINING, joined(), warm(cuda_0=65.0, cuda_1=75.0))
    assert list(course.snapshot.shares) == ["cuda:0"]


def test_a_workers_options_have_the_limits_of_single_cards():
    course = with_settings({"compute.device": "cuda:0,cuda:1", "compute.device_limits": "cuda:0 50%; cuda:1 3.5GB"})
    course.see(*JOINING)
    (options,) = [effect.options for effect in course.effects if isinstance(effect, e.StartWorker)]
    assert options.ceilings == {"cuda:0": 0.5}
    assert options.leave_gpu_of == {"cuda:1": 3_500_000_000}


def test_the_fullest_card_decides_whether_memory_is_given_back():
    course = with_settings({"compute.device_limits": "cuda:1 4GB"})
    course.see(*JOINING, joined())
    free = {"cuda:0": 2 * 10**9, "cuda:1": 5 * 10**9}
    course.see(m.ConditionsSeen({Condition.GPU_MEMORY: answered(2 * 10**9, each=free)}))
    assert course.snapshot.allowance.memory is GpuMemory.KEEP
    course.see(m.ConditionsSeen({Condition.GPU_MEMORY: answered(2 * 10**9, each=free | {"cuda:1": 3 * 10**9})}))
    assert course.snapshot.allowance.memory is GpuMemory.SHRINK


def test_the_reason_names_the_cap_of_a_card_that_is_too_warm():
    course = with_settings({"compute.device_limits": "cuda:0 50% 90C; cuda:1 70C"})
    course.see(*JOINING, joined(), warm(cuda_0=60.0, cuda_1=79.0))
    course.see(warm(cuda_0=99.0, cuda_1=79.0))
    assert course.snapshot.allowance.rule == "heat"
    assert in_english(course.snapshot.allowance.reason) == "Keeping the GPU below 70 °C."


def test_a_card_that_is_not_read_by_its_own_name_has_the_reading_of_all():
    other = msgspec.structs.replace(joined(), devices=(ComputingDevice("cuda:7", "Card"),))
    course = Course().see(*JOINING, other, warm(cuda_0=95.0))
    assert course.snapshot.allowance.share == 0.0


def test_memory_that_was_given_back_is_used_again_when_each_card_has_room_for_what_was_on_it():
    course = Course().see(*JOINING, joined())

    def free(first: float, second: float, seconds: int) -> GpuMemory:
        each = {"cuda:0": int(first * 1e9), "cuda:1": int(second * 1e9)}
        course.see(m.ConditionsSeen({Condition.GPU_MEMORY: answered(min(each.values()), each=each)}))
        for _ in range(seconds):
            course.see(m.Tick(), after=1.0)
        return course.snapshot.allowance.memory

    assert free(0.5, 2.0, 1) is GpuMemory.SHRINK
    assert free(0.5, 2.0, 4) is GpuMemory.RELEASE
    assert free(8.5, 8.0, 6) is GpuMemory.RELEASE  # 8 GB and 6 GB were ours
    assert free(12.5, 8.0, 20) is GpuMemory.KEEP


def test_the_first_card_by_its_short_name_is_the_first_card():
    course = with_settings({"compute.device": "cuda", "compute.device_limits": "cuda:0 50%"})
    course.see(m.Tick())
    assert course.snapshot.shares == {"cuda:0": 0.5}
