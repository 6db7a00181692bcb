"""The control loops: a device's temperature limit, and GPU memory that is released and taken again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skep.core.policy.allowance import GpuMemory
from skep.core.policy.regulators import FULL, Heat, Room, heated, roomed

CAP = 80.0
GB = 10**9


def cool_down(heat: Heat, celsius: float, seconds: int, share: float = 1.0) -> Heat:
    start = int(heat.moved_at)
    for second in range(start, start + seconds + 1):
        heat = heated(heat, celsius, CAP, share, float(second))
    return heat


def test_below_the_cap_nothing_is_limited():
    assert heated(Heat(), 79.9, CAP, 1.0, 5.0) == Heat()
    assert heated(Heat(), None, CAP, 1.0, 5.0) == Heat()


def test_at_the_cap_the_share_goes_down_at_once_from_what_is_computed():
    assert heated(Heat(), 80.0, CAP, 1.0, 0.1).limit == pytest.approx(0.9)
    assert heated(Heat(), 80.0, CAP, 0.5, 0.1).limit == pytest.approx(0.45)
    assert heated(Heat(), 84.0, CAP, 1.0, 0.1).limit == pytest.approx(0.7)


def test_the_next_step_waits_until_the_last_one_can_show():
    once = heated(Heat(), 81.0, CAP, 1.0, 10.0)
    assert heated(once, 81.0, CAP, once.limit, 11.9) == once
    assert heated(once, 81.0, CAP, once.limit, 12.0).limit < once.limit


def test_far_above_the_cap_computing_stops_and_comes_back_slowly():
    stopped = heated(Heat(), 90.0, CAP, 1.0, 0.0)
    assert stopped.limit == 0.0
    assert heated(stopped, 95.0, CAP, 0.0, 50.0) == stopped
    assert heated(stopped, 82.0, CAP, 0.0, 100.0).limit == 0.0
    assert heated(stopped, 79.0, CAP, 0.0, 200.0).limit == 0.0
    assert heated(stopped, 78.0, CAP, 0.0, 200.0).limit == 0.05


def test_it_never_goes_below_the_least_share_by_steps_nor_above_all():
    assert cool_down(Heat(0.06, 0.0), 88.0, 20, share=0.06).limit == 0.05
    assert cool_down(Heat(0.9, 0.0), 60.0, 60).limit == FULL


def test_it_holds_a_device_at_its_cap_whatever_full_share_would_make_of_it():
    # a first-order thermal model: 30 degrees when idle, 100 at full share, time constant 20 s
    heat, celsius, hottest, shares = Heat(), 30.0, 0.0, []
    for tick in range(4 * 600):
        celsius += (30.0 + 70.0 * heat.limit - celsius) / 80
        heat = heated(heat, celsius, CAP, heat.limit, tick / 4)
        hottest = max(hottest, celsius)
        shares.append(heat.limit)
    settled = shares[-4 * 200 :]
    assert hottest < CAP + 2
    assert 0.5 < sum(settled) / len(settled) < 0.72
    assert celsius > CAP - 8


# --- memory


def pass_by(room: Room, free: int | None, seconds: float, begin: float) -> Room:
    for quarter in range(int(seconds * 4) + 1):
        room = roomed(room, free, GB, begin + quarter / 4)
    return room


def test_with_the_reserve_free_all_is_kept():
    assert roomed(Room(), GB, GB, 1.0) == Room()
    assert roomed(Room(), None, GB, 1.0) == Room()


def test_below_the_reserve_caches_go_at_once_and_then_the_model():
    shrunk = roomed(Room(), GB - 1, GB, 10.0)
    assert shrunk.level is GpuMemory.SHRINK
    assert pass_by(shrunk, GB - 1, 2.75, 10.0).level is GpuMemory.SHRINK
    assert pass_by(shrunk, GB - 1, 3.0, 10.0).level is GpuMemory.RELEASE


def test_when_shrinking_was_enough_all_is_taken_back_after_a_calm():
    shrunk = roomed(Room(), 0, GB, 0.0)
    assert pass_by(shrunk, GB, 14.75, 1.0).level is GpuMemory.SHRINK
    assert pass_by(shrunk, GB, 15.0, 1.0).level is GpuMemory.KEEP
    broken = roomed(pass_by(shrunk, GB, 10.0, 1.0), 0, GB, 11.5)
    assert broken.level is GpuMemory.RELEASE
    assert roomed(pass_by(shrunk, GB, 1.0, 1.0), 0, GB, 2.5).roomy_since is None


def test_what_became_free_by_our_own_release_is_not_room_for_us():
    released = pass_by(roomed(Room(), 0, GB, 0.0), 0, 3.0, 0.0)
    settled = pass_by(released, 4 * GB, 6.0, 3.0)  # our 4 GB are free; the other program still uses the rest
    assert (settled.level, settled.ours) == (GpuMemory.RELEASE, 4 * GB)
    assert pass_by(settled, 4 * GB, 60.0, 10.0).level is GpuMemory.RELEASE
    roomy = pass_by(settled, 5 * GB, 15.0, 80.0)
    assert roomy.level is GpuMemory.KEEP
    assert roomy.ours == 4 * GB


def test_room_that_does_not_last_is_not_taken():
    released = replace(Room(GpuMemory.RELEASE, -100.0), ours=GB)
    nearly = pass_by(released, 2 * GB, 10.0, 0.0)
    assert nearly.roomy_since == 0.0
    assert roomed(nearly, GB, GB, 11.0).roomy_since is None
