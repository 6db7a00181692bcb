"""A peer with fixed gradients, which takes part in a round only when it is told to: two runs of such peers can be compared.

    python lockstep_peer.py OPTIONS.json

The options: kind (skep or stock), role (seed, peer or newcomer), peers (addresses), run_id, micro_batches (of each peer in
an epoch), cycle (epochs), number (of a peer, from 0), folder, honest (ids of peers). A skep peer has the guards, the
averagers and the optimizer of the worker, a stock one hivemind alone; both send without a lossy codec. A seed is a node of
hivemind's DHT. The end of standard input ends it immediately.

A peer counts its micro-batches of an epoch, and waits for the line `go`; then until it knows that the epoch is over, for
DUE_SECONDS at most, says so and waits for `go` again; and then takes part in what is due until the epoch has changed.
Gradients depend on the peer and the epoch, and sum to zero over a cycle; the optimizer is plain SGD. A newcomer
asks for the state when it gets the line `go`. It asks others than the honest peers first, which is the worst that chance can
do; stock hivemind does so whenever they claim more. Its own parameters are zero until then.

Prints JSON lines. `{"event": "ready", "peer", "addresses", "run_id", "shapes", "target"}`; of a peer
`{"event": "counted", "epoch"}`, `{"event": "due", "epoch"}`, `{"event": "group", "epoch", "size"}`, `{"event": "lost",
"epoch", "reason"}` and `{"event": "epoch", "epoch", "values"}` with the parameters at the beginning of that epoch; of a newcomer `{"event": "joined",
"epoch", "values"}`, or `{"event": "failed", "why"}`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import queue
import sys
import tempfile
import threading
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tests")]

multiprocessing.set_start_method("fork", force=True)  # hivemind's averagers cannot be pickled, as others require

import hivemind
import psutil
import torch
from hivemind.p2p import P2P

SHAPES = ((24, 16), (16,))
BATCH = 4
PAUSE = 0.1
"""Seconds before a micro-batch."""
RATE = 2.0
"""Samples a second that a peer states: less than its own, so that no peer believes that an epoch is over before it is."""
MATCHMAKING, TIMEOUT = 2.0, 15.0
LEARNING_RATE = 0.1
STATE_EVERY = 2
LOOK_SECONDS, READY_SECONDS, DUE_SECONDS = 0.05, 60.0, 10.0


def say(event: str, **fields: Any) -> None:
    # in one piece: rounds are also settled in hivemind's threads
    os.write(sys.stdout.fileno(), (json.dumps({"event": event} | fields) + "\n").encode())


def gradients(number: int, epoch: int, cycle: int) -> list[torch.Tensor]:
    """Of the mean loss of any micro-batch of a peer in an epoch: near to the other peers'."""
    half, seed = divmod(epoch % cycle, cycle // 2)
    sign = -1.0 if half else 1.0
    common = torch.Generator().manual_seed(1000 + seed)
    own = torch.Generator().manual_seed(2000 + 100 * number + seed)
    return [sign * (torch.randn(shape, generator=common) + 0.3 * torch.randn(shape, generator=own)) for shape in SHAPES]


def target(options: dict[str, Any]) -> int:
    """Samples of an epoch: all that the peers compute."""
    return BATCH * int(sum(options["micro_batches"]))


class Synchronised(Protocol):
    """What skep's optimizer and the stock one have in common here."""

    run_id: str
    dht: Any

    @property
    def epoch(self) -> int: ...

    @property
    def others(self) -> int:
        """Other peers of which there is a progress record."""

    def count(self) -> None:
        """Count a micro-batch whose gradient was added to `.grad`."""

    @property
    def due(self) -> bool:
        """Whether it knows that the epoch is over."""

    def tend(self) -> None:
        """Take part in what is due."""

    def join(self) -> int:
        """Load the swarm's state; its epoch."""


class Ours:
    def __init__(self, options: dict[str, Any], parameters: list[torch.nn.Parameter]) -> None:
        from skep.adapters.storage.identity import FileIdentity  # noqa: PLC0415 - a stock peer loads nothing of skep
        from skep.core.session.messages import ContributionLost  # noqa: PLC0415 - as above
        from skep.core.traffic import Caps  # noqa: PLC0415 - as above
        from skep.training.swarm import Place  # noqa: PLC0415 - as above
        from skep.worker import self_test  # noqa: PLC0415 - as above
        from skep.worker.connection import futures, network  # noqa: PLC0415 - as above
        from skep.worker.connection.rates import Rates  # noqa: PLC0415 - as above
        from skep.worker.swarm.averaging import honest_averager  # noqa: PLC0415 - as above
        from skep.worker.swarm.global_rounds import GlobalRounds  # noqa: PLC0415 - as above
        from skep.worker.swarm.rounds import Rounds  # noqa: PLC0415 - as above
        from skep.worker.swarm.strategy import Participant, run_of  # noqa: PLC0415 - as above
        from swarm_peers import manifest_of  # noqa: PLC0415 - as above

        class Noted(Rounds):
            def close(self, *args: Any, **kwargs: Any) -> None:
                closed = self.oldest
                if closed and closed.facts:
                    say("group", epoch=closed.epoch, size=closed.facts.group_size)
                super().close(*args, **kwargs)

        def tell(message: Any) -> None:
            if isinstance(message, ContributionLost):
                say("lost", epoch=message.epoch, reason=message.reason.id)

        if options["honest"]:
            honest_averager.in_order = partial(worst_order, options["honest"])
        network.watch_streams(network.ByteCounters(), Rates(Caps(0.0, 0.0)))
        futures.install()
        self_test.run()
        folder = Path(options["folder"])
        place = Place(str(folder), str(FileIdentity(folder / "identity.key").path), "127.0.0.1", 0)
        FileIdentity(folder / "identity.key").peer_id  # noqa: B018 - creates the key
        self.dht = network.reach(place, options["peers"])
        manifest = manifest_of(
            options["run_id"],
            target(options),
            sync__matchmaking_seconds=MATCHMAKING,
            sync__averaging_timeout_seconds=TIMEOUT,
            sync__average_state_every=STATE_EVERY,
            sync__load_compression="none",
            schedule={"kind": "constant", "warmup_epochs": 0, "total_epochs": 1_000_000},
        )
        self.run_id, self._rounds = manifest.run_id, Noted("lockstep", tell)
        own = Participant(run_of(manifest), self.dht, parameters, BATCH, self._rounds, lambda: RATE)
        self._sync = GlobalRounds(own)
        self._sync.ready(READY_SECONDS)

    @property
    def epoch(self) -> int:
        return self._sync.epoch

    @property
    def others(self) -> int:
        self._sync.tracker.tell()
        return int(self._sync.tracker.others)

    def count(self) -> None:
        self._rounds.grow(self.epoch, BATCH)
        self._sync.contribute(BATCH)
        self._sync.tracker.tell()

    @property
    def due(self) -> bool:
        self._sync.tracker.tell()
        return bool(self._sync.tracker.ready_to_update_epoch)

    def tend(self) -> None:
        self._sync.tend(lambda: None)

    def join(self) -> int:
        self._sync.tracker.look(READY_SECONDS)
        self._sync.synchronise()
        return self._sync.state_averager.whole_epoch


def worst_order(honest: list[str], *asked: Any) -> list[Any]:
    from skep.worker.swarm.state.choice import in_order  # noqa: PLC0415 - a stock peer loads nothing of skep

    return sorted(in_order(*asked), key=lambda donor: str(donor) in honest)


class Stock(hivemind.Optimizer):  # type: ignore[misc]
    """hivemind's, called as in its documentation except that between batches it does the rest of a step."""

    def __init__(self, options: dict[str, Any], parameters: list[torch.nn.Parameter]) -> None:
        super().__init__(
            dht=hivemind.DHT(initial_peers=options["peers"], start=True, startup_timeout=60),
            run_id=options["run_id"],
            target_batch_size=target(options),
            batch_size_per_step=BATCH,
            params=parameters,
            optimizer=lambda params: torch.optim.SGD(params, lr=LEARNING_RATE),
            matchmaking_time=MATCHMAKING,
            averaging_timeout=TIMEOUT,
            reuse_grad_buffers=True,
            offload_optimizer=True,
            average_state_every=STATE_EVERY,
        )

    @property
    def epoch(self) -> int:
        return int(self.local_epoch)

    @property
    def others(self) -> int:
        return int(self.tracker.global_progress.num_peers) - 1

    def count(self) -> None:
        self._check_and_accumulate_gradients(BATCH, None)

    @property
    def due(self) -> bool:
        return bool(self.tracker.ready_to_update_epoch)

    def tend(self) -> None:
        self.state_averager.step(apply_delayed_updates=True)
        if self._should_load_state_from_peers():
            self.load_state_from_peers()
            return
        self._maybe_schedule_gradient_averaging()
        self._maybe_schedule_state_averaging()
        if self.tracker.ready_to_update_epoch:
            self._update_global_epoch(None)

    def join(self) -> int:
        self.load_state_from_peers()
        return self.epoch


def main() -> None:
    # hivemind leaves its sockets in the system's temporary folder
    P2P._UNIX_SOCKET_PREFIX = f"/unix{tempfile.mkdtemp(prefix='s-')}/h-"  # noqa: SLF001
    torch.set_num_threads(1)
    options = json.loads(Path(sys.argv[1]).read_text())
    asked: queue.SimpleQueue[str] = queue.SimpleQueue()
    if options["role"] == "seed":
        dht = hivemind.DHT(start=True, startup_timeout=60)
        ready(dht, "", options)
        listen(asked)
    start = torch.Generator().manual_seed(0)
    size = 0.05 if options["role"] == "peer" else 0.0
    parameters = [torch.nn.Parameter(size * torch.randn(shape, generator=start)) for shape in SHAPES]
    peer: Synchronised = Ours(options, parameters) if options["kind"] == "skep" else Stock(options, parameters)
    # later: a fork closes standard input, which this thread holds
    threading.Thread(target=listen, args=(asked,), daemon=True).start()
    ready(peer.dht, peer.run_id, options)
    {"peer": train, "newcomer": join}[options["role"]](peer, parameters, options, asked)
    threading.Event().wait()


def ready(dht: Any, run_id: str, options: dict[str, Any]) -> None:
    addresses = list(map(str, dht.get_visible_maddrs()))
    say("ready", peer=str(dht.peer_id), addresses=addresses, run_id=run_id, shapes=SHAPES, target=target(options))


def listen(asked: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        asked.put(line.strip())
    end(0)


def end(status: int) -> NoReturn:
    for process in psutil.Process().children(recursive=True):
        process.kill()  # hivemind's would go on, and hold the pipes
    os._exit(status)  # hivemind's threads would hold the interpreter


def values(parameters: list[torch.nn.Parameter]) -> list[float]:
    return [float(value) for parameter in parameters for value in parameter.detach().flatten()]


def train(
    peer: Synchronised, parameters: list[torch.nn.Parameter], options: dict[str, Any], asked: queue.SimpleQueue[str]
) -> None:
    number, micro_batches = options["number"], options["micro_batches"]
    while True:
        epoch = peer.epoch
        for _ in range(micro_batches[number]):
            time.sleep(PAUSE)
            for parameter, gradient in zip(parameters, gradients(number, epoch, options["cycle"]), strict=True):
                assert parameter.grad is not None
                parameter.grad += gradient
            peer.count()
        while not epoch and peer.others < len(micro_batches) - 1:
            time.sleep(LOOK_SECONDS)
        say("counted", epoch=epoch)
        asked.get()
        # who searches for a group before the others know that the epoch is over gives up before they come
        deadline = time.monotonic() + DUE_SECONDS
        while not peer.due and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        say("due", epoch=epoch)
        asked.get()
        while peer.epoch == epoch:
            peer.tend()
            time.sleep(LOOK_SECONDS)
        say("epoch", epoch=peer.epoch, values=values(parameters))


def join(
    peer: Synchronised, parameters: list[torch.nn.Parameter], _options: dict[str, Any], asked: queue.SimpleQueue[str]
) -> None:
    asked.get()
    try:
        say("joined", epoch=peer.join(), values=values(parameters))
    except Exception as error:  # noqa: BLE001 - whatever a spoilt state raises
        say("failed", why=f"{type(error).__name__}: {error}"[:300])


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # noqa: BLE001 - ends its other processes too
        traceback.print_exc()
        end(1)
