"""Ranks of one computer as real processes, which communicate by gloo over the loopback of a network of their own."""

import ctypes
import multiprocessing
import os
import subprocess
import traceback
from datetime import timedelta
from pathlib import Path

CLONE_NEWNET = 0x40000000
FORK = multiprocessing.get_context("fork")
PATIENCE = 120
"""Seconds within which the ranks are done on a busy computer."""


def own_network():
    """Whether a network of one's own can be had here; it takes root."""
    return os.geteuid() == 0


def on_ranks(folder, work, count=2):
    """What `work(rank)` returns on each of `count` ranks, which must be plain data. Their torch uses one thread."""
    ours, theirs = FORK.Pipe(duplex=False)
    computer = FORK.Process(target=_computer, args=(folder, work, count, theirs))
    computer.start()
    theirs.close()
    try:
        assert ours.poll(PATIENCE), "the ranks hang"
        found = ours.recv()
    finally:
        computer.kill()
        computer.join()
    failed = [each for each in found if isinstance(each, str)]
    assert not failed, failed[0]
    return [each[0] for each in found]


def _computer(folder, work, count, answer):
    os.setpgid(0, 0)
    if own_network():
        assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    pipes, ranks = [], []
    for rank in range(count):
        ours, theirs = FORK.Pipe(duplex=False)
        process = FORK.Process(target=_rank, args=(folder, work, rank, count, theirs), daemon=True)
        process.start()
        theirs.close()
        pipes.append(ours)
        ranks.append(process)
    answer.send([each.recv() for each in pipes])
    for process in ranks:
        process.join()


def _rank(folder, work, rank, count, answer):
    ctypes.CDLL(None).prctl(1, 9)  # it ends with the computer
    import torch.distributed as dist  # noqa: PLC0415 - only the ranks use torch: a fork of its threads would hang

    try:
        dist.init_process_group(
            "gloo", f"file://{folder}/store", rank=rank, world_size=count, timeout=timedelta(seconds=PATIENCE)
        )
        answer.send((work(rank),))
        dist.barrier()
    except Exception:  # noqa: BLE001 - the test shows it
        answer.send(traceback.format_exc())


HEADERS = 14 + 20 + 32
"""Bytes of each packet for Ethernet, IPv4 and TCP with time stamps."""


def sent_over_loopback():
    """Bytes that the processes of this network have sent so far, with headers and without.

    On a busy computer the same data is acknowledged in more packets.
    """
    for line in Path("/proc/self/net/dev").read_text().splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == "lo":
            sent, packets = map(int, counters.split()[8:10])
            return sent, sent - HEADERS * packets
    raise AssertionError
