"""The parts of an allowance that are sent to the worker, and the worker's reports that the session keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from english import in_english
from fakes import make_index, make_joined, make_progress, make_project
from skep.core.policy.allowance import Allowance, GpuMemory
from skep.core.policy.decision import Grant
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session import step as session
from skep.core.session.control import snapshot_of, status
from skep.core.session.snapshot import Snapshot
from skep.core.session.step import initial, step
from skep.core.text import verbatim

NOW = 1_000_000.0
FULL = Allowance(1.0, verbatim("Training at full share."))


def granted(monkeypatch: pytest.MonkeyPatch, allowance: Allowance) -> None:
    monkeypatch.setattr(session, "grant", lambda state, *_args, **_named: Grant(state, (), allowance))


def orders(effects: tuple[e.Effect, ...]) -> list[e.Effect]:
    return [effect for effect in effects if isinstance(effect, e.SetAllowance)]


def through(snapshot: Snapshot, *messages: m.Message) -> tuple[Snapshot, tuple[e.Effect, ...]]:
    effects: tuple[e.Effect, ...] = ()
    for message in messages:
        snapshot, effects = step(snapshot, message, NOW)
    return snapshot, effects


def training() -> Snapshot:
    project = make_project()
    return through(initial({}, None, NOW), m.Join(project), m.IndexArrived(make_index(), project), make_joined())[0]


@pytest.mark.parametrize(
    "changed",
    [replace(FULL, share=0.2), replace(FULL, present=True), replace(FULL, memory=GpuMemory.SHRINK)],
)
def test_whatever_the_worker_must_know_is_told_when_it_changes(
    monkeypatch: pytest.MonkeyPatch, changed: Allowance
) -> None:
    before = training()
    granted(monkeypatch, changed)
    after, effects = through(before, m.Tick())
    assert orders(effects) == [e.SetAllowance(changed)]
    assert orders(through(after, m.Tick())[1]) == []


def test_another_sentence_is_no_news_to_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    before = training()
    granted(monkeypatch, replace(FULL, reason="Another reason.", rule="another"))
    after, effects = through(before, m.Tick())
    assert orders(effects) == []
    assert in_english(after.allowance.reason) == "Another reason."


def test_the_start_carries_the_first_orders_and_what_is_to_be_left_free(monkeypatch: pytest.MonkeyPatch) -> None:
    granted(monkeypatch, replace(FULL, present=True, memory=GpuMemory.RELEASE))
    project = make_project()
    settings: dict[str, bool | int | float | str] = {"memory.leave_gpu_gb": 1.5, "memory.leave_ram_gb": 2.0}
    _, effects = through(initial(settings, None, NOW), m.Join(project), m.IndexArrived(make_index(), project))
    (start,) = [effect.options for effect in effects if isinstance(effect, e.StartWorker)]
    assert orders(effects) == []
    assert (start.present, start.memory) == (True, GpuMemory.RELEASE)
    assert (start.leave_gpu, start.leave_ram) == (1_500_000_000, 2_000_000_000)


def test_a_heavy_project_is_known_from_joining_on_and_followed() -> None:
    project = make_project()
    joining = through(initial({}, None, NOW), m.Join(project), m.IndexArrived(make_index(), project))[0]
    joined, _ = through(joining, make_joined(heavy=True))
    assert joined.heavy
    assert snapshot_of(status(joined)).heavy
    assert not through(joined, m.WorkerProgress(make_progress()))[0].heavy


def test_acknowledged_memory_is_for_front_ends() -> None:
    before = training()
    assert through(before, m.WorkerMemory(GpuMemory.RELEASE, 0.1)) == (before, ())
