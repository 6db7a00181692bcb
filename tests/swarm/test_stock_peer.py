"""A script with stock hivemind trains in one swarm with a skep worker, and both have the same parameters."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from skep.adapters.storage.paths import make_run_folder
from skep.core.session.messages import ContributionConfirmed, WorkerFailed
from skep.host.practice.swarm import PracticeFolder, practice_manifest, prepare_data, seed
from skep.recipes.registry import parse_manifest
from worker_peer import SkepPeer

# stock hivemind leaves its sockets in the system's temporary folder, so they are moved to a folder of the test
RUN_STOCK = """
import runpy, sys
from hivemind.p2p import P2P
P2P._UNIX_SOCKET_PREFIX = "/unix" + sys.argv[1] + "/h-"
del sys.argv[:2]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
SCRIPT = Path(__file__).parents[2] / "docs" / "stock_peer.py"
MOST_EPOCHS = 20
ALIKE = 0.02
"""The rounding of the compression, in parts of the distance that the parameters moved."""
DEADLINE = 200
"""Seconds. On a busy computer, rounds fail before one succeeds."""


def small_epochs(addresses, sha256):
    """The practice manifest with epochs of some seconds, so that the stock peer can load our state during one epoch."""
    body = practice_manifest(
        revision=1,
        publisher_key="ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        peers=addresses,
        index_address="http://127.0.0.1:1/index.json",
        index_sha256=sha256,
        now=datetime.now(UTC),
    )
    body["sync"]["target_batch_size"] = 512
    return json.dumps(body)


@pytest.fixture
def swarm(tmp_path):
    folder = PracticeFolder(tmp_path)
    index, sha256 = prepare_data(folder)
    with seed(folder, 0) as addresses:
        yield folder, index, small_epochs(addresses, sha256)


def run_stock(command, deadline):
    """What it says of each epoch."""
    stock = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    # with its children, which hold its pipes open
    too_long = threading.Timer(deadline - time.monotonic(), os.killpg, (stock.pid, signal.SIGKILL))
    too_long.start()
    out, errors = stock.communicate()
    too_long.cancel()
    assert stock.returncode == 0, errors[-2000:]
    return [json.loads(line) for line in out.splitlines()]


def test_a_stock_peer_and_skep_end_an_epoch_with_equal_parameters(swarm, tmp_path):
    folder, index, manifest = swarm
    (tmp_path / "manifest.json").write_text(manifest)
    shard = folder.served / f"{index.shards[0].sha256}.safetensors"
    sockets = make_run_folder()
    command = [
        sys.executable,
        "-c",
        RUN_STOCK,
        str(sockets),
        str(SCRIPT),
        str(tmp_path / "manifest.json"),
        parse_manifest(manifest.encode()).run_id,
        str(shard),
    ]
    command += ["--epochs", str(MOST_EPOCHS), "--alike", str(ALIKE)]
    deadline = time.monotonic() + DEADLINE
    with SkepPeer(folder, manifest, index) as skep:
        # a state round alone makes the parameters alike, and gradients may fail to meet while the computer is busy
        while not [message for message in skep.all(ContributionConfirmed) if message.peers == 1]:
            results = run_stock(command, deadline)
            assert not skep.all(WorkerFailed)
            last = results[-1]
            assert last["moved"] > 1e-3, results  # both have trained
            assert last["difference"] < ALIKE * last["moved"], results
    shutil.rmtree(sockets)
