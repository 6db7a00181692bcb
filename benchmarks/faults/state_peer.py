"""A peer that hands its state over, or one that joins and gets it: what the loss of a donor costs a newcomer.

    python state_peer.py OPTIONS.json

The options: kind (donor or newcomer), peers, run_id; of a donor also epoch, seed of its state, priority, rate (bytes a
second), lie (none, bytes, nan or negative) and the place of the lie in the state, 0 to 1; of a newcomer the number of
donors that it waits for, and for each donor's name its epoch and seed. The end of standard input ends it immediately.

Prints JSON lines. A donor: `{"event": "ready", "peer"}`. A newcomer: `{"event": "asks", "state"}` with the bytes of a
state, `{"event": "frame", "peer", "bytes"}` for each frame of it, and `{"event": "joined", "seconds", "epoch",
"state_of"}` with the names of the donors whose state it has, to the bit, or `{"event": "failed", "why"}`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, AsyncIterator  # noqa: UP035 - hivemind knows a streaming RPC by typing's own name only

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tests")]

multiprocessing.set_start_method("fork", force=True)  # hivemind's averagers cannot be pickled, as others require

import hivemind
import torch
from hivemind.optim.state_averager import TrainingStateAverager
from hivemind.p2p import P2P, P2PContext, PeerID
from hivemind.proto import averaging_pb2, runtime_pb2

from skep.core.errors import SwarmError
from skep.worker.connection.unresponsive import ask_in_background
from skep.worker.swarm.averaging import averagers
from skep.worker.swarm.global_rounds import GlobalRounds
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.state.donor import Copy, Place
from skep.worker.swarm.state.download import Frames
from skep.worker.swarm.state.pieces import Piece
from skep.worker.swarm.strategy import Participant, run_of
from swarm_peers import manifest_of

TENSORS, VALUES = 8, 327_680
"""Parameters; with Adam's statistics a state has 31 MB."""
BATCH = 2
READY_SECONDS = 120.0
STATISTICS = ("exp_avg", "exp_avg_sq", "step")
"""Of each parameter, in hivemind's order."""
OPTIMIZER = {"name": "adamw", "learning_rate": 1e-3, "betas": [0.9, 0.95], "weight_decay": 0, "clip_norm": None}

options: dict[str, Any] = {}


def say(event: str, **fields: Any) -> None:
    # in one piece: several processes write
    os.write(sys.stdout.fileno(), (json.dumps({"event": event} | fields) + "\n").encode())


class Averager(averagers.CheckedStateAverager):
    """Sends at a rate, lies at a place, and says what arrives."""

    async def rpc_fetch_state(
        self, request: runtime_pb2.ExpertRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        async for frame in super().rpc_fetch_state(request, context):
            await asyncio.sleep(len(frame.tensor_part.buffer) / options["rate"])
            yield frame

    async def _copied(self) -> Copy:
        copy = await super()._copied()
        if options["lie"]:
            number = place_of(options["place"], copy.tensors, negative=options["lie"] == "negative")
            copy.tensors[number] = lied(copy.tensors[number], options["lie"])
        return copy

    async def _call_donor(self, donor: PeerID, place: Place | None) -> Frames:
        return self._told(donor, await super()._call_donor(donor, place))

    async def _told(self, donor: PeerID, frames: Frames) -> Frames:
        async with aclosing(frames):
            async for frame in frames:
                say("frame", peer=str(donor), bytes=len(frame.tensor_part.buffer))
                yield frame


def place_of(place: float, tensors: Sequence[torch.Tensor], *, negative: bool) -> int:
    """The large tensor at that place of the state, or after it the first second moment; the optimizer's come last."""
    ends = list(itertools.accumulate(tensor.nbytes for tensor in tensors))
    return next(
        number
        for number, tensor in enumerate(tensors)
        if ends[number] > place * ends[-1] and tensor.dim() and (not negative or is_second_moment(number))
    )


def is_second_moment(number: int) -> bool:
    return number >= TENSORS and STATISTICS[(number - TENSORS) % len(STATISTICS)] == "exp_avg_sq"


def lied(tensor: torch.Tensor, lie: str) -> torch.Tensor:
    made = tensor.clone()
    match lie:
        case "bytes":
            made = torch.randint(-(2**31), 2**31, made.shape, dtype=torch.int32).view(torch.float32)
        case "nan":
            made[-1] = float("nan")
        case "negative":
            made[-1] = -1e-6
    return made


def state_of(pieces: Sequence[Piece], epoch: int, seed: int) -> list[torch.Tensor]:
    """A possible state of that epoch; other seeds make others."""
    random = torch.Generator().manual_seed(seed)
    made = [torch.randn(piece.shape, generator=random) / 100 for piece in pieces]
    return [
        torch.tensor(float(epoch)) if not piece.shape else each.abs() if piece.non_negative else each
        for piece, each in zip(pieces, made, strict=True)
    ]


def begun() -> GlobalRounds:
    dht = hivemind.DHT(initial_peers=options["peers"], start=True, startup_timeout=60)
    dht.run_coroutine(ask_in_background)
    manifest = manifest_of(options["run_id"], 64, optimizer=OPTIMIZER, sync__load_compression="none")
    weights = [torch.nn.Parameter(torch.zeros(VALUES)) for _ in range(TENSORS)]
    own = Participant(run_of(manifest), dht, weights, BATCH, Rounds("state", lambda _message: None))
    sync = GlobalRounds(own)
    sync.ready(READY_SECONDS)
    return sync


def hand_over(sync: GlobalRounds) -> None:
    averager = sync.state_averager
    averager.adopt(options["epoch"], state_of(averager.pieces(), options["epoch"], options["seed"]))
    averager.state_sharing_priority = options["priority"]
    say("ready", peer=str(sync.dht.peer_id))
    while True:
        sync.tracker.report_local_progress(options["epoch"], 1)
        time.sleep(5.0)


def join(sync: GlobalRounds) -> None:
    averager = sync.state_averager
    until = time.monotonic() + READY_SECONDS
    while not sync.tracker.global_epoch or offers(sync) < options["donors"]:
        if time.monotonic() > until:
            raise TimeoutError("the donors are not found")
        sync.tracker.look(1.0)
    say("asks", state=sum(piece.wire_bytes for piece in averager.pieces()))
    asked = time.monotonic()
    sync.ask_for_state()
    try:
        sync.synchronise()
    except SwarmError as error:
        say("failed", why=error.title.id)
        return
    seconds = time.monotonic() - asked
    _, mine = averager.copied()
    whose = [
        name
        for name, (epoch, seed) in options["states"].items()
        if averager.whole_epoch == epoch and all(map(torch.equal, mine, state_of(averager.pieces(), epoch, seed)))
    ]
    say("joined", seconds=seconds, epoch=averager.whole_epoch, state_of=" ".join(whose))


def offers(sync: GlobalRounds) -> int:
    found = sync.dht.get(f"{averagers.state_prefix(sync.run_id)}.all_averagers", latest=True)
    values = found.value.values() if found and isinstance(found.value, dict) else ()
    return sum(entry.value >= 1 for entry in values)


def main() -> None:
    # hivemind leaves its sockets in the system's temporary folder
    P2P._UNIX_SOCKET_PREFIX = f"/unix{tempfile.mkdtemp(prefix='s-')}/h-"  # noqa: SLF001
    torch.set_num_threads(1)
    options.update(json.loads(Path(sys.argv[1]).read_text()))
    # known to stock peers by hivemind's name
    Averager.__name__ = TrainingStateAverager.__name__
    averagers.CheckedStateAverager = Averager  # type: ignore[misc]
    sync = begun()
    # later: a fork closes standard input, which this thread holds
    threading.Thread(target=end_with_input, daemon=True).start()
    {"donor": hand_over, "newcomer": join}[options["kind"]](sync)
    threading.Event().wait()


def end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
