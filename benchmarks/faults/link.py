"""The part `link`: one of three computers has no link for a while, another address, or a clock that is off; one more has
a firewall that drops what comes in unasked.

Each computer is a network namespace (as root) with a front end; the files are served on each one's own loopback, so
that only the peers' connections are cut.
"""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from report import Row

from faults.family import Family
from faults.kill import no_harm
from faults.other_clock import OtherClock
from faults.places import own_folder, publish
from faults.recovery import Recovery, inflict
from faults.rows import Measured, Part, attempted
from faults.volunteer import LOOK_SECONDS, Volunteer, volunteer
from network_namespaces import Computers, inside, run, why_not
from skep.host.practice.swarm import PracticeFolder, prepare_data

PORT, FILES = "31337", "8080"
ANYWHERE = "0.0.0.0"
SHARE = 0.3
DOWN = (5.0, 15.0, 45.0, 120.0)
"""Seconds without a link."""
WITHIN = 60.0
"""Seconds from the end of a fault to a confirmed contribution."""
FIREWALL, JOINED_WITHIN = "behind a firewall", 120.0
"""Seconds from the start of its front end to that."""
CLOCK_OFF, CLOCK_SECONDS = 10.0, 150.0
"""So far off, and how long it may take until that is said: a peer that trains compares its clock once a minute."""


@dataclass(frozen=True)
class Computer:
    """A volunteer in a network namespace of that name."""

    volunteer: Volunteer
    clock: OtherClock
    name: str
    address: str


@dataclass(frozen=True)
class Network:
    """Computers on which volunteers can join through `link`; their homes are in `folder`."""

    computers: Computers
    folder: Path
    link: str

    @contextlib.contextmanager
    def computer(self, home: str, *, firewall: bool = False) -> Iterator[Computer]:
        """One more of them; it is left, but not removed."""
        name, address = self.computers.add(firewall=firewall)
        clock = OtherClock(self.folder / f"{home}-clock")
        place = inside(name, *clock.place)
        with (
            files(name, self.folder / "host" / "served"),
            volunteer(self.folder / home, self.link, share=SHARE, place=place) as made,
        ):
            yield Computer(made, clock, name, address)


@contextlib.contextmanager
def network(**sync: int) -> Iterator[Network]:
    """With a seed peer on a computer of its own; `sync` changes the manifest. Raises RuntimeError where it cannot be."""
    if reason := why_not():
        raise RuntimeError(reason)
    with (
        own_folder() as folder,
        contextlib.closing(Computers()) as computers,
        hosted(computers, folder / "host", sync) as link,
    ):
        yield Network(computers, folder, link)


def measure(numbers: range) -> Iterator[Measured]:
    with network() as net, contextlib.ExitStack() as ending:
        one, *others = (ending.enter_context(net.computer(f"home{number}")) for number in range(3))
        for each in (one, *others):
            each.volunteer.wait_until_training()
        for number in numbers:
            case = number % len(CASES)
            row = attempted({"number": number, "case": case}, CASES[case], net, one, number)
            yield row
            if row["failed"]:
                one.clock.set(0.0)
                net.computers.plug(one.name, into_hub=True)
                one.volunteer.train_anew()


@contextlib.contextmanager
def hosted(computers: Computers, root: Path, sync: dict[str, int]) -> Iterator[str]:
    """A seed peer on a computer of its own; the link that joins, where the files are served."""
    root.mkdir()
    folder = PracticeFolder(root)
    _, sha256 = prepare_data(folder)
    with seed_on(computers.add(), folder) as addresses:
        yield publish(folder, addresses, f"http://127.0.0.1:{FILES}", sha256, {"sync": sync})[0]


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


def harm(one: Volunteer, fault: Callable[[Family], None], within: float, **more: bool) -> Measured:
    """As `inflict`; afterwards it trains."""
    seen = inflict(one, fault, within, **more).row()
    if seen["back"] is None:
        one.train_anew()
    return seen


def keep_running_until(one: Volunteer, condition: Callable[[], bool], within: float) -> None:
    """A front end that ends meanwhile is started again at the usual time; returns when it is true or time is over."""
    until = time.monotonic() + within
    while not condition() and time.monotonic() < until:
        one.keep_running()
        time.sleep(LOOK_SECONDS)


def cut(seconds: float, net: Network, one: Computer, _number: int) -> Measured:
    def fault(_family: Family) -> None:
        net.computers.plug(one.name, into_hub=False)
        keep_running_until(one.volunteer, lambda: False, seconds)
        net.computers.plug(one.name, into_hub=True)

    seen = harm(one.volunteer, fault, seconds + WITHIN)
    return {"fault": f"{seconds:g} s without a link", "down": seconds} | seen


def moved(_net: Network, one: Computer, number: int) -> Measured:
    address = f"{one.address.rpartition('.')[0]}.{100 + number % 100}"
    seen = harm(one.volunteer, lambda _family: move(one.name, address), WITHIN)
    return {"fault": "another address", "down": 0.0} | seen


def move(name: str, address: str) -> None:
    """Give that computer another address, and no earlier one."""
    run(*inside(name, "ip", "address", "flush", "dev", "eth0"))
    run(*inside(name, "ip", "address", "add", f"{address}/24", "dev", "eth0"))
    run(*inside(name, "ip", "route", "replace", "default", "dev", "eth0"))


def behind_a_firewall(net: Network, _one: Computer, number: int) -> Measured:
    """One more volunteer, which nobody can dial: `back` counts from the start of its front end."""
    begun = time.time()
    with net.computer(f"behind{number}", firewall=True) as made:
        with contextlib.suppress(TimeoutError):
            made.volunteer.wait_until_training(JOINED_WITHIN)
        first = made.volunteer.first_confirmed(begun)
        joined = [each for each in made.volunteer.events if each["event"] == "joined"]
        seen = Recovery(back=first.settled - begun if first else None, problems=titles(made.volunteer, 0))
    dialled = any(not (each["client_mode"] or each["relayed"]) for each in joined)
    return {"fault": FIREWALL, "down": 0.0, "dialled": dialled} | seen.row()


def clock_off(when: str, _net: Network, one: Computer, number: int) -> Measured:
    """The clock is set wrongly, in turn ahead and behind, and set right when that was said or time is over."""
    begun, told, known = time.time(), len(one.volunteer.events), one.volunteer.ledger()
    said, down = list[str](), CLOCK_SECONDS

    def fault(_family: Family) -> None:
        nonlocal down
        one.clock.set(CLOCK_OFF if number // len(CASES) % 2 == 0 else -CLOCK_OFF)
        if when == AT_THE_START:
            one.volunteer.begin_anew()
        keep_running_until(one.volunteer, lambda: bool(of_the_clock(one.volunteer, told)), CLOCK_SECONDS)
        said.extend(of_the_clock(one.volunteer, told))
        one.clock.set(0.0)
        down = time.time() - begun

    seen = harm(one.volunteer, fault, CLOCK_SECONDS + WITHIN, ends_at_once=when == AT_THE_START)
    meanwhile = [each for name, each in one.volunteer.ledger().items() if name not in known]
    meanwhile = [each for each in meanwhile if begun <= each.recorded and 0 < each.settled < begun + down]
    states = [each.state for each in meanwhile]
    return {
        "fault": f"clock off by {CLOCK_OFF:g} s {when}",
        "down": round(down, 1),
        "said": said,
        "meanwhile": {state: states.count(state) for state in ("confirmed", "lost")},
    } | seen


def titles(one: Volunteer, told: int) -> list[str]:
    return [each["title"] for each in one.events[told:] if each["event"] == "problem"]


def of_the_clock(one: Volunteer, told: int) -> list[str]:
    return [each for each in titles(one, told) if "clock is" in each]


AT_THE_START, WHILE_IT_TRAINS = "at the start", "while it trains"
CASES: list[Callable[[Network, Computer, int], Measured]] = [
    *(functools.partial(cut, seconds) for seconds in DOWN),
    moved,
    behind_a_firewall,
    functools.partial(clock_off, AT_THE_START),
    functools.partial(clock_off, WHILE_IT_TRAINS),
]


def judged(rows: list[Measured]) -> list[Row]:
    made = []
    for fault in dict.fromkeys(row["fault"] for row in rows):
        own = [row for row in rows if row["fault"] == fault]
        within = JOINED_WITHIN if fault == FIREWALL else WITHIN
        took = [row["back"] - row["down"] for row in own if row["back"] is not None]
        late = len(own) - sum(each <= within for each in took)
        made.append(Row(f"{fault}: not training {within:g} s later", late, "", 0, took))
        made += [Row(f"{fault}: training again, longest", max(took), "s", None, took)] if took else []
        if fault == FIREWALL:
            taken = [float(row["dialled"]) for row in own]
            made.append(Row(f"{fault}: taken for one that can be dialled", sum(taken), "", 0, taken))
        if "said" in own[0]:
            silent = [float(not row["said"]) for row in own]
            made.append(Row(f"{fault}: not said in words", sum(silent), "", 0, silent))
    return [*made, *no_harm([row for row in rows if row["fault"] != FIREWALL])]


PART = Part("link", "no link, another address, a firewall, a clock that is off", 5 * len(CASES), measure, judged)
