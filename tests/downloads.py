"""Helpers for tests of downloads: shards of random bytes, the posted messages, and their checks."""

import hashlib
import json
import queue
import random
import time

from urllib3.util import Retry

from english import in_english
from skep.adapters.net.web import Patience
from skep.core.project.addresses import Reach
from skep.core.project.data import ShardRef
from skep.core.project.shards import shard_name
from skep.core.session.messages import IndexFailed, ShardArrived, ShardFailed, ShardProgress

LENGTH = 128
SIZE = 300_000
DEADLINE = 15
QUICK = Patience(connect_seconds=2, read_seconds=10, retry=Retry(2, backoff_factor=0.01))
ROOMY = {"limit_bytes": lambda: 10**9, "keep_free_bytes": lambda: 0}


class Posted:
    """What was posted, in order."""

    def __init__(self):
        self._queue = queue.SimpleQueue()
        self.progress = []

    def __call__(self, message):
        self._queue.put(message)

    def answer(self):
        """The next message that is not progress."""
        while isinstance(message := self._queue.get(timeout=DEADLINE), ShardProgress):
            self.progress.append(message)
        return message

    def first_progress(self):
        message = self._queue.get(timeout=DEADLINE)
        assert isinstance(message, ShardProgress)
        return message

    def nothing_more(self):
        return self._queue.empty()


def make_shard(seed=0, size=SIZE):
    raw = random.Random(seed).randbytes(size)
    return raw, ShardRef(hashlib.sha256(raw).hexdigest(), size, size // LENGTH)


def make_index(*shards):
    return json.dumps(
        {
            "format": 1,
            "sequence_length": LENGTH,
            "vocabulary": 256,
            "shards": [{"sha256": s.sha256, "bytes": s.bytes, "samples": s.samples} for s in shards],
        }
    ).encode()


def wait_for(condition):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def fetch(shards, shard, reach=Reach.ANY):
    posted = Posted()
    shards.fetch(shard, reach, posted)
    return posted.answer()


def assert_arrived(answer, cache, raw, shard):
    assert answer == ShardArrived(shard.sha256, str(cache / shard_name(shard.sha256)))
    assert (cache / shard_name(shard.sha256)).read_bytes() == raw
    assert not list(cache.glob("*.part"))


def assert_failed(answer, *said):
    assert isinstance(answer, ShardFailed | IndexFailed)
    for words in said:
        assert words in in_english(answer.problem.title)
    assert in_english(answer.problem.title).endswith(".")
    assert in_english(answer.problem.hint).endswith(".")
