"""Simulates the swarm's progress records with a simulated clock.

The trackers report and fetch exactly at the times in their code. Peers train in step batches at their rate; the first
peer that considers the epoch complete ends it for all, as a round does. No other process runs, so the figures are the
same each time.
"""

from dataclasses import dataclass, field
from unittest import mock

import hivemind.optim.progress_tracker as tracker_module
import hivemind.utils.performance_ema as ema_module
from hivemind.p2p import PeerID
from hivemind.utils import ValueWithExpiration

from skep.worker.swarm import tracker as ours_module
from skep.worker.swarm.claims import all_there
from skep.worker.swarm.global_rounds import RECORD_SECONDS
from skep.worker.swarm.tracker import LiveProgressTracker

TARGET = 240
STEP_BATCH = 2
RATE = 4.0
"""Samples per second of each of the three peers: epochs of 20 s."""
TICK = 0.05


@dataclass
class Table:
    """A DHT in which records are visible immediately and end when they expire."""

    now: float = 1000.0
    records: dict = field(default_factory=dict)
    peer_id = mock.Mock(to_bytes=lambda: b"peer")
    client_mode = False

    def clock(self):
        return self.now

    def add_validators(self, _validators):
        pass

    def get(self, _key, **_options):
        alive = {key: each for key, each in self.records.items() if each.expiration_time > self.now}
        return ValueWithExpiration(alive, self.now + 60) if alive else None

    def put(self, name, value, lasts):
        self.records[name] = ValueWithExpiration(value, self.now + lasts)

    def store(self, _key, subkey, value, expiration_time, **_options):
        self.records[subkey] = ValueWithExpiration(value, expiration_time)
        return mock.Mock(result=lambda _within: True)


class SimulatedPeer:
    def __init__(self, kind, table, number):
        self.table, self.share, self.done = table, 1.0, 0.0
        self.tracker = kind(table, "run", TARGET, start=False, metadata_expiration=kind_expiration(kind))
        self.tracker._local_public_key = self.id = number
        if kind is LiveProgressTracker:
            self.tracker.rate = lambda: RATE * self.share
            self.tracker.step_batch = STEP_BATCH
            self.tracker._there = all_there
        self.epoch, self.accumulated, self.counted = 0, 0, 0.0
        self.resting = self.dead = False
        self.reported_at = -1e9

    def tick(self):
        """TICK seconds of training, and the reports and fetches that are due."""
        self.counted += RATE * self.share * TICK
        if self.counted - self.accumulated >= STEP_BATCH:
            self.accumulated += STEP_BATCH
            if isinstance(self.tracker, LiveProgressTracker):
                self.tracker.grow(self.epoch, self.accumulated)
            else:
                self.tracker.report_local_progress(self.epoch, self.accumulated)
        if isinstance(self.tracker, LiveProgressTracker):
            self.tracker.tell()
        self._publish()
        if self.table.now >= self.tracker.global_progress.next_fetch_time:
            self.look()

    def _publish(self):
        if self.dead:
            return
        due = self.table.now - self.reported_at > self.tracker.metadata_expiration / 2
        if self.tracker.should_report_progress.is_set() or due:
            self.tracker.should_report_progress.clear()
            self.reported_at = self.table.now
            record = self.tracker.local_progress.dict()
            if record is not None:
                record["peer_id"] = self.id
            self.table.put(self.tracker._local_public_key, record, self.tracker.metadata_expiration)

    def look(self):
        found = self.table.get("run_progress")
        self.tracker.global_progress = self.tracker._parse_swarm_progress_data(found.value if found else None)

    def pause(self):
        """As the training loop does; a stock hivemind peer only stops."""
        self.share, self.resting = 0.0, True
        if isinstance(self.tracker, LiveProgressTracker):
            self.accumulated = int(self.counted)
            self.tracker.report_local_progress(self.epoch, self.accumulated)
            self.tracker.rest()

    def die(self):
        self.resting = self.dead = True

    def end_epoch(self, epoch):
        """The round uses what this peer has accumulated; returns that."""
        if self.dead:
            return 0
        taken, self.epoch, self.accumulated, self.counted = int(self.counted), epoch, 0, 0.0
        if self.resting and isinstance(self.tracker, LiveProgressTracker):
            self.tracker.withdraw(0.0)
            self._publish()
            return taken
        if self.resting:
            return taken  # it no longer calls step and takes no part in rounds: its record does not change
        with self.tracker.lock_global_progress:
            self.tracker.update_epoch(epoch)
        return taken

    def average_with(self, peers):
        """The round that has just ended was with `peers`."""
        if isinstance(self.tracker, LiveProgressTracker) and not self.resting:
            heard = [str(PeerID(peer.id)) for peer in peers if peer is not self and not peer.resting]
            self.tracker.averaged(self.epoch - 1, heard)


def kind_expiration(kind):
    return RECORD_SECONDS if kind is LiveProgressTracker else 60.0


def epochs(kind, event, count):
    """The samples of each epoch of three peers; in the middle of epoch 10, `event` is called with one of them."""
    table = Table()
    clocks = [
        mock.patch.object(tracker_module, "get_dht_time", table.clock),
        mock.patch.object(ours_module, "get_dht_time", table.clock),
        mock.patch.object(ema_module.time, "perf_counter", table.clock),
        mock.patch.object(ours_module.time, "monotonic", table.clock),
    ]
    for clock in clocks:
        clock.start()
    try:
        peers = [SimulatedPeer(kind, table, b"%d" % number) for number in range(3)]
        return list(_epochs(table, peers, event, count))
    finally:
        for clock in clocks:
            clock.stop()


def _epochs(table, peers, event, count):
    for epoch in range(count):
        begun = table.now
        happened = epoch != 10
        while True:
            table.now += TICK
            if not happened and table.now - begun > 8.0:
                event(peers[0])
                happened = True
            for peer in peers:
                if not peer.resting:
                    peer.tick()
                else:
                    peer._publish()
            if any(peer.tracker.ready_to_update_epoch for peer in peers if not peer.resting):
                break
        yield sum(peer.end_epoch(epoch + 1) for peer in peers)
        table.now += 1.0  # duration of the round
        for peer in peers:
            peer.average_with(peers)
            peer.tracker.performance_ema.reset_timer()
