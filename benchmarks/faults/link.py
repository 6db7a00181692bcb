"""The part `link`: the cable of one of three computers is pulled out and put back, or it gets another address.

Each computer is a network namespace (as root) with a front end; the files are served on each one's own loopback, so
that only the peers' connections are cut.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from report import Row

from faults.family import Family
from faults.places import own_folder, publish
from faults.recovery import inflict
from faults.rows import Measured, Part
from faults.volunteer import LOOK_SECONDS, Volunteer, volunteer
from network_namespaces import Computers, inside, run, why_not
from skep.host.practice.swarm import PracticeFolder, prepare_data

PORT, FILES = "31337", "8080"
ANYWHERE = "0.0.0.0"
SHARE = 0.3
DOWN = (5.0, 15.0, 45.0, 120.0)
"""Seconds without a link, in turn; every fifth fault is a change of the address."""
CASES = len(DOWN) + 1
WITHIN = 60.0


def measure(numbers: range) -> Iterator[Measured]:
    if reason := why_not():
        raise RuntimeError(reason)
    with own_folder() as folder, contextlib.closing(Computers()) as computers, contextlib.ExitStack() as ending:
        link = ending.enter_context(hosted(computers, folder / "host"))
        peers = []
        for number in range(3):
            name, address = computers.add()
            ending.enter_context(files(name, folder / "host" / "served"))
            made = volunteer(folder / f"home{number}", link, share=SHARE, place=inside(name))
            peers.append((ending.enter_context(made), name, address))
        one, name, address = peers[0]
        for each, *_ in peers:
            each.wait_until_training()
        for number in numbers:
            yield {"number": number} | cut(one, computers, name, address, number)


@contextlib.contextmanager
def hosted(computers: Computers, root: Path) -> Iterator[str]:
    """A seed peer on a computer of its own; the link that joins, where the files are served."""
    root.mkdir()
    folder = PracticeFolder(root)
    _, sha256 = prepare_data(folder)
    with seed_on(computers.add(), folder) as addresses:
        yield publish(folder, addresses, f"http://127.0.0.1:{FILES}", sha256, {})[0]


@contextlib.contextmanager
def seed_on(computer: tuple[str, str], folder: PracticeFolder) -> Iterator[list[str]]:
    """A seed peer on that computer, as `Computers.add` gives it; its addresses there."""
    name, host = computer
    assert folder.identity("seed").peer_id
    sockets = folder.root / "run"
    sockets.mkdir()
    options = ["--host", ANYWHERE, "--port", PORT, "--identity", str(folder.identity("seed").path)]
    command = [sys.executable, "-m", "skep.host.server.seed", *options, "--run-folder", str(sockets)]
    with subprocess.Popen(inside(name, *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as seed:
        assert seed.stdout is not None
        yield [each for each in json.loads(seed.stdout.readline())["addresses"] if host in each]
        # its input ends here, on which it does


@contextlib.contextmanager
def files(name: str, folder: Path) -> Iterator[None]:
    """Serve the folder on that computer's loopback."""
    command = [sys.executable, "-m", "http.server", FILES, "--bind", "127.0.0.1", "--directory", str(folder)]
    with subprocess.Popen(inside(name, *command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            yield
        finally:
            server.kill()


def cut(one: Volunteer, computers: Computers, name: str, address: str, number: int) -> Measured:
    seconds = 0.0 if number % CASES == len(DOWN) else DOWN[number % CASES]

    def fault(_family: Family) -> None:
        if not seconds:
            move(name, f"{address.rpartition('.')[0]}.{100 + number % 100}")
            return
        computers.plug(name, into_hub=False)
        # a front end that ends meanwhile is started again at the usual time
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            one.keep_running()
            time.sleep(LOOK_SECONDS)
        computers.plug(name, into_hub=True)

    seen = inflict(one, fault, seconds + WITHIN).row()
    if seen["back"] is None:
        one.begin_anew()
        one.wait_until_training()
    return {"fault": "another address" if not seconds else f"{seconds:g} s without a link", "down": seconds} | seen


def move(name: str, address: str) -> None:
    """Give that computer another address, and no earlier one."""
    run(*inside(name, "ip", "address", "flush", "dev", "eth0"))
    run(*inside(name, "ip", "address", "add", f"{address}/24", "dev", "eth0"))
    run(*inside(name, "ip", "route", "replace", "default", "dev", "eth0"))


def judged(rows: list[Measured]) -> list[Row]:
    made = []
    for fault in dict.fromkeys(row["fault"] for row in rows):
        own = [row for row in rows if row["fault"] == fault]
        late = [row["back"] - row["down"] for row in own if row["back"] is not None]
        made.append(Row(f"{fault}: not training {WITHIN:g} s later", len(own) - len(late), "", 0, late))
        made += [Row(f"{fault}: training again, longest", max(late), "s", None, late)] if late else []
    harmed = sum(row["lost"] + row["doubled"] + (not row["same_identity"]) for row in rows)
    return [*made, Row("contributions lost or doubled, other identities", harmed, "", 0, [float(harmed)])]


PART = Part("link", "a link down and up, another address", 25, measure, judged)
