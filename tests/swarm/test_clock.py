"""A seed whose clock differs from ours: hivemind refuses it, and skep says which clock is off. Real p2pd on loopback."""

import multiprocessing
import time
from unittest import mock

import pytest

from english import in_english, raises
from skep.adapters.storage.identity import FileIdentity
from skep.core.errors import SwarmError
from skep.core.project.data import ShardIndex, TextLayout
from skep.core.session.messages import WorkerOptions
from skep.worker.connection import clocks
from skep.worker.connection.clocks import ClockWatch
from skep.worker.connection.network import reach

TIME = "hivemind.dht.protocol.get_dht_time"


@pytest.mark.parametrize(("shift", "said"), [(10, "10 s behind"), (-10, "10 s ahead of")])
def test_a_clock_that_is_off_by_ten_seconds_is_said_in_words(private_sockets, make_dhts, tmp_path, shift, said):
    def shifted():
        return time.time() + shift

    with mock.patch(TIME, shifted):  # kept by the process that is forked now
        (seed,) = make_dhts(1)
    identity = FileIdentity(tmp_path / "peer.id")
    identity.peer_id  # noqa: B018 - creates the key
    options = WorkerOptions(
        "{}", ShardIndex(TextLayout(8, 256), ()), identity_path=str(identity.path), run_folder=str(private_sockets)
    )
    with raises(SwarmError, match=f"This computer's clock is {said}"):
        reach(options, [str(address) for address in seed.get_visible_maddrs()])


def test_a_clock_that_is_set_wrongly_during_a_run_is_told_and_so_is_its_end(make_dhts):
    shift, told = multiprocessing.Value("d", 0.0), []

    def shifted():
        return time.time() + shift.value

    with mock.patch(TIME, shifted):  # kept by the process that is forked now
        make_dhts(1)
    _, ours = make_dhts(1)
    watch = ClockWatch(clocks.asking(ours), told.append)
    watch.look()
    assert not told
    shift.value = 10.0
    watch.look()
    shift.value = 0.0
    watch.look()
    assert [in_english(each.problem.title) for each in told] == [
        "This computer's clock is 10 s behind other peers' clocks.",
        "This computer's clock agrees with other peers' clocks again.",
    ]
