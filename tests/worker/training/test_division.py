"""Several peers draw from one data set: how much of it they see before they repeat any."""

import hashlib

import pytest
import torch
from safetensors.torch import save

from skep.core.project.data import ShardIndex, ShardRef, TextLayout
from skep.core.project.shards import Claim, Claims
from skep.worker.training.data import Samples

LENGTH, SHARDS, EACH = 4, 24, 40
TOTAL = SHARDS * EACH
BATCH = 4


class Board:
    """The claims of all peers, known to each immediately."""

    def __init__(self):
        self.by_peer, self.renewed = {}, set()

    def of(self, peer):
        return Place(self, peer)


class Place:
    def __init__(self, board, peer):
        self._board, self._peer = board, peer

    def claims(self):
        return Claims(tuple(claim for peer, claim in self._board.by_peer.items() if peer != self._peer))

    def publish(self, claim):
        self._board.by_peer[self._peer] = claim

    def renew(self):
        self._board.renewed.add(self._peer)


class Data:
    """Every token of a sample is the sample's number."""

    def __init__(self, folder):
        self.folder, refs = folder, []
        numbers = torch.arange(TOTAL, dtype=torch.int32)[:, None].expand(-1, LENGTH)
        for part in numbers.split(EACH):
            raw = save({"tokens": part.contiguous()})
            refs.append(ShardRef(hashlib.sha256(raw).hexdigest(), len(raw), EACH))
            (folder / refs[-1].sha256).write_bytes(raw)
        self.index = ShardIndex(TextLayout(LENGTH, TOTAL), tuple(refs))

    def peer(self, name, board=None, position=0):
        samples = Samples(
            self.index, name, "run", position, lambda sha256: samples.arrived(sha256, str(self.folder / sha256))
        )
        if board is not None:
            samples.divide(board.of(name))
        return samples


@pytest.fixture
def data(tmp_path):
    return Data(tmp_path)


def draw(samples, batches=1):
    seen = []
    for _ in range(batches):
        while not samples.ready(BATCH):
            pass
        seen += samples.next_batch(BATCH).inputs[:, 0].tolist()
    return seen


def together(peers, batches, speeds=(1, 1, 1, 1)):
    """What the peers draw in turn: as many batches each as its speed, until there are `batches`."""
    seen = []
    while len(seen) < batches * BATCH:
        for samples, speed in zip(peers, speeds, strict=True):
            seen += draw(samples, speed)
    return seen[: batches * BATCH]


def covered(seen):
    return len(set(seen)) / TOTAL


@pytest.mark.parametrize("speeds", [(1, 1, 1, 1), (5, 2, 1, 1)])
def test_four_peers_see_nearly_everything_before_they_repeat(data, speeds):
    board = Board()
    divided = together([data.peer(name, board) for name in "abcd"], TOTAL // BATCH, speeds)
    assert covered(divided) >= 0.95
    alone = together([data.peer(name) for name in "abcd"], TOTAL // BATCH, speeds)
    assert covered(alone) < 0.8  # without division


def test_it_holds_in_later_passes_too(data):
    board = Board()
    peers = [data.peer(name, board) for name in "abcd"]
    together(peers, 2 * TOTAL // BATCH)
    assert covered(together(peers, TOTAL // BATCH)) >= 0.9  # begins and ends within a pass


def test_peers_may_come_go_and_start_again(data):
    board = Board()
    peers = {name: data.peer(name, board) for name in "abcd"}
    seen = together(list(peers.values()), TOTAL // BATCH // 4)
    peers.pop("a")  # its record stays for an hour
    seen += together(list(peers.values()), TOTAL // BATCH // 4, (1, 1, 1))
    peers["e"] = data.peer("e", board)
    peers["b"] = data.peer("b", board, peers["b"].position)
    seen += together(list(peers.values()), TOTAL // BATCH // 2)
    assert covered(seen) >= 0.95


def test_a_newcomer_goes_on_in_the_pass_of_the_others(data):
    board = Board()
    peers = [data.peer(name, board) for name in "ab"]
    together(peers, 5 * TOTAL // 2 // BATCH, (1, 1))
    late = data.peer("c", board)
    draw(late, 10)
    assert late.position // TOTAL == peers[0].position // TOTAL


def test_a_peer_keeps_its_claim_while_it_draws_one_lot(data):
    board = Board()
    samples = data.peer("a", board)
    draw(samples, 2)
    assert board.renewed == {"a"}


def test_wrong_claims_stop_nobody(data):
    board = Board()
    peer = data.peer("a", board)
    liar = Place(board, "liar")
    for number in range(20):
        liar.publish(Claim(number, (1 << 4096) - 1))
        assert len(draw(peer, 3)) == 3 * BATCH
