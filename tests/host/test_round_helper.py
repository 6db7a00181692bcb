"""Whose records the round helper reads."""

from types import SimpleNamespace

from hivemind.p2p import PeerID
from hivemind.utils import ValueWithExpiration, get_dht_time

from skep.host.server.round_helper import Onlooker
from skep.worker.connection.stored import LONGEST_ID


class Records:
    """An Onlooker's view of these records, with peers that all answer; notes whom it asks for, and where it stands."""

    def __init__(self, *records):
        found = {number: ValueWithExpiration(each, get_dht_time() + 30) for number, each in enumerate(records)}
        answer = SimpleNamespace(result=lambda _within: ValueWithExpiration(found, get_dht_time() + 30))
        self.dht = SimpleNamespace(get=lambda *_key, **_options: answer)
        self.training_progress_key, self._there = "run_progress", self._ask

    def _ask(self, peers):
        self.asked = peers
        return dict.fromkeys(peers, 1.0)

    def stand_at(self, epoch):
        self.epoch = epoch

    def _parse_swarm_progress_data(self, _records):
        return SimpleNamespace(num_peers=2, num_clients=2)


def test_an_id_that_is_too_long_is_nobodys():
    records = Records({"peer_id": b"ann", "epoch": 5}, {"peer_id": bytes(LONGEST_ID + 1), "epoch": 9}, None)
    assert Onlooker.see(records)
    assert (records.asked, records.epoch) == ({str(PeerID(b"ann"))}, 5)
