"""A process that a known attack would harm joins no swarm, and says which attack it is."""

import math
import os
import signal
import time
from types import SimpleNamespace

import psutil
import pytest
from hivemind.dht import node
from hivemind.dht.protocol import DHTProtocol
from hivemind.p2p import P2P
from hivemind.utils import MSGPackSerializer

from english import raises
from skep.core.errors import BadInput
from skep.host.server import seed
from skep.worker import joining, self_test, self_test_rounds
from skep.worker.connection import guards, neighbours, quotas, streams
from skep.worker.swarm import experience
from skep.worker.swarm.averaging import parts
from skep.worker.swarm.averaging.reducer import CheckedReducer
from skep.worker.swarm.averaging.robust import Combined, Median, RobustMean, mean
from skep.worker.swarm.experience import Experience
from skep.worker.swarm.possible_epochs import PossibleEpochs
from skep.worker.swarm.state.download import Partial
from unguarded import unguarded_again

SECONDS = 0.3

UNDONE = {
    "nested record": (MSGPackSerializer, "_decode_ext_types", classmethod(guards._stock_decode)),
    "large value": (MSGPackSerializer, "loads", classmethod(guards._stock_loads)),
    "long frame": (P2P, "receive_raw_data", staticmethod(guards._stock_receive)),
    "many streams": (P2P, "add_binary_stream_handler", streams._stock_add),
    "undecodable value": (node, "_SearchState", guards.CarefulSearch.__bases__[0]),
    "bad neighbour": (DHTProtocol, "_validate_dictionary", lambda *_: False),
    "bad records": (guards.RecordGuard, "validate", lambda *_: True),
    "flood of records": (DHTProtocol, "rpc_store", quotas._stock_store),
    "repeated question": (DHTProtocol, "rpc_find", quotas._stock_find),
    "invented neighbours": (DHTProtocol, "update_routing_table", neighbours._stock_update),
    "false epoch": (PossibleEpochs, "highest", lambda *_, **__: math.inf),
    "false samples": (experience, "limited", lambda strangers, _: strangers),
    "invented peers": (Experience, "_as_far_as_there", lambda _self, strangers, *_: dict(strangers)),
    "false claims": (self_test_rounds, "is_credible", lambda _: True),
    "undecoded parts": (parts, "check", lambda *_: None),
    "bad parts": (CheckedReducer, "_check", lambda *_: None),
    "large gradients": (RobustMean, "_most", lambda *_, **__: math.inf),
    "false parameters": (Median, "combine", lambda _self, _number, parts: Combined(mean(parts))),
    "bad state": (self_test, "check", lambda *_: None),
    "false epoch of a state": (Partial, "_checked", lambda *_: 5),
}


@pytest.fixture(autouse=True)
def _as_installed():
    with unguarded_again():
        guards.install()
        yield


@pytest.mark.alone
def test_all_known_attacks_are_refused_in_a_moment():
    took = []
    for _ in range(5):
        begun = time.monotonic()
        self_test.run()
        took.append(time.monotonic() - begun)
    assert min(took) <= SECONDS


@pytest.mark.parametrize("attack", self_test.ATTACKS)
def test_one_that_passes_is_named(attack, monkeypatch):
    target, name, stock = UNDONE[attack]
    monkeypatch.setattr(self_test.guards, "install", lambda: None)
    monkeypatch.setattr(target, name, stock)
    with raises(BadInput, match=rf"A known attack passes skep's guards here \({attack}\), so skep joins no swarm"):
        self_test.run()


def test_one_that_is_never_answered_is_named_and_leaves_no_process(monkeypatch):
    monkeypatch.setattr(self_test, "TEST_SECONDS", 0.5)
    # alone: a busy computer may not get to it in time
    monkeypatch.setattr(self_test, "ATTACKS", {"large value": lambda: time.sleep(60)})
    before = psutil.Process().children()
    with raises(BadInput, match="large value"):
        self_test.run()
    assert set(psutil.Process().children()) <= set(before)


def test_ctrl_c_reaches_the_fork_too_and_is_no_attack_that_passed(monkeypatch):
    monkeypatch.setitem(self_test.ATTACKS, "large value", lambda: os.kill(os.getpid(), signal.SIGINT) is None)
    self_test.run()


def test_neither_a_worker_nor_a_seed_starts_a_dht_then(monkeypatch):
    monkeypatch.setitem(self_test.ATTACKS, "nested record", lambda: False)
    worker = joining.Joining(**dict.fromkeys(joining.Joining.__dataclass_fields__))
    with raises(BadInput, match="nested record"):
        worker._reach_swarm(None, self_test.begin(), lambda: None)
    with raises(BadInput, match="nested record"):
        seed.start_dht(SimpleNamespace())
