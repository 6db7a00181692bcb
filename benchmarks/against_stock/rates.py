"""How fast one peer and two peers train, and how long a peer takes to stop."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from peers import Peer, SkepPeer, is_progress
from report import in_turn

from against_stock.rows import Row
from against_stock.running import (
    EVERY_DELAY,
    KINDS,
    at_epoch,
    fresh_swarm,
    make_bare,
    make_skep,
    missing_rounds,
    running,
    samples_of_rounds,
    wait_for_rounds,
)

EPOCHS = 4
LEAST_SAMPLES = 0.95
"""Part of the target."""


def measure_speed(repeats: int) -> list[Row]:
    """Counted samples per second of one unthrottled peer, alone in a swarm: from the end of an epoch of 512 samples to
    the next.

    This includes the optimizer's step, and skep's measurement of its loss if one is due. The bare loop is measured for
    20 s.
    """
    makes = {**KINDS, "bare": make_bare}
    rates: dict[str, list[float]] = {"skep": [], "stock": [], "bare": []}
    for repeat in range(repeats):
        for kind in in_turn(makes, repeat):
            with fresh_swarm("3.3 M", target_batch_size=512) as shared, running(shared, makes[kind]) as (peer,):
                rates[kind].append(peer.rate(20.0) if kind == "bare" else rate_of_an_epoch(peer))
    name = "samples per second of one unthrottled peer"
    return [
        Row(name, "samples/s", rates["skep"], rates["stock"], at_least=0.97),
        Row(name, "samples/s", rates["skep"], rates["bare"], other_name="bare PyTorch", at_least=0.90),
    ]


def rate_of_an_epoch(peer: Peer) -> float:
    first = peer.wait_for(at_epoch(peer.wait_for(is_progress)["epoch"] + 1))
    last = peer.wait_for(at_epoch(first["epoch"] + 1))
    return float((last["counted"] - first["counted"]) / (last["seconds"] - first["seconds"]))


def measure_epochs(repeats: int) -> list[Row]:
    """Confirmed samples per second, and seconds and real samples per epoch, of two peers with every delay flag on, over
    EPOCHS epochs after the first common one.

    Confirmed samples are those of contributions that were averaged with the other peer's. Real samples are those that
    both peers put into the round that ends an epoch, whatever their progress records say.
    """
    rates: dict[str, list[float]] = {"skep": [], "stock": []}
    target = 1024
    seconds: dict[str, list[float]] = {"skep": [], "stock": []}
    samples: dict[str, list[float]] = {"skep": [], "stock": []}
    missing, seen = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    for repeat in range(repeats):
        for kind in in_turn(KINDS, repeat):
            with (
                fresh_swarm("0.45 M", target_batch_size=target, **EVERY_DELAY) as shared,
                running(shared, KINDS[kind], KINDS[kind]) as peers,
            ):
                epoch = peers[1].wait_for(is_progress)["epoch"]
                first = peers[1].wait_for(at_epoch(epoch + 2))
                last = peers[1].wait_for(at_epoch(first["epoch"] + EPOCHS))
                epochs = range(first["epoch"], last["epoch"])
                wait_for_rounds(peers, epochs)
                seconds[kind].append((last["seconds"] - first["seconds"]) / len(epochs))
                samples[kind].append(statistics.mean(samples_of_rounds(peers, "contribution", epochs)))
                confirmed = sum(samples_of_rounds(peers, "confirmed", epochs))
                rates[kind].append(confirmed / (last["seconds"] - first["seconds"]))
                missing[kind] += len(missing_rounds(peers, epochs))
                seen[kind] += len(epochs)
    note = "rounds that a peer missed: " + ", ".join(f"{kind} {missing[kind]} of {seen[kind]}" for kind in KINDS)
    return [
        Row(
            "confirmed samples per second of two peers, communication overlapped",
            "samples/s",
            rates["skep"],
            rates["stock"],
            at_least=1.0,
            note=note,
        ),
        Row("seconds of their epochs", "s", seconds["skep"], seconds["stock"], at_most=1.0),
        Row(
            f"real samples in each of these epochs, of {target}",
            "samples",
            samples["skep"],
            samples["stock"],
            at_least=LEAST_SAMPLES * target,
            own=True,
        ),
    ]


def measure_stop(repeats: int) -> list[Row]:
    """Time from the order to stop until no process is left, every delay flag on, a second after an epoch ended, when
    the round of that epoch runs.

    The kinds do not do the same. skep drops the round that runs when it is told to stop, and reports its samples as
    lost; hivemind's `shutdown` finishes it, and drops what was computed since. skep asked to finish, as for Leave,
    finishes it and also waits for the round of what it has computed since.
    """
    seconds: dict[str, list[float]] = {"skep": [], "stock": [], "finishing": []}
    lost = dict.fromkeys(seconds, 0)
    makes = {**KINDS, "finishing": make_skep}
    for repeat in range(repeats):
        for kind in in_turn(makes, repeat):
            with (
                fresh_swarm("3.3 M", target_batch_size=512, **EVERY_DELAY) as shared,
                running(shared, makes[kind], makes[kind]) as peers,
            ):
                stopped = peers[1]
                epoch = stopped.wait_for(is_progress)["epoch"]
                ended = stopped.wait_for(at_epoch(epoch + 2))
                before = len(stopped.named("lost"))
                time.sleep(max(0.0, ended["seconds"] + 1.0 - time.monotonic()))
                seconds[kind].append(stopped.stop(way_of(stopped, kind)))
                lost[kind] += len(stopped.named("lost")) - before
    drops = (
        f"skep lost {lost['skep']} contributions in {repeats} stops; stock, which finishes its round, {lost['stock']}"
    )
    waits = f"skep lost {lost['finishing']}; it waits for a round that stock does not wait for"
    return [
        Row(
            "stop with every delay flag on, as each kind stops",
            "s",
            seconds["skep"],
            seconds["stock"],
            at_most=2.0,
            note=drops,
            own=True,
        ),
        Row(
            "the same, when skep first averages all that it has computed",
            "s",
            seconds["finishing"],
            seconds["stock"],
            note=waits,
        ),
    ]


def way_of(peer: Peer, kind: str) -> Callable[[], None]:
    return peer.ask_to_finish if kind == "finishing" and isinstance(peer, SkepPeer) else peer.ask_to_stop
