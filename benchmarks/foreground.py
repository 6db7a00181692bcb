"""What a person's own programs lose while skep trains on the processor: a job on all cores, and a 60 Hz animation.

    python benchmarks/foreground.py               about 6 minutes; writes benchmarks/foreground.json

In each round three cases take turns: nothing trains, a worker trains at the using share with somebody present, a worker
trains unthrottled (share 1, normal priority, a thread for each core). The job is a fixed amount of computing in a process for each
core, and its slowdown the time it takes beside the same round's time with nothing. The animation draws for a few
milliseconds 60 times a second; its slowdown is that of its frames, and frames that come more than half a frame late are counted. Exits
non-zero when a slowdown at the using share is above 5 %.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from machine import machine
from peers import SkepPeer, is_progress, swarm

HERE = Path(__file__).parent
USING = 0.2
BOUND = 0.05
FRAME_SECONDS = 1 / 60
JOB = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
for line in sys.stdin:
    begun, total = time.perf_counter(), 0
    for number in range(int(line)):
        total += number * number % 7
    print(time.perf_counter() - begun, flush=True)
"""
ANIMATION = """
import sys, time
FRAME = 1 / 60
def draw(work):
    total = 0
    for number in range(work):
        total += number * number % 7
begun = time.perf_counter(); draw(100_000); work = int(100_000 * 0.004 / (time.perf_counter() - begun))
print("ready", flush=True)
for line in sys.stdin:
    frames, late, last = [], 0, time.perf_counter()
    due, end = last + FRAME, last + float(line)
    while due < end:
        time.sleep(max(0.0, due - time.perf_counter()))
        draw(work)
        now = time.perf_counter()
        frames.append(now - last)
        late += now - due > 0.004 + FRAME / 2
        last = now
        due = max(due + FRAME, now)
    print(sum(frames) / len(frames), late / len(frames), flush=True)
"""


class Foreground:
    """The person's programs, at normal priority."""

    def __init__(self) -> None:
        cores = sorted(os.sched_getaffinity(0))
        self._jobs = [self._start(JOB, str(core)) for core in cores]
        self._animation = self._start(ANIMATION)
        self._answer(self._animation)
        self._work = 200_000
        self._work = int(self._work * 1.0 / self.job())  # about a second

    def _start(self, source: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", source, *arguments]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def _answer(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline()

    def _ask(self, process: subprocess.Popen[str], line: str) -> None:
        assert process.stdin is not None
        process.stdin.write(line + "\n")

    def job(self) -> float:
        """Seconds until a fixed piece of work on each core is done on all of them."""
        for process in self._jobs:
            self._ask(process, str(self._work))
        return max(float(self._answer(process)) for process in self._jobs)

    def frames(self, seconds: float) -> tuple[float, float]:
        """Mean seconds of a frame, and the part of frames that came late."""
        self._ask(self._animation, str(seconds))
        mean, late = map(float, self._answer(self._animation).split())
        return mean, late

    def close(self) -> None:
        for process in (*self._jobs, self._animation):
            process.kill()
            process.wait()


def measure(rounds: int, seconds: float, model: str) -> dict[str, dict[str, list[float]]]:
    """By case: seconds of jobs and frames, the part of late frames, and what was trained meanwhile, of each round."""
    found: dict[str, dict[str, list[float]]] = {}
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="skep-bench-") as folder, swarm(Path(folder), model) as shared:
        using = SkepPeer(shared, share=0.0)
        unthrottled = SkepPeer(shared, share=0.0, nice=0, threads=cores)
        foreground = Foreground()
        try:
            for peer in (using, unthrottled):
                peer.wait_for(is_progress)
            cases: dict[str, Callable[[], None]] = {
                "nothing": lambda: None,
                "using": lambda: using.set_share(USING, present=True),
                "unthrottled": lambda: unthrottled.set_share(1.0),
            }
            for number in range(rounds):
                order = list(cases.items())
                for name, begin in order[::-1] if number % 2 else order:
                    begin()
                    time.sleep(3.0 if name != "nothing" else 1.0)  # back in the swarm
                    case = found.setdefault(name, {"job": [], "frame": [], "late": []})
                    case["job"] += [foreground.job() for _ in range(max(1, int(seconds / 2)))]
                    frame, late = foreground.frames(seconds)
                    case["frame"].append(frame)
                    case["late"].append(late)
                    for peer in (using, unthrottled):
                        peer.set_share(0.0, present=True)
                    time.sleep(1.0)
        finally:
            foreground.close()
            for peer in (using, unthrottled):
                peer.stop()
    return found


def rows(found: dict[str, dict[str, list[float]]]) -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    for what in ("job", "frame"):
        plain = statistics.median(found["nothing"][what])
        for case in ("using", "unthrottled"):
            slowdown = statistics.median(found[case][what]) / plain - 1
            made.append({"what": what, "case": case, "slowdown": slowdown, "bound": BOUND if case == "using" else None})
    for case, values in found.items():
        made.append({"what": "late frames", "case": case, "part": statistics.mean(values["late"])})
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each case in a round (8)")
    parser.add_argument("--model", default="3.3 M")
    parser.add_argument("--out", type=Path, default=HERE / "foreground.json")
    asked = parser.parse_args()
    found = measure(asked.rounds, asked.seconds, asked.model)
    judged = rows(found)
    body = {
        "machine": machine(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "command": f"foreground.py --rounds {asked.rounds} --seconds {asked.seconds:g} --model '{asked.model}'",
        "share": USING,
        "rows": judged,
        "values": found,
    }
    asked.out.write_text(json.dumps(body, indent=1) + "\n")
    for row in judged:
        sys.stdout.write(f"{row}\n")
    return int(any(row["bound"] is not None and row["slowdown"] > row["bound"] for row in judged if "bound" in row))


if __name__ == "__main__":
    sys.exit(main())
