"""Measures the app on a private desktop: an X server, a window manager and a tray. Writes benchmarks/gui.json and
gui.md.

    python benchmarks/gui.py                  everything, about 10 minutes
    python benchmarks/gui.py start pixels     these parts alone; the others keep their earlier results

start      seconds from the process's start until its icon is in the tray, hidden, nothing joined; median of 9. Before
           each start the app's files are dropped from the system's cache, as after a boot
rest       hidden and nothing joined: memory, and the processor's time over a minute
training   the same while a practice swarm trains, hidden and with the window on its live plots
pixels     from a snapshot in the engine's thread until the screen shows it

Processor time is the app's own process alone (the engine is in it, the worker is not). Exits non-zero where a bound is
missed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from Xlib import X
from Xlib.display import Display
from Xlib.error import XError
from Xlib.xobject.drawable import Window

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from machine import machine

from skep import bootstrap
from skep.core.errors import SkepError
from tray_desktops import Desktop, desktop

PROGRAM = Path(sys.executable).with_name("skep-gui")
STARTS = 9
WATCHED = 60.0
"""Seconds over which the processor's use is measured."""
SETTLED = 12.0
"""Seconds after which a start is complete."""
JOINED = 240.0
ICON = 8
"""Pixels: a tray without an icon is narrower."""


START = 0.6
"""Seconds to the icon in the tray."""
MEMORY = 150
"""Maximum memory of the app in MB."""


@dataclass
class Row:
    """One figure and its upper bound; None if it is only reported."""

    what: str
    measured: float
    unit: str
    bound: float | None = None

    @property
    def met(self) -> bool:
        return self.bound is None or self.measured <= self.bound


@contextlib.contextmanager
def app(
    screen: Desktop, home: Path, *, hidden: bool, active: str = "", program: Path = PROGRAM
) -> Iterator[psutil.Popen]:
    home.mkdir(parents=True, exist_ok=True)
    resumed = f"active={active}\n" if active else ""
    (home / "window.ini").write_text(f"[General]\nfirst-run-done=done\n{resumed}")
    command = [str(program), "--home", str(home), *(["--hidden"] if hidden else [])]
    process = psutil.Popen(command, env=screen.environ)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def until(condition: Callable[[], bool], seconds: float, step: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("The app did not come to what was waited for; nothing was written.")
        time.sleep(step)


# --- start


def start(screen: Desktop, folder: Path) -> list[Row]:
    with _tray(screen) as bar:
        with app(screen, folder / "home", hidden=True):  # compiles the bytecode
            time.sleep(SETTLED / 2)
        cold, warm = (
            [_seconds_to_tray(screen, folder, bar, drop=drop) for _ in range(STARTS)] for drop in (True, False)
        )
    return [
        Row("process start to the icon in the tray, files not in the cache, median of 9", _median(cold), "s", START),
        Row("the same, slowest of 9", round(max(cold), 3), "s"),
        Row("process start to the icon in the tray, files in the cache, median of 9", _median(warm), "s", START),
        Row("the same, slowest of 9", round(max(warm), 3), "s"),
    ]


def start_and_memory(screen: Desktop, folder: Path, program: Path, starts: int) -> dict[str, float]:
    """Of another checkout's app: median seconds of `starts` until the icon, files in the cache, and MB while hidden."""
    with _tray(screen) as bar:
        with app(screen, folder / "home", hidden=True, program=program) as process:
            time.sleep(SETTLED)
            memory = process.memory_full_info().pss / 1e6
        taken = [_seconds_to_tray(screen, folder, bar, drop=False, program=program) for _ in range(starts)]
    return {"start": statistics.median(taken), "app memory": memory}


@contextlib.contextmanager
def _tray(screen: Desktop) -> Iterator[Window]:
    display = Display(screen.environ["DISPLAY"])
    until(lambda: bool(screen.visible("trayer")), 20, 0.1)
    yield display.create_resource_object("window", int(screen.visible("trayer")))
    display.close()


def _seconds_to_tray(screen: Desktop, folder: Path, bar: Window, *, drop: bool, program: Path = PROGRAM) -> float:
    until(lambda: not _shows_an_icon(bar), 20, 0.05)
    if drop:
        drop_from_cache()
    began = time.perf_counter()
    with app(screen, folder / "home", hidden=True, program=program):
        until(lambda: _shows_an_icon(bar), 20, 0.002)
        took = time.perf_counter() - began
        time.sleep(3.0)  # it must have started before it can be asked to end
    return took


def _shows_an_icon(bar: Window) -> bool:
    """Whether the tray shows a window that it did not make itself."""
    with contextlib.suppress(XError):
        return any(_is_icon(each) for each in _below(bar))
    return False


def _below(window: Window) -> Iterator[Window]:
    for child in window.query_tree().children:
        yield child
        yield from _below(child)


def _is_icon(window: Window) -> bool:
    named = window.get_wm_class() or ("", "")
    size = window.get_geometry().width
    return "skep" in " ".join(named) and size > ICON and window.get_attributes().map_state == X.IsViewable


def drop_from_cache() -> None:
    """Drop from the cache what the app loads from disk and no other program uses now: Python, Qt and skep."""
    folders = [Path(sys.prefix), HERE.parent / "gui", HERE.parent / "client", Path(os.__file__).parent]
    for path in (each for folder in folders for each in _loadable(folder)):
        with contextlib.suppress(OSError), path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _loadable(folder: Path) -> Iterator[Path]:
    unused = {"torch", "transformers", "scipy", "numpy", "hivemind"}
    for root, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if each not in unused]
        yield from (
            Path(root, file) for file in files if file.endswith((".pyc", ".py", ".so", ".pyi")) or ".so." in file
        )


# --- rest and training


def rest(screen: Desktop, folder: Path) -> list[Row]:
    with app(screen, folder / "home", hidden=True) as process:
        time.sleep(SETTLED)
        used, memory, private = _watched(process)
    with app(screen, folder / "home", hidden=False) as process:
        time.sleep(SETTLED)
        idle, with_window, _ = _watched(process)
    return [
        Row("hidden, nothing joined: of one core over 60 s", used, "%", 0.5),
        Row("hidden, nothing joined: resident memory", memory, "MB", MEMORY),
        Row("hidden, nothing joined: proportional memory", private, "MB", MEMORY),
        Row("window open, nothing joined: of one core over 60 s", idle, "%", 5),
        Row("window open, nothing joined: resident memory", with_window, "MB", MEMORY),
    ]


def training(screen: Desktop, folder: Path) -> list[Row]:
    rows = []
    for hidden, bound, name in ((True, 0.5, "hidden"), (False, 5.0, "window with live plots")):
        home = folder / f"training-{name[0]}"
        with app(screen, home, hidden=hidden, active="practice") as process:
            until(lambda home=home: _phase(home) == "training", JOINED, 0.5)
            time.sleep(SETTLED)
            used, memory, private = _watched(process)
            if _phase(home) != "training":
                raise SystemExit("It did not train all the time; nothing was written.")
        rows += [
            Row(f"{name}, training: of one core over 60 s", used, "%", bound),
            Row(f"{name}, training: resident memory", memory, "MB", MEMORY),
            Row(f"{name}, training: proportional memory", private, "MB", MEMORY),
        ]
    return rows


def _phase(home: Path) -> str:
    try:
        return str(bootstrap.ask(bootstrap.home(str(home), {}), {"verb": "status"})["status"]["phase"])
    except SkepError:
        return ""


def _watched(process: psutil.Popen) -> tuple[float, float, float]:
    """Percent of one core over WATCHED seconds, resident and proportional memory in MB at their end."""
    before = sum(process.cpu_times()[:2])
    time.sleep(WATCHED)
    used = sum(process.cpu_times()[:2]) - before
    memory = process.memory_full_info()
    return round(100 * used / WATCHED, 2), round(memory.rss / 1e6, 1), round(memory.pss / 1e6, 1)


# --- pixels


def pixels(screen: Desktop, _folder: Path) -> list[Row]:
    child = [sys.executable, str(HERE / "gui_pixels.py")]
    done = subprocess.run(child, env=screen.environ, capture_output=True, text=True, check=True)
    times = json.loads(done.stdout)
    count = len(times)
    return [
        Row(f"snapshot to pixels, median of {count}", round(1000 * statistics.median(times), 1), "ms", 100),
        Row(f"snapshot to pixels, slowest of {count}", round(1000 * max(times), 1), "ms", 100),
    ]


# --- results


PARTS: dict[str, Callable[[Desktop, Path], list[Row]]] = {
    "start": start,
    "rest": rest,
    "training": training,
    "pixels": pixels,
}


def _median(times: list[float]) -> float:
    return round(statistics.median(times), 3)


def _kept() -> dict[str, Any]:
    path = HERE / "gui.json"
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return kept


def write(parts: dict[str, Any]) -> None:
    (HERE / "gui.json").write_text(json.dumps(parts, indent=2) + "\n")
    lines = []
    for name, part in parts.items():
        head = f"`python benchmarks/gui.py {name}` on {part['machine']}, {part['date']}."
        lines += [head, "", "| what | measured | bound |", "|---|---|---|"]
        for row in part["rows"]:
            bound = "" if row["bound"] is None else f"≤ {row['bound']:g} {row['unit']}"
            lines.append(f"| {row['what']} | {row['measured']:g} {row['unit']} | {bound} |")
        lines.append("")
    (HERE / "gui.md").write_text("\n".join(lines))


def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    chosen = reader.parse_args().parts or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        reader.error(f"there is no part called {', '.join(sorted(unknown))}")
    measured = _kept()
    missed = []
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="sb-") as folder, desktop() as screen:
            rows = PARTS[name](screen, Path(folder))
        measured[name] = {
            "machine": machine(),
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "rows": [asdict(row) for row in rows],
        }
        write({each: measured[each] for each in PARTS if each in measured})
        missed += [row for row in rows if not row.met]
        for row in rows:
            sys.stdout.write(f"{row.what}: {row.measured:g} {row.unit}{'' if row.met else '  MISSED'}\n")
            sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
