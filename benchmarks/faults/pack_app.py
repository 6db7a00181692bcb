"""The built app alone on a desktop of its own, used as a person with a screen reader does, to join the practice swarm."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

import screen_reader as reading
from families import alive, kill
from faults.bare_debian import ENVIRON, Debian
from faults.pack_server import ADDRESS
from faults.rows import ROOT
from screen_reader import ScreenReader
from skep.adapters.packs.store import PackStore
from skep.adapters.storage.paths import Home
from terminals import devote
from tray_desktops import Desktop

APP = ROOT / "dist" / "skep-app"
REPOSITORY = ROOT / "build" / "packs-shown" / "repository"
JOIN = "Start and join: Practice swarm"
DESKTOP = ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "QT_QPA_PLATFORM", "TMPDIR")
TRIAL = "skep.worker.trial"
START_SECONDS = 180.0
LOOK_SECONDS = 0.05


def check_build(folder: Path = APP) -> str:
    """The commit of the app in `folder`. Raises RuntimeError unless it was built for the local repository with its packs."""
    facts = folder / "_internal" / "skep-build.json"
    built = json.loads(facts.read_text()) if facts.is_file() else {}
    if built.get("updates") != ADDRESS or not list(REPOSITORY.glob("targets/packs-*.json")):
        raise RuntimeError(f"there is no app for {ADDRESS} with packs in {REPOSITORY}: make bench-packs builds both")
    return str(built["commit"])


def new_home(folder: Path) -> Home:
    """A home whose first steps were shown, that leaves nearly no room on its disk free."""
    home = Home(devote(folder, **{"disk.keep_free_gb": 0.1}))
    (home.root / "window.ini").write_text("[General]\nfirst-run-done=done\n")
    return home


class App:
    """The app of a bare Debian in a home under /tmp; it is started at once."""

    def __init__(self, debian: Debian, home: Home, screen: Desktop, reader: ScreenReader) -> None:
        self.home, self.store = home, PackStore(home.packs_folder)
        self._debian, self._screen, self._reader = debian, screen, reader
        self._usual: set[str] = set()
        self.start()

    def start(self) -> None:
        """Start it, open the page of the projects, and ask to join unless it joins again by itself."""
        desktop = {name: self._screen.environ[name] for name in DESKTOP}
        self.process = subprocess.Popen(
            self._debian.beside("skep-gui", "--home", str(self.home.root)), env=ENVIRON | desktop | reading.ASKS
        )
        self.until(lambda: self._reader.focus("list", "Pages"))
        if "active=practice" in (self.home.root / "window.ini").read_text():
            return
        self._screen.xdotool("key", "Down")
        self.until(lambda: self.is_idle)
        self._usual = set(self._reader.names("label"))
        self.join()

    def join(self) -> None:
        assert self._reader.press("push button", JOIN)

    @property
    def is_idle(self) -> bool:
        """Whether the join can be asked for, since it has not begun or has failed."""
        return any(each["name"] == JOIN and "enabled" in each["states"] for each in self._reader.tree())

    def sentences(self) -> list[str]:
        """What the page says that it did not before the join."""
        return [each for each in self._reader.names("label") if each and each not in self._usual]

    def family(self) -> list[psutil.Process]:
        root = psutil.Process(self.process.pid)
        return [root, *root.children(recursive=True)]

    def kill(self) -> list[str]:
        """Kill the app alone; the names of its processes that are left 5 s later, which are killed then."""
        family = self.family()
        self.process.kill()
        self.process.wait()
        _, left = psutil.wait_procs(family, 5)
        names = [" ".join(each.cmdline()[1:4]) for each in alive(left)]
        kill(left)
        return names

    def end(self) -> None:
        family = self.family() if self.process.poll() is None else []
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(60)
        kill(alive(family))

    def stage(self) -> str:
        """What is being done for a pack."""
        if self.store.current is not None:
            return "using"
        if any(TRIAL in each.cmdline() for each in alive(self.family())):
            return "trying"
        return "laying" if any((self.store.root / "laid").glob(".incoming-*")) else "fetching"

    def broken(self) -> list[str]:
        """Files of packs that are not as they were laid down, and links that lead nowhere."""
        found = [f"{folder.name}/{path}" for folder in self.store.laid() for path in self.store.damaged(folder)]
        links = [self.store.root / name for name in ("current", "previous", "next")]
        return found + [each.name for each in links if each.is_symlink() and not each.exists()]

    def confirmed(self) -> int:
        """Confirmed contributions in the ledger."""
        query = "SELECT count(*) FROM contributions WHERE state = 'confirmed'"
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(f"{self.home.ledger_file.as_uri()}?mode=ro", uri=True)) as file,
        ):
            return int(file.execute(query).fetchone()[0])
        return 0

    def until(self, condition: Callable[[], object], within: float = START_SECONDS) -> None:
        """Raises TimeoutError, and RuntimeError where the app has ended."""
        deadline = time.monotonic() + within
        while not condition():
            if self.process.poll() is not None:
                raise RuntimeError(f"the app has ended with code {self.process.returncode}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {within:g} s; the page says: {self.sentences()}")
            time.sleep(LOOK_SECONDS)


@contextlib.contextmanager
def app(debian: Debian, home: Home, screen: Desktop, reader: ScreenReader) -> Iterator[App]:
    made = App(debian, home, screen, reader)
    try:
        yield made
    finally:
        made.end()
