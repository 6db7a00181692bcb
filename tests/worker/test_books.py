"""Other peers' epochs when one of three is paused or slowed: what hivemind makes of it, and what ours does."""

from statistics import mean

import pytest
from hivemind.optim.progress_tracker import ProgressTracker

from books import TARGET, epochs
from skep.worker.tracker import PoliteTracker


def pause(peer):
    peer.pause()


def slow_down(peer):
    peer.share = 0.2


@pytest.mark.parametrize("event", [pause, slow_down])
def test_ours_fills_every_epoch(event):
    samples = epochs(PoliteTracker, event, 16)
    undisturbed, after = mean(samples[3:10]), samples[10:15]
    assert undisturbed == pytest.approx(TARGET, rel=0.03)
    assert after[0] == pytest.approx(undisturbed, rel=0.1)
    assert mean(after) == pytest.approx(undisturbed, rel=0.05)


def test_stock_ends_an_epoch_before_it_is_full_when_a_peer_pauses():
    samples = epochs(ProgressTracker, pause, 16)
    undisturbed, after = mean(samples[3:10]), samples[10:15]
    assert undisturbed == pytest.approx(TARGET, rel=0.03)
    assert after[0] < 0.9 * undisturbed  # the rate that was told last is believed for as long as the record lasts
