"""The bridge between the engine's thread and Qt's: no more wake-ups than changes."""

from __future__ import annotations

import queue
import threading
from dataclasses import replace

import pytest

from skep.core.record.usage import Meter
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep_gui.app.background import Background, Bridge, Commands

TRAINING = Snapshot(phase=Phase.TRAINING)


@pytest.fixture
def bridge(qtbot, qapp):
    return Bridge(qapp)


@pytest.fixture
def seen(bridge):
    found = []
    bridge.changed.connect(found.append)
    return found


def told(bridge, qapp, *news):
    """Pass each (message, snapshot) from another thread, as an engine does; then deliver the signals."""
    engine = threading.Thread(target=lambda: [bridge.observe(*each) for each in news])
    engine.start()
    engine.join()
    qapp.processEvents()


def test_many_messages_cost_one_update_with_the_newest(bridge, seen, qapp):
    leaving = replace(TRAINING, phase=Phase.LEAVING)
    told(bridge, qapp, (m.Tick(), TRAINING), (m.Tick(), leaving))
    assert seen == [leaving]


def test_a_tick_that_only_moves_the_meter_wakes_nobody(bridge, seen, qapp):
    told(bridge, qapp, (m.Tick(), TRAINING))
    told(bridge, qapp, (m.Tick(), replace(TRAINING, meter=Meter(900.0))), (m.Tick(), replace(TRAINING)))
    assert len(seen) == 1
    told(bridge, qapp, (m.Tick(), replace(TRAINING, joined=True)))
    assert len(seen) == 2


def test_a_contribution_is_told_even_where_nothing_else_changed(bridge, seen, qapp):
    settled = []
    bridge.settled.connect(lambda: settled.append(True))
    told(bridge, qapp, (m.Tick(), TRAINING))
    told(bridge, qapp, (m.ContributionConfirmed("c", 1, 8, 2), TRAINING))
    assert (len(seen), settled) == (2, [True])


def test_a_command_waits_for_no_other_work(qapp):
    background, hangs, came = Background(qapp), threading.Event(), queue.SimpleQueue()
    try:
        for lane in ({}, {"slow": True}, {"slow": True}, {"last": True}):
            background.run(hangs.wait, **lane)
        commands = Commands(background)
        commands.pause(None)
        commands.open(came.put)
        commands.leave()
        assert [came.get(timeout=10) for _ in range(2)] == [m.Pause(None), m.Leave(now=False)]
    finally:
        hangs.set()
        background.close()
