"""The part `debians`: the app's .deb in a bare Debian joins the practice swarm with a pack that it fetches by itself.

As root: Debian is made by debootstrap, and the app runs in it as a user without rights, with its window on a screen here.
Pictures of the screen while the pack is fetched, and at the end, are in build/packs-shown.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from report import Row

from faults.bare_debian import HOME, RELEASES, Debian, installed
from faults.pack_app import REPOSITORY, check_build
from faults.pack_server import BYTES_PER_SECOND, PackServer, pack_server
from faults.rows import ROOT, Measured, Part
from tray_desktops import Desktop, desktop

PICTURES = ROOT / "build" / "packs-shown"
WITHIN = 1200.0
"""Seconds within which a very busy computer fetches the pack and has a contribution confirmed."""


def measure(numbers: range) -> Iterator[Measured]:
    check_build()
    PICTURES.mkdir(parents=True, exist_ok=True)
    names = list(RELEASES)
    with pack_server(REPOSITORY) as server, desktop() as screen:
        for number in numbers:
            name = names[number % len(names)]
            yield {"number": number, "system": name} | shown(server, screen, RELEASES[name])


def shown(server: PackServer, screen: Desktop, release: str) -> Measured:
    began = time.monotonic()
    with installed(release, PICTURES / f"{release}.log") as debian:
        taken = round(time.monotonic() - began)
        server.packs = debian.root / HOME[1:] / "packs"
        server.asked.clear()
        return {"build": check_build(debian.programs), "installed_s": taken} | joined(debian, server, screen, release)


def joined(debian: Debian, server: PackServer, screen: Desktop, release: str) -> Measured:
    """Start the app, until a contribution is confirmed; then end it and verify the pack."""
    began, times = time.monotonic(), dict[str, float]()
    current, ledger = server.packs / "current", debian.root / HOME[1:] / "ledger.sqlite"
    with debian.app(screen) as process:

        def reached(name: str, condition: object) -> None:
            if condition and name not in times:
                times[name] = round(time.monotonic() - began, 1)
                screen.picture(PICTURES / f"{release}-{name}.png")

        while "confirmed" not in times:
            if process.poll() is not None or time.monotonic() - began > WITHIN:
                screen.picture(PICTURES / f"{release}-failed.png")
                raise RuntimeError(f"nothing was confirmed within {WITHIN:g} s; reached: {times}")
            sent = sum(each.sent for each in server.asked)
            reached("window", screen.visible("skep"))
            reached("fetching", sent > 3 * BYTES_PER_SECOND)
            reached("laying", any((server.packs / "laid").glob(".incoming-*")))
            reached("used", current.is_symlink())
            reached("confirmed", current.is_symlink() and ledger.exists() and confirmed(debian))
            time.sleep(0.5)
    debian.skep("packs", "verify")  # fails where a file is not as it was laid down
    sizes = {each.sha256: each.size for each in server.asked}
    return {
        **{f"{name}_s": seconds for name, seconds in times.items()},
        "sent_mb": round(sum(each.sent for each in server.asked) / 1e6, 1),
        "pack_mb": round(sum(sizes.values()) / 1e6, 1),
        "twice": sum(each.again for each in server.asked),
        "samples": confirmed(debian),
    }


def confirmed(debian: Debian) -> int:
    return int(debian.skep("stats")["all"]["confirmed"]["samples"])


def judged(rows: list[Measured]) -> list[Row]:
    made = []
    for name in dict.fromkeys(row["system"] for row in rows):
        own = [row for row in rows if row["system"] == name]
        made += [
            Row(f"{name}: bytes fetched twice", sum(row["twice"] for row in own), "B", 0, [0.0] * len(own)),
            Row(f"{name}: samples confirmed", min(row["samples"] for row in own), "", None, [0.0] * len(own), 1),
            Row(f"{name}: from the start to that, longest", max(row["confirmed_s"] for row in own), "s"),
        ]
    return made


PART = Part(
    "debians", "the app's .deb in a bare Debian joins with a pack that it fetches", len(RELEASES), measure, judged
)
