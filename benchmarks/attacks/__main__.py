"""Attacks a run once: `python -m attacks NAME`, the target as JSON on the standard input. Prints a line when it begins, and what it did as JSON.

Without a name it prints those of all attacks, with what is declared of each: why it can only be limited, and whether it
is for newcomers. It uses stock hivemind only.
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
from attacks.stranger import AsPeer, Calling, Stranger, Target, ready
from attacks.streams import STREAMS_OF

START_SECONDS = 120.0
CALLS: dict[str, Calling] = RECORDS | STREAMS_OF | ASKING
AS_PEERS: dict[str, AsPeer] = MEMBERS | STATES


def main() -> None:
    if len(sys.argv) == 1:
        every = CALLS | AS_PEERS
        print(json.dumps({name: {"limited": each.limited, "newcomer": name in STATES} for name, each in every.items()}))
        return
    said = json.load(sys.stdin)
    target = Target(**said | {"peers": tuple(said["peers"]), "shapes": tuple(map(tuple, said["shapes"]))})
    signal.alarm(int(target.seconds + START_SECONDS))  # whatever it waits for
    name = sys.argv[1]
    counts = AS_PEERS[name].run(target) if name in AS_PEERS else asyncio.run(called(CALLS[name].run, target))
    print(json.dumps(counts), flush=True)
    os._exit(0)  # hivemind's threads would hold the interpreter for seconds


async def called(attack: Callable[[Stranger], Awaitable[None]], target: Target) -> dict[str, int]:
    own = await Stranger.arrive(target)
    ready()
    await attack(own)
    return own.counts


if __name__ == "__main__":
    main()
