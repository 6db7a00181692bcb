"""The part `debians`: the app's .deb in a bare Debian joins the practice swarm with a pack that it fetches by itself.

As root: Debian is made by debootstrap, and the app runs in it as a user without rights, with its window on a screen here.
Pictures of the screen while the pack is fetched, and at the end, are in build/packs-shown.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from newcomer import CannotRun, bare
from report import Row

from faults.family import kill, living
from faults.pack_app import REPOSITORY, check_build
from faults.pack_server import BYTES_PER_SECOND, PackServer, pack_server
from faults.rows import ROOT, Measured, Part
from terminals import devote
from tray_desktops import Desktop, desktop

RELEASES = {"Debian 12": "bookworm", "Debian 13": "trixie"}
PICTURES = ROOT / "build" / "packs-shown"
USER = "volunteer"
HOME = f"/home/{USER}/skep"
WITHIN = 1200.0
"""Seconds within which a very busy computer fetches the pack and has a contribution confirmed."""
INSTALL_SECONDS = 1200.0
ENVIRON = {"DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


class Debian:
    """The system in `root`; each command gets process and mount namespaces that end with it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def command(self, *words: str, user: str = "root") -> list[str]:
        root = shlex.quote(str(self.root))
        mounts = f"mount -t proc proc {root}/proc && mount -t tmpfs tmpfs {root}/dev/shm"
        enter = f'{mounts} && exec chroot --userspec={user}:{user} {root} "$@"'
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", enter, "sh", *words]

    def run(self, *words: str, user: str = "root", within: float = INSTALL_SECONDS) -> str:
        """What the command printed. Raises subprocess.SubprocessError."""
        environ = ENVIRON | {"HOME": f"/home/{user}" if user != "root" else "/root"}
        done = subprocess.run(
            self.command(*words, user=user), env=environ, capture_output=True, text=True, timeout=within, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{words[0]} in {self.root}: {(done.stdout + done.stderr)[-1000:]}")
        return done.stdout

    def skep(self, *verb: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.run("skep", "--home", HOME, "--json", *verb, user=USER, within=WITHIN))
        return said

    @contextlib.contextmanager
    def app(self, screen: Desktop) -> Iterator[subprocess.Popen[bytes]]:
        environ = ENVIRON | {"HOME": f"/home/{USER}", "DISPLAY": screen.environ["DISPLAY"], "QT_QPA_PLATFORM": "xcb"}
        command = self.command("skep-gui", "--home", HOME, user=USER)
        with subprocess.Popen(command, env=environ) as process:
            family = [psutil.Process(process.pid)]
            try:
                yield process
            finally:
                family += family[0].children(recursive=True)
                for each in family:
                    if each.name() == "skep-gui":
                        each.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(60)
                kill(living(family))


def measure(numbers: range) -> Iterator[Measured]:
    build = check_build()
    PICTURES.mkdir(parents=True, exist_ok=True)
    names = list(RELEASES)
    with pack_server(REPOSITORY) as server, desktop() as screen:
        for number in numbers:
            name = names[number % len(names)]
            yield {"number": number, "system": name, "build": build} | shown(server, screen, RELEASES[name])


def shown(server: PackServer, screen: Desktop, release: str) -> Measured:
    log = PICTURES / f"{release}.log"
    try:
        debian = Debian(bare(release, log))
    except CannotRun as reason:
        raise RuntimeError(str(reason)) from None
    try:
        began = time.monotonic()
        install(debian)
        installed = round(time.monotonic() - began)
        server.packs = debian.root / HOME[1:] / "packs"
        server.asked.clear()
        return {"installed_s": installed} | joined(debian, server, screen, release)
    finally:
        shutil.rmtree(debian.root)


def install(debian: Debian) -> None:
    """Install the .deb as a person does, with what it depends on, and give the user a home that goes on practising."""
    (deb,) = (ROOT / "dist").glob("skep-app_*.deb")
    shutil.copy(deb, debian.root / "skep-app.deb")
    debian.run("apt-get", "update", "-qq")
    debian.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "/skep-app.deb", "fonts-dejavu-core")
    debian.run("useradd", "--create-home", USER)
    home = debian.root / HOME[1:]
    devote(home)
    (home / "window.ini").write_text("[General]\nfirst-run-done=done\nactive=practice\n")
    debian.run("chown", "--recursive", f"{USER}:{USER}", HOME)


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
