"""Measures the slowdown of the user's programs while skep trains on the processor: a job on all cores, and a 60 Hz
animation.

    python benchmarks/foreground.py               about 4 minutes; writes benchmarks/foreground.json and .md
    python benchmarks/foreground.py --rounds 1 --seconds 4

In each round three cases take turns: nothing trains, a worker trains at the using share with a user present, a worker
trains unthrottled (share 1, normal priority, a thread for each core). The job is a fixed amount of computing in a
process for each core, and its slowdown the median over rounds of its time relative to the same round's time with
nothing. The animation draws for a few milliseconds 60 times a second: a frame that comes more than half a frame late is
a late one, and its slowdown is that of the slowest frame in a hundred. Target: ≤ 5 % slower at the using share, both,
and at most one frame in a hundred late. While the job takes all cores a worker at the using share gets almost no
processor time; that it trains when cores are free is measured beside the animation. Exits with 1 when a target is
missed, with 2 when a peer does not train.
"""

from __future__ import annotations

import argparse
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from peers import SkepPeer, is_progress, swarm
from report import HERE, UNMEASURED, Row, finish, in_turn, say

USING = 0.2
BOUND, LATE = 5.0, 1.0
"""Percent."""
ANSWER_SECONDS = 60.0
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
    frames.sort()
    print(frames[-1 - len(frames) // 100], late / len(frames), flush=True)
"""


class Foreground:
    """The user's programs, at normal priority."""

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
        if not select.select([process.stdout], [], [], ANSWER_SECONDS)[0]:
            raise TimeoutError(f"the foreground's programs do not answer within {ANSWER_SECONDS:g} s.")
        return process.stdout.readline()

    def _ask(self, process: subprocess.Popen[str], line: str) -> None:
        assert process.stdin is not None
        process.stdin.write(line + "\n")

    def job(self) -> float:
        """Seconds until a fixed amount of computing per core is done on all cores."""
        for process in self._jobs:
            self._ask(process, str(self._work))
        return max(float(self._answer(process)) for process in self._jobs)

    def frames(self, seconds: float) -> tuple[float, float]:
        """Seconds of the slowest frame in a hundred, and the part of frames that were late."""
        self._ask(self._animation, str(seconds))
        slowest, late = map(float, self._answer(self._animation).split())
        return slowest, late

    def close(self) -> None:
        for process in (*self._jobs, self._animation):
            process.kill()
            process.wait()


def measure(rounds: int, seconds: float, model: str) -> dict[str, dict[str, list[float]]]:
    """By case, of each round: seconds of the job and of slow frames, the part of late frames, and the part of one core
    that the case's worker used beside the animation.

    Raises RuntimeError when a worker that should train beside it does not.
    """
    found: dict[str, dict[str, list[float]]] = {}
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="skep-bench-") as folder, swarm(Path(folder), model) as shared:
        using = SkepPeer(shared, share=0.0)
        unthrottled = SkepPeer(shared, share=0.0, nice=0, threads=cores)
        foreground = Foreground()
        try:
            for peer in (using, unthrottled):
                peer.wait_for(is_progress)
            say("both workers are in the swarm")
            cases: dict[str, tuple[SkepPeer, float]] = {
                "nothing": (using, 0.0),
                "using": (using, USING),
                "unthrottled": (unthrottled, 1.0),
            }
            for number in range(rounds):
                for name, (peer, share) in in_turn(cases.items(), number):
                    begin(peer, share)
                    case = found.setdefault(name, {"job": [], "frame": [], "late": [], "used": []})
                    case["job"].append(statistics.median(foreground.job() for _ in range(max(1, int(seconds / 2)))))
                    before = used_seconds(peer)
                    frame, late = foreground.frames(seconds)
                    case["used"].append((used_seconds(peer) - before) / seconds)
                    if case["used"][-1] < share / 10:  # includes rounds that wait for the other peer, which left
                        raise RuntimeError(f"a worker that may use {share:.0%} used {case['used'][-1]:.0%} of a core.")
                    case["frame"].append(frame)
                    case["late"].append(late)
                    peer.set_share(0.0, present=True)
                    time.sleep(1.0)
                    say(
                        f"round {number + 1} of {rounds}, {name}: job {case['job'][-1]:.3f} s, frame {1000 * frame:.1f} ms"
                    )
        finally:
            foreground.close()
            for peer in (using, unthrottled):
                peer.kill()
    return found


def begin(peer: SkepPeer, share: float) -> None:
    """Returns when the peer, which was paused, trains at `share` again; immediately without one. Raises
    TimeoutError.
    """
    if not share:
        return
    before = peer.latest(is_progress)["samples"]
    peer.set_share(share, present=True)
    peer.wait_for(lambda event: is_progress(event) and event["samples"] > before)


def used_seconds(peer: SkepPeer) -> float:
    """Processor time of the worker's own process so far; network processes are separate."""
    told = psutil.Process(peer.process.pid).cpu_times()
    return float(told.user + told.system)


def rows(found: dict[str, dict[str, list[float]]]) -> list[Row]:
    made: list[Row] = []
    for what, name in (("job", "a job on all cores"), ("frame", "an animation's slow frames")):
        for case in ("using", "unthrottled"):
            beside_nothing = zip(found[case][what], found["nothing"][what], strict=True)
            slowdown = 100 * (statistics.median(with_it / plain for with_it, plain in beside_nothing) - 1)
            bound = BOUND if case == "using" else None
            beside = f"at {100 * USING:.0f} %" if case == "using" else "unthrottled"
            made.append(Row(f"{name}, skep {beside}: slower by", slowdown, "%", bound, found[case][what]))
    for case, values in found.items():
        bound = LATE if case == "using" else None
        made.append(Row(f"late frames, {case}", 100 * statistics.mean(values["late"]), "%", bound, values["late"]))
    for case in ("using", "unthrottled"):
        used = found[case]["used"]
        made.append(Row(f"one core used beside the animation, {case}", 100 * statistics.median(used), "%", None, used))
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each case in a round (6)")
    parser.add_argument("--model", default="3.3 M")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for foreground.json and .md")
    asked = parser.parse_args()
    found = measure(asked.rounds, asked.seconds, asked.model)
    return finish("foreground", rows(found), asked.out, share=USING, values=found)


if __name__ == "__main__":
    try:
        code = main()
    except (TimeoutError, RuntimeError) as error:
        say(f"cannot tell: {error} Is this machine busy with other things?")
        code = UNMEASURED
    sys.exit(code)
