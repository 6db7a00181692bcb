"""Measures the app: seconds until its tray is there, its memory, what it takes of a core. Writes benchmarks/gui.json.

    python benchmarks/gui.py

Needs a screen for the tray's time: an X server of its own is started, as for the tests. Nothing is joined.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from machine import machine  # noqa: E402

from tray_desktops import Desktop, desktop  # noqa: E402 - found by the path above

STARTS = 9
WATCHED = 60.0
"""Seconds over which the processor's use is measured."""


def start(screen: Desktop, home: Path, *, hidden: bool) -> subprocess.Popen[bytes]:
    home.mkdir(parents=True, exist_ok=True)
    (home / "window.ini").write_text("[General]\nfirst-run-done=done\n")
    command = [sys.executable, "-m", "skep_gui.main", "--home", str(home), *(["--hidden"] if hidden else [])]
    return subprocess.Popen(command, env=screen.environ)


def seconds_to_tray(screen: Desktop, home: Path) -> float:
    """From the process's start until the tray holds its icon."""
    began = time.perf_counter()
    process = start(screen, home, hidden=True)
    while not icon_is_there(screen):
        time.sleep(0.005)
    took = time.perf_counter() - began
    time.sleep(3.0)
    end(process)
    while icon_is_there(screen):
        time.sleep(0.05)
    return took


def icon_is_there(screen: Desktop) -> bool:
    bar = screen.visible("trayer")
    return bool(bar) and screen.box(bar)[2] > 8  # noqa: PLR2004 - an empty tray is a few pixels wide


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(30)


def at_rest(screen: Desktop, home: Path, *, hidden: bool) -> dict[str, float]:
    """Memory in MB and the part of one core over WATCHED seconds, idle."""
    process = start(screen, home, hidden=hidden)
    watched = psutil.Process(process.pid)
    time.sleep(12.0)
    before = sum(watched.cpu_times()[:2])
    time.sleep(WATCHED)
    used = sum(watched.cpu_times()[:2]) - before
    memory = watched.memory_info().rss / 1e6
    end(process)
    return {"rss_mb": round(memory, 1), "core_percent": round(100 * used / WATCHED, 2)}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sb-") as folder, desktop() as screen:
        home = Path(folder) / "home"
        times = [seconds_to_tray(screen, home) for _ in range(STARTS)]
        result: dict[str, Any] = {
            "machine": machine(),
            "tray_seconds": {"median": round(statistics.median(times), 3), "all": [round(each, 3) for each in times]},
            "hidden": at_rest(screen, home, hidden=True),
            "window_idle": at_rest(screen, home, hidden=False),
        }
    (HERE / "gui.json").write_text(json.dumps(result, indent=2) + "\n")
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
