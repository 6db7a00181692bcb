"""Attacks a run once: `python -m attacks NAME`, the target as JSON on the standard input. Prints a line when it begins, and what it did as JSON.

Without a name it prints those of all attacks. It uses stock hivemind only.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Awaitable, Callable

multiprocessing.set_start_method("fork", force=True)  # hivemind's averagers cannot be pickled, as others require

from attacks.records import RECORDS
from attacks.rounds import ASKING, MEMBERS
from attacks.states import STATES
from attacks.stranger import Stranger, Target, ready
from attacks.streams import STREAMS_OF

START_SECONDS = 120.0
CALLS: dict[str, Callable[[Stranger], Awaitable[None]]] = RECORDS | STREAMS_OF | ASKING
AS_PEERS: dict[str, Callable[[Target], dict[str, int]]] = MEMBERS | STATES


def main() -> None:
    if len(sys.argv) == 1:
        print(json.dumps([*CALLS, *AS_PEERS]))
        return
    said = json.load(sys.stdin)
    target = Target(**said | {"peers": tuple(said["peers"]), "shapes": tuple(map(tuple, said["shapes"]))})
    signal.alarm(int(target.seconds + START_SECONDS))  # whatever it waits for
    name = sys.argv[1]
    counts = AS_PEERS[name](target) if name in AS_PEERS else asyncio.run(called(CALLS[name], target))
    print(json.dumps(counts), flush=True)
    os._exit(0)  # hivemind's threads would hold the interpreter for seconds


async def called(attack: Callable[[Stranger], Awaitable[None]], target: Target) -> dict[str, int]:
    own = await Stranger.arrive(target)
    ready()
    await attack(own)
    return own.counts


if __name__ == "__main__":
    main()
