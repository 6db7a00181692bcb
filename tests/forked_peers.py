"""Ends or stops peers that were forked from this process without leaving one of hivemind's locks behind.

Futures of all these processes share locks: one that is killed or stopped while it holds one keeps it for good, and every
other process then waits without end. In skep each worker has its own, and its processes end together.
"""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
from hivemind.dht import DHT
from hivemind.utils.mpfuture import MPFuture, SharedBytes

import families

LOCK_SECONDS = 10
JOIN_SECONDS = 10


@contextmanager
def no_lock_held() -> Iterator[None]:
    """While this is open no other process holds one of these locks, unless it has kept it for LOCK_SECONDS already."""
    with ExitStack() as held:
        for lock in (MPFuture._initialization_lock, MPFuture._update_lock, SharedBytes._lock):
            if lock.acquire(timeout=LOCK_SECONDS):
                held.callback(lock.release)
        yield


def kill(processes):
    with no_lock_held():
        families.kill(processes)
        # one that was about to take a lock must have ended before the lock is free
        deadline = time.monotonic() + JOIN_SECONDS
        while not all(_has_ended(process.pid) for process in processes) and time.monotonic() < deadline:
            time.sleep(0.01)


def _has_ended(pid):
    # without psutil's wait, which takes the exit status that multiprocessing waits for
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def suspend(processes):
    with no_lock_held():
        for process in processes:
            process.suspend()


def family(process):
    root = psutil.Process(process.pid)
    return [root, *root.children(recursive=True)]


def end(averagers):
    """Kill averagers, and wait for their ends."""
    kill(averagers)
    for averager in averagers:
        averager.join(JOIN_SECONDS)


def end_dhts(dhts):
    """Kill all processes below this one, and wait for the ends of these DHTs."""
    kill(psutil.Process().children(recursive=True))
    for dht in dhts:
        dht.join(JOIN_SECONDS)


class LastingDHT(DHT):
    """A node that goes on when a process that used it is killed.

    Unpickling a request connects to the process that sent it, for the future of its result. hivemind's node ends with
    EOFError if that process is killed meanwhile, and then every other user of the node waits without end.
    """

    def run(self):
        self._inner_pipe = _Requests(self._inner_pipe)
        super().run()


class _Requests:
    """The pipe of a node's requests; a request that cannot be unpickled is an error that hivemind passes over."""

    def __init__(self, pipe):
        self._pipe, self._parent = pipe, os.getppid()

    def __getattr__(self, name):
        return getattr(self._pipe, name)

    def recv(self):
        try:
            return self._pipe.recv()
        except EOFError as error:
            if os.getppid() != self._parent:
                raise  # the end of the pipe itself
            raise ConnectionError("the sender of a request has ended") from error
