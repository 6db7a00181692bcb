"""Ranks of one computer as real processes, which communicate by gloo over its loopback."""

import ctypes
import multiprocessing
import os
import socket
import sys
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from skep.worker.ranks.rendezvous import INTERFACES

FORK = multiprocessing.get_context("fork")
PATIENCE = 120
"""Seconds within which the ranks are done on a busy computer."""


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
    os.environ.update(INTERFACES)
    torch.set_num_threads(1)  # the threads of the process that was forked are not there
    try:
        dist.init_process_group(
            "gloo", f"file://{folder}/store", rank=rank, world_size=count, timeout=timedelta(seconds=PATIENCE)
        )
        answer.send((work(rank),))
        dist.barrier()
    except Exception:  # noqa: BLE001 - the test shows it
        answer.send(traceback.format_exc())


TCP_INFO_BYTES_RECEIVED = 128
"""Where `tcpi_bytes_received`, of 8 bytes, lies in the kernel's `struct tcp_info` (linux/tcp.h)."""


def received_over_tcp():
    """Bytes of data that this process has received so far over its open connections.

    Neither headers nor what was sent twice is in them: a busy computer acknowledges late, and TCP sends again.
    """
    total = 0
    for link in Path("/proc/self/fd").iterdir():
        if link.exists() and link.is_socket():
            with socket.socket(fileno=os.dup(int(link.name))) as connection:
                if connection.family in (socket.AF_INET, socket.AF_INET6) and connection.type == socket.SOCK_STREAM:
                    state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                    total += int.from_bytes(state[TCP_INFO_BYTES_RECEIVED:][:8], sys.byteorder)
    return total
