"""A peer that learns a tiny task at a given rate, with skep's optimizer or hivemind's: what a fault costs its survivors.

    python small_peer.py OPTIONS.json

The options: kind (skep or stock), peers, run_id, target (samples of an epoch), rate (samples a second), seed of its
samples. The first word of a line on its standard input: `leave` as a person leaves, end of input ends it immediately.

Prints JSON lines. `{"event": "joined", "epoch", "at", "batch"}` once, with the samples of its batches.
`{"event": "epoch", "epoch", "at", "blocked", "samples", "loss"}` when an epoch has ended: `at` is the
monotonic clock, which all processes of a computer share; `blocked` the seconds that it computed nothing since it
waited for other peers; `samples` its own of that epoch. `{"event": "confirmed" | "lost", "epoch", "samples",
"reason"}` for each of its contributions; for a stock peer what its log says of the round, which confirms more than was
averaged. `{"event": "computed", "at", "samples"}` after each batch: how many samples it has computed since its start.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import queue
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Protocol

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tests")]

multiprocessing.set_start_method("fork", force=True)  # hivemind's averagers cannot be pickled, as others require

import hivemind
import psutil
import torch
from hivemind.p2p import P2P

WIDTH = 256
BATCH = 16
"""So many that two runs of five minutes differ by less than 1 % in their loss for the noise of their gradients."""
MATCHMAKING, TIMEOUT = 3.0, 20.0
LEARNING_RATE = 0.02
NOISE = 0.1
LEAVE_SECONDS = 60.0


def say(event: str, **fields: Any) -> None:
    # in one piece: rounds are also settled in hivemind's threads
    sys.stdout.write(json.dumps({"event": event} | fields) + "\n")
    sys.stdout.flush()


class Task:
    """Linear regression with noise, the same task for every peer; `weights` is trained."""

    def __init__(self, seed: int) -> None:
        self._wanted = torch.randn(WIDTH, generator=torch.Generator().manual_seed(0))
        self._random = torch.Generator().manual_seed(seed)
        self.weights = torch.nn.Parameter(torch.zeros(WIDTH))

    def gradient(self) -> torch.Tensor:
        """Of the mean over one batch of fresh samples."""
        inputs = torch.randn(BATCH, WIDTH, generator=self._random)
        noise = NOISE * torch.randn(BATCH, generator=self._random)
        error = inputs @ (self.weights.detach() - self._wanted) - noise
        return inputs.T @ error / BATCH

    @property
    def loss(self) -> float:
        """Of all possible samples, half the mean square error without the noise."""
        return float((self.weights.detach() - self._wanted).square().sum() / 2)


class Synchronised(Protocol):
    """What skep's optimizer and the stock one have in common here."""

    @property
    def epoch(self) -> int: ...

    def step(self) -> None:
        """Count a batch whose gradient was added to `.grad`; take part in a round that is due."""

    def leave(self) -> None: ...


class Ours:
    def __init__(self, options: dict[str, Any], dht: hivemind.DHT, weights: torch.nn.Parameter) -> None:
        from skep.core.session.messages import (  # noqa: PLC0415 - a stock peer loads nothing of skep
            ContributionConfirmed,
            ContributionLost,
        )
        from skep.worker.connection.unresponsive import ask_in_background  # noqa: PLC0415 - a stock peer loads nothing of skep
        from skep.worker.swarm.global_rounds import GlobalRounds  # noqa: PLC0415 - a stock peer loads nothing of skep
        from skep.worker.swarm.rounds import Rounds  # noqa: PLC0415 - a stock peer loads nothing of skep
        from skep.worker.swarm.strategy import Participant, run_of  # noqa: PLC0415 - a stock peer loads nothing of skep
        from swarm_peers import manifest_of  # noqa: PLC0415 - a stock peer loads nothing of skep

        def tell(message: Any) -> None:
            if isinstance(message, ContributionConfirmed):
                say("confirmed", epoch=message.epoch, samples=message.samples, reason="")
            elif isinstance(message, ContributionLost):
                say("lost", epoch=message.epoch, samples=message.samples, reason=message.reason.id)

        manifest = manifest_of(
            options["run_id"],
            options["target"],
            sync__matchmaking_seconds=MATCHMAKING,
            sync__averaging_timeout_seconds=TIMEOUT,
            sync__delay_optimizer_step=True,
            sync__delay_state_averaging=True,
            sync__average_state_every=1,
            optimizer={
                "name": "sgd", "learning_rate": LEARNING_RATE, "betas": [0, 0], "weight_decay": 0, "clip_norm": None
            },
            schedule={"kind": "constant", "warmup_epochs": 0, "total_epochs": 1_000_000},
        )  # fmt: skip
        dht.run_coroutine(ask_in_background)
        self._rounds = Rounds("small", tell)
        own = Participant(run_of(manifest), dht, [weights], BATCH, self._rounds, lambda: options["rate"])
        self._sync = GlobalRounds(own)
        self._sync.ready(60.0)
        self._sync.synchronise()

    @property
    def epoch(self) -> int:
        return self._sync.epoch

    def step(self) -> None:
        self._rounds.grow(self._sync.epoch, BATCH)
        self._sync.contribute(BATCH)
        self._sync.tend(lambda: None)

    def leave(self) -> None:
        """As the worker's loop: computing nothing more, it waits for its last round."""
        deadline = time.monotonic() + LEAVE_SECONDS
        self._sync.rest(leaving=True)
        while not self._sync.settled and time.monotonic() < deadline:
            self._sync.tend(lambda: None)
            time.sleep(0.2)
        self._sync.farewell(1.0)


class Stock(logging.Handler):
    """hivemind.Optimizer; this handler reads from its log what became of each round."""

    def __init__(self, options: dict[str, Any], dht: hivemind.DHT, weights: torch.nn.Parameter) -> None:
        super().__init__()
        self._mine, self._told = 0, False
        self._optimizer = hivemind.Optimizer(
            dht=dht,
            run_id=options["run_id"],
            target_batch_size=options["target"],
            batch_size_per_step=BATCH,
            params=[weights],
            optimizer=lambda params: torch.optim.SGD(params, lr=LEARNING_RATE),
            matchmaking_time=MATCHMAKING,
            averaging_timeout=TIMEOUT,
            reuse_grad_buffers=True,
            offload_optimizer=True,
            delay_optimizer_step=True,
            delay_state_averaging=True,
            average_state_every=1,
            verbose=True,
        )
        logging.getLogger("hivemind.optim.optimizer").addHandler(self)
        self._optimizer.load_state_from_peers()

    @property
    def epoch(self) -> int:
        return int(self._optimizer.local_epoch)

    def step(self) -> None:
        self._mine, self._told = self._mine + BATCH, False
        before = self.epoch
        self._optimizer.step()
        if self.epoch != before:
            if not self._told:  # a peer alone says nothing of a round
                say("lost", epoch=before, samples=self._mine, reason="no other peers")
            self._mine = 0

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        outcomes = ("Averaged gradients with", "Skipped averaging", "Averaging gradients failed")
        self._told |= said.startswith(outcomes)
        if said.startswith(outcomes[0]):
            say("confirmed", epoch=self.epoch, samples=self._mine, reason="")
        elif said.startswith(outcomes):
            say("lost", epoch=self.epoch, samples=self._mine, reason=said)

    def leave(self) -> None:
        self._optimizer.shutdown()


def main() -> None:
    # hivemind leaves its sockets in the system's temporary folder
    P2P._UNIX_SOCKET_PREFIX = f"/unix{tempfile.mkdtemp(prefix='s-')}/h-"  # noqa: SLF001
    torch.set_num_threads(1)
    options = json.loads(Path(sys.argv[1]).read_text())
    dht = hivemind.DHT(initial_peers=options["peers"], start=True, startup_timeout=60)
    task = Task(options["seed"])
    peer: Synchronised = {"skep": Ours, "stock": Stock}[options["kind"]](options, dht, task.weights)
    asked: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=listen, args=(asked,), daemon=True).start()
    say("joined", epoch=peer.epoch, at=time.monotonic(), batch=BATCH)
    train(peer, task, options["rate"], asked)
    dht.shutdown()
    for process in psutil.Process().children(recursive=True):
        process.kill()  # hivemind's would go on without this one
    os._exit(0)  # hivemind's threads would delay the interpreter's end by seconds


def listen(asked: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        asked.put(line.strip())
    os._exit(0)


def train(peer: Synchronised, task: Task, rate: float, asked: queue.SimpleQueue[str]) -> None:
    due, mine, computed, blocked = time.monotonic(), 0, 0, 0.0
    while asked.empty():
        due += BATCH / rate
        time.sleep(max(0.0, due - time.monotonic()))
        assert task.weights.grad is not None
        task.weights.grad += task.gradient()
        computed += BATCH
        say("computed", at=time.monotonic(), samples=computed)
        mine, epoch, begun = mine + BATCH, peer.epoch, time.monotonic()
        peer.step()
        took = time.monotonic() - begun
        if took > BATCH / rate:
            blocked += took
            due = time.monotonic()  # what was not computed meanwhile is not made up for
        if peer.epoch != epoch:
            say("epoch", epoch=epoch, at=time.monotonic(), blocked=blocked, samples=mine, loss=task.loss)
            mine, blocked = 0, 0.0
    peer.leave()


if __name__ == "__main__":
    main()
