"""Real child processes, correct and faulty ones: their messages arrive, and they leave nothing behind."""

from __future__ import annotations

import json
import logging
import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from english import raises
from fakes import make_index
from skep.adapters.process import process_tree, programs
from skep.adapters.process.process_tree import Mark, Tree, end_child, group_name, mark, own_group, sweep_leftovers
from skep.adapters.process.worker import UNREADABLE, WorkerProcess
from skep.core.errors import SkepError, UpdateError
from skep.core.policy.growth import Use
from skep.core.session import messages as m
from skep.core.text import Problem, Text, verbatim

SOON = 10.0
START_SECONDS = 60.0
"""Seconds until another interpreter has started a worker, beside other tests."""

PREAMBLE = """
import json, os, signal, subprocess, sys, time
def say(kind, **fields):
    sys.stdout.write(json.dumps({"type": kind} | fields) + "\\n"); sys.stdout.flush()
def hear():
    line = sys.stdin.readline()
    return json.loads(line) if line else None
def note(name, text):
    with open(os.path.join(FOLDER, name + ".new"), "w") as file: file.write(str(text))
    os.rename(os.path.join(FOLDER, name + ".new"), os.path.join(FOLDER, name))
"""

SPEAKS = """
start = hear()
note("start", json.dumps(start)); note("environment", json.dumps(dict(os.environ))); note("cwd", json.dumps(os.getcwd()))
say("ShardWanted", sha256="a")
print("a word for the log", file=sys.stderr, flush=True)
while message := hear():
    if message["type"] == "StopTraining": sys.exit(0)
    say("ShardWanted", sha256=str(message["share"]))
"""
IGNORES_STOP = """
signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)
say("ShardWanted", sha256="ready")
while True: time.sleep(1)
"""
NEVER_READS = IGNORES_STOP
FLOODS = """
line = json.dumps({"type": "ShardWanted", "sha256": "x" * 200}) + "\\n"
while True: sys.stdout.write(line * 100)
"""
FLOODS_LOG = """
say("ShardWanted", sha256="ready")
while True: sys.stderr.write("y" * 100_000)
"""
RUBBISH = """
say("ShardWanted", sha256="before"); print("hello from a library", flush=True); say("ShardWanted", sha256="after")
while True: time.sleep(1)
"""
FORGES_WORDS = """
say("WorkerStage", stage="data", fraction=0.5, detail={"id": "{x:>1000000000}", "args": {"x": 1}})
while True: time.sleep(1)
"""
ENDLESS_LINE = """
while True: sys.stdout.write("z" * 65536)
"""
CRASHES = """
title, hint = {"id": "round.no_other_peer", "args": {}}, {"id": "", "args": {}}
say("WorkerFailed", problem={"title": title, "hint": hint}, retry=True); sys.exit(3)
"""
SLEEPER = "import time; time.sleep(600)"
LEAVES_CHILDREN = f"""
child = subprocess.Popen([sys.executable, "-c", {SLEEPER!r}], start_new_session=False)
grandchild = subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE)
note("pids", json.dumps([child.pid, grandchild.pid, int(grandchild.stdout.readline())]))
say("ShardWanted", sha256="ready")
END
"""
LEAVES_A_STRANGER = f"""
child = subprocess.Popen([sys.executable, "-c", {SLEEPER!r}], start_new_session=True)
note("pids", json.dumps([child.pid]))
say("ShardWanted", sha256="ready")
END
"""
LEAVES_A_STRAY = f"""
daemon = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {SLEEPER!r}], stdout=2).pid)"
child = subprocess.run([sys.executable, "-c", daemon], stdout=subprocess.PIPE, start_new_session=True)
note("pids", json.dumps([int(child.stdout)]))
say("ShardWanted", sha256="ready")
END
"""
FLEES = """
import os, sys, time
trace = os.open(sys.argv[1] + "/trace", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
while not os.path.exists(sys.argv[1] + "/enough"):
    if os.fork():
        os._exit(0)
    os.setsid()
    os.write(trace, b".")
    time.sleep(0.001)
"""
"""A process without parent, session or environment in common with the worker, and another one every millisecond."""
LEAVES_ONE_THAT_FLEES = f"""
import ctypes
ctypes.CDLL(None).prctl(36, 1)  # as the worker does: it adopts its orphans
subprocess.Popen([sys.executable, "-c", {FLEES!r}, FOLDER], env={{}}, start_new_session=True, stdout=2)
say("ShardWanted", sha256="ready")
hear(); hear()
"""
WAITS = "hear(); hear()"
LOOKS_WHETHER_IT_WAS_TOLD = """
import select
while not os.path.exists(os.path.join(FOLDER, "look")): time.sleep(0.01)
note("told", f"{os.getpid()} {bool(select.select([0], [], [], 0)[0])}")
hear(); hear()
"""


@dataclass
class House:
    folder: Path
    posted: queue.SimpleQueue[m.Message] = field(default_factory=queue.SimpleQueue)
    said: list[m.Message] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)

    @property
    def registry(self) -> Path:
        return self.folder / "worker.json"

    def worker(self, script: str, post: Callable[[m.Message], None] | None = None, **options: Any) -> WorkerProcess:
        file = self.folder / "child.py"
        file.write_text(PREAMBLE + f"FOLDER = {str(self.folder)!r}\n" + textwrap.dedent(script))
        return WorkerProcess(
            post or self.posted.put,
            registry_file=self.registry,
            make_run_folder=self.make_run_folder,
            stderr_log=logging.getLogger("skep.worker.stderr"),
            command=[sys.executable, str(file)],
            **options,
        )

    def make_run_folder(self) -> Path:
        folder = self.folder / f"skep-{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        return folder

    def wait_message(self) -> m.Message:
        self.said.append(self.posted.get(timeout=SOON))
        return self.said[-1]

    def wait_exit(self) -> int:
        """The exit code, when it is posted; earlier messages are in `said`."""
        while not isinstance(message := self.wait_message(), m.WorkerExited):
            pass
        return message.code

    def note(self, name: str) -> Any:
        wait_for((self.folder / name).exists)
        return json.loads((self.folder / name).read_text())

    def run_folders(self) -> list[Path]:
        return list(self.folder.glob("skep-*"))


def wait_for(condition: Callable[[], object], within: float = SOON) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def start_message(threads: int = 0) -> m.WorkerOptions:
    return m.WorkerOptions("{}", make_index(), threads=threads, identity_path="/identity")


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def run(house: House) -> Iterator[Callable[..., WorkerProcess]]:
    """Starts a worker from a script; all its processes end with the test."""
    workers: list[WorkerProcess] = []

    def start(script: str, threads: int = 0) -> WorkerProcess:
        workers.append(house.worker(script))
        workers[-1].start(start_message(threads))
        return workers[-1]

    yield start
    for worker in workers:
        worker.close(within=0.0)


Run = Callable[..., WorkerProcess]


def test_its_memory_is_limited_before_it_is_told_anything(house: House):
    limited: list[tuple[int, int]] = []
    told = house.folder / "told"

    def limit(pid: int, leave: int) -> None:
        (house.folder / "look").touch()
        wait_for(told.exists)
        limited.append((pid, leave))

    worker = house.worker(LOOKS_WHETHER_IT_WAS_TOLD, limit_memory=limit)
    try:
        worker.start(m.WorkerOptions("{}", make_index(), leave_ram=7))
        pid, _, was_told = told.read_text().partition(" ")
        assert limited == [(int(pid), 7)]
        assert was_told == "False"
    finally:
        worker.close(within=0.0)


def test_messages_go_both_ways(house: House, run: Run):
    worker = run(SPEAKS)
    assert house.wait_message() == m.ShardWanted("a")
    worker.tell(m.SetShare(0.25))
    assert house.wait_message() == m.ShardWanted("0.25")
    worker.stop()
    assert house.wait_exit() == 0


def test_the_worker_is_given_a_run_folder_that_ends_with_it(house: House, run: Run):
    worker = run(SPEAKS)
    start, cwd = house.note("start"), house.note("cwd")
    (folder,) = house.run_folders()
    assert start["run_folder"] == cwd == str(folder)
    worker.stop()
    house.wait_exit()
    assert not folder.exists()
    assert not house.registry.exists()


def test_the_worker_sees_only_the_environment_it_needs(house: House, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    run(SPEAKS, threads=3)
    environment = house.note("environment")
    (folder,) = house.run_folders()
    assert "HF_TOKEN" not in environment
    assert environment["CUDA_VISIBLE_DEVICES"] == "1"
    assert (environment["OMP_NUM_THREADS"], environment["TMPDIR"]) == ("3", str(folder))
    assert environment["HF_HUB_OFFLINE"] == environment["TRANSFORMERS_OFFLINE"] == "1"
    assert environment["HIVEMIND_MEMORY_SHARING_STRATEGY"] == "file_descriptor"


def test_the_number_of_threads_is_left_open_when_it_is_automatic(house: House, run: Run):
    run(SPEAKS)
    assert "OMP_NUM_THREADS" not in house.note("environment")


def test_stderr_goes_to_the_log(house: House, run: Run, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "skep.worker.stderr")
    worker = run(SPEAKS)
    house.wait_message()
    worker.stop()
    house.wait_exit()
    assert "a word for the log" in caplog.messages


def test_last_words_come_before_the_exit_which_comes_once(house: House, run: Run):
    worker = run(CRASHES)
    assert house.wait_exit() == 3
    assert house.said[:-1] == [m.WorkerFailed(Problem(Text("round.no_other_peer")), retry=True)]
    worker.tell(m.SetShare(0.5))
    worker.stop()
    worker.close()
    with pytest.raises(queue.Empty):
        house.posted.get(timeout=0.3)


# all but the last are read at once; when the listener has taken them, the worker has been gone for a while
LATE_WORDS = """
sys.stdout.write("".join(json.dumps({"type": "ShardWanted", "sha256": str(n)}) + "\\n" for n in range(3)))
sys.stdout.flush()
time.sleep(0.2)
say("ShardWanted", sha256="3")
"""


def test_last_words_come_first_even_when_the_listener_is_slow(house: House):
    said: list[m.Message] = []

    def slow(message: m.Message) -> None:
        time.sleep(0.6)
        said.append(message)

    worker = house.worker(LATE_WORDS, slow)
    worker.start(start_message())
    wait_for(lambda: len(said) == 5)
    assert said[:-1] == [m.ShardWanted(str(number)) for number in range(4)]
    assert isinstance(said[-1], m.WorkerExited)


@pytest.mark.alone
def test_a_worker_that_ignores_stop_is_killed_in_time(house: House, run: Run):
    worker = run(IGNORES_STOP)
    house.wait_message()
    begun = time.monotonic()
    worker.stop(within=0.5)
    assert time.monotonic() - begun < 0.2, "stop returns at once"
    assert house.wait_exit() == -signal.SIGKILL
    assert 0.5 <= time.monotonic() - begun < 3.0


SAVES = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def save():
    say("WorkerSaving", seconds=SECONDS)
    while not os.path.exists(os.path.join(FOLDER, "may-end")): time.sleep(0.01)
    sys.exit(0)
say("ShardWanted", sha256="ready")
while message := hear():
    if message["type"] in ("StopTraining", "FinishTraining"): save()
"""


def test_a_worker_that_saves_lives_on_until_it_has_done_so(house: House, run: Run):
    worker = run(SAVES.replace("SECONDS", "600.0"))
    house.wait_message()
    worker.stop(within=3.0)
    assert house.wait_message() == m.WorkerSaving(600.0)
    with pytest.raises(queue.Empty):
        house.posted.get(timeout=4.0)
    (house.folder / "may-end").touch()
    assert house.wait_exit() == 0


def test_a_worker_saves_no_longer_than_it_asked_for(house: House, run: Run):
    worker = run(SAVES.replace("SECONDS", "0.5"))
    house.wait_message()
    worker.stop(within=0.5)
    assert house.wait_exit() == -signal.SIGKILL


def test_a_worker_that_has_failed_is_not_waited_for_though_it_asks_to_save(house: House, run: Run):
    failing = SAVES.replace("SECONDS", "600.0").replace(
        "    say(", '    say("WorkerFailed", problem=PROBLEM, retry=True); say(', 1
    )
    worker = run(
        failing.replace("PROBLEM", '{"title": {"id": "worker.training_process_silent", "args": {"seconds": 1}}}')
    )
    house.wait_message()
    worker.stop(within=0.5)
    assert house.wait_exit() == -signal.SIGKILL
    assert m.WorkerSaving(600.0) in house.said


@pytest.mark.parametrize("first", ["stop", "finish"])
def test_a_stop_of_a_worker_that_saves_ends_it(house: House, run: Run, first: str):
    worker = run(SAVES.replace("SECONDS", "600.0"))
    house.wait_message()
    if first == "stop":
        worker.stop(within=SOON)
    else:
        worker.tell(m.FinishTraining())
    assert house.wait_message() == m.WorkerSaving(600.0)
    worker.stop(within=0.2)
    assert house.wait_exit() == -signal.SIGKILL


def test_a_stuck_worker_does_not_save(house: House, run: Run):
    worker = run("signal.signal(signal.SIGUSR1, signal.SIG_IGN)" + SAVES.replace("SECONDS", "600.0"))
    house.wait_message()
    worker.end_stuck(within=0.5)
    assert house.wait_exit() == -signal.SIGKILL


DUMPS_ITS_STACKS = """
import faulthandler
faulthandler.register(signal.SIGUSR1)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def stuck_here(): say("ShardWanted", sha256="ready"); time.sleep(600)
stuck_here()
"""


@pytest.mark.alone
def test_a_stuck_worker_first_writes_its_stacks_and_is_killed(house: House, run: Run, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "skep.worker.stderr")
    worker = run(DUMPS_ITS_STACKS)
    house.wait_message()
    begun = time.monotonic()
    worker.end_stuck(within=0.5)
    assert time.monotonic() - begun < 0.2, "it returns at once"
    assert house.wait_exit() == -signal.SIGKILL
    assert any("in stuck_here" in line for line in caplog.messages)


def test_a_stuck_worker_that_heeds_sigterm_ends_by_it(house: House, run: Run):
    worker = run("""
def end(*_): note("ended", "by SIGTERM"); os._exit(7)
signal.signal(signal.SIGUSR1, signal.SIG_IGN); signal.signal(signal.SIGTERM, end)
say("ShardWanted", sha256="ready")
while True: time.sleep(1)
""")
    house.wait_message()
    worker.end_stuck(within=SOON)
    assert house.wait_exit() == 7


def test_a_stopped_process_is_ended_too(house: House, run: Run):
    worker = run("""
note("pid", os.getpid()); os.kill(os.getpid(), signal.SIGSTOP)
""")
    child = psutil.Process(house.note("pid"))
    wait_for(lambda: child.status() == psutil.STATUS_STOPPED)
    worker.end_stuck(within=0.5)
    assert house.wait_exit() == -signal.SIGKILL


def test_close_returns_when_nothing_is_left(house: House, run: Run):
    worker = run(IGNORES_STOP)
    house.wait_message()
    pid = json.loads(house.registry.read_text())["root"]["pid"]
    worker.close(within=0.2)
    assert not lives(pid)
    assert house.run_folders() == []


@pytest.mark.alone
def test_a_worker_that_never_reads_blocks_nobody(house: House, run: Run):
    worker = run(NEVER_READS)
    house.wait_message()
    begun = time.monotonic()
    for _ in range(200):
        worker.tell(m.ShardFailed("0" * 64, Problem("x" * 10_000)))
    assert time.monotonic() - begun < 1.0
    worker.stop(within=0.2)
    assert house.wait_exit() == -signal.SIGKILL


def test_a_worker_that_floods_is_slowed_and_still_ends(house: House):
    slow: queue.Queue[m.Message] = queue.Queue(maxsize=100)
    worker = house.worker(FLOODS, slow.put)
    worker.start(start_message())
    wait_for(slow.full)
    worker.stop(within=0.2)
    while not isinstance(slow.get(timeout=SOON), m.WorkerExited):
        pass
    assert house.run_folders() == []


def test_a_worker_that_floods_its_log_still_ends(house: House, run: Run):
    worker = run(FLOODS_LOG)
    house.wait_message()
    worker.stop(within=0.2)
    assert house.wait_exit() == -signal.SIGKILL


def test_rubbish_on_the_pipe_ends_the_worker_and_nothing_after_it_is_believed(house: House, run: Run):
    run(RUBBISH)
    assert house.wait_exit() == -signal.SIGKILL
    assert house.said[:-1] == [m.ShardWanted("before"), m.WorkerFailed(UNREADABLE, retry=True)]


def test_words_that_are_none_of_ours_end_the_worker(house: House, run: Run):
    run(FORGES_WORDS)
    assert house.wait_exit() == -signal.SIGKILL
    assert house.said[:-1] == [m.WorkerFailed(UNREADABLE, retry=True)]


def test_a_line_without_an_end_ends_the_worker(house: House, run: Run):
    run(ENDLESS_LINE)
    assert house.wait_exit() == -signal.SIGKILL
    assert house.said[:-1] == [m.WorkerFailed(UNREADABLE, retry=True)]


@pytest.mark.parametrize("end", ["sys.exit(1)", "os.kill(os.getpid(), signal.SIGKILL)", "hear(); hear(); os._exit(0)"])
def test_children_that_outlive_the_worker_are_ended(house: House, run: Run, end: str):
    worker = run(LEAVES_CHILDREN.replace("END", end))
    house.wait_message()
    worker.stop(within=1.0)
    house.wait_exit()
    assert [pid for pid in house.note("pids") if lives(pid)] == []


def test_children_that_hold_the_pipes_do_not_hold_up_the_exit(house: House, run: Run):
    run(LEAVES_CHILDREN.replace("END", "os._exit(4)"))
    house.note("pids")  # written just before it exits
    begun = time.monotonic()
    assert house.wait_exit() == 4
    assert time.monotonic() - begun < 3.0


def test_a_child_that_went_to_a_session_of_its_own_is_ended_too(house: House, run: Run):
    run(LEAVES_A_STRANGER.replace("END", "time.sleep(1.5); os._exit(0)"))
    (pid,) = house.note("pids")
    assert lives(pid)
    house.wait_exit()
    assert not lives(pid)


@pytest.mark.parametrize("end", ["sys.exit(1)", "os.kill(os.getpid(), signal.SIGKILL)", "time.sleep(600)"])
def test_a_child_in_another_session_whose_parent_is_gone_is_ended_though_nobody_saw_it(
    house: House, run: Run, end: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Tree, "look", lambda self: False)
    worker = run(LEAVES_A_STRAY.replace("END", end))
    (pid,) = house.note("pids")
    worker.stop(within=1.0)
    house.wait_exit()
    assert not lives(pid)


def test_all_processes_of_a_running_worker_are_measured_again_and_again(house: House):
    measured: list[set[int]] = []

    def measure(processes: Iterable[psutil.Process]) -> Use:
        measured.append({process.pid for process in processes})
        return Use(len(measured), 1)

    worker = house.worker(LEAVES_CHILDREN.replace("END", "hear(); hear()"), measure=measure, measure_seconds=0.05)
    worker.start(start_message())
    pids = house.note("pids")
    wait_for(lambda: measured and measured[-1] >= {*pids, worker_of(house)})
    worker.close(within=0.0)
    house.wait_exit()
    told = [message.use.memory for message in house.said if isinstance(message, m.WorkerMeasured)]
    assert told == list(range(1, len(measured) + 1))


def worker_of(house: House) -> int:
    return int(json.loads(house.registry.read_text())["root"]["pid"])


def test_another_worker_may_start_after_the_exit_but_not_before(house: House, run: Run):
    worker = run(SPEAKS)
    house.wait_message()
    with raises(SkepError, match="running already"):
        worker.start(start_message())
    worker.stop()
    house.wait_exit()
    worker.start(start_message())
    assert house.wait_message() == m.ShardWanted("a")


def test_a_command_that_does_not_exist_is_told(house: House):
    worker = WorkerProcess(
        house.posted.put,
        registry_file=house.registry,
        make_run_folder=house.make_run_folder,
        stderr_log=logging.getLogger("skep.worker.stderr"),
        command=[str(house.folder / "nothing")],
    )
    with raises(SkepError, match="could not be started"):
        worker.start(start_message())
    assert house.run_folders() == []
    worker.stop()
    worker.close()


def test_without_a_compute_pack_nothing_is_left_of_the_start(house: House):
    def none() -> Path:
        raise UpdateError(verbatim("There is no compute pack."))

    worker = house.worker(WAITS, pack=none)
    for _ in range(2):
        with raises(UpdateError, match="no compute pack"):
            worker.start(start_message())
    assert house.run_folders() == []


def test_no_worker_of_another_version_is_started(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(programs, "_STARTED_FROM", (0, 0))
    worker = house.worker(WAITS)
    with raises(SkepError, match="skep was updated or removed while it ran"):
        worker.start(start_message())
    assert house.run_folders() == []


# --- after engine and worker were killed at the same time


ENGINE = """
import logging, sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_worker import House, start_message
house = House(Path({folder!r}))
worker = house.worker({script!r})
worker.start(start_message())
house.wait_message()
(house.folder / "up").touch()
time.sleep(600)
"""


def kill_all_of_an_engine(house: House, script: str) -> list[int]:
    """Run an engine with such a worker and kill both with SIGKILL; returns the ids of the worker's child processes."""
    code = ENGINE.format(tests=str(Path(__file__).parent), folder=str(house.folder), script=script)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as engine:
        try:
            wait_for((house.folder / "up").exists, START_SECONDS)
            noted = json.loads(house.registry.read_text())
        finally:
            engine.kill()
    os.kill(noted["root"]["pid"], signal.SIGKILL)
    wait_for(lambda: not lives(noted["root"]["pid"]))
    pids: list[int] = house.note("pids")
    return pids


def test_a_start_after_everything_was_killed_ends_what_was_left(house: House):
    # new children are recorded after a short time
    script = LEAVES_CHILDREN.replace('say("ShardWanted"', 'time.sleep(1); say("ShardWanted"').replace(
        "END", "time.sleep(600)"
    )
    pids = kill_all_of_an_engine(house, script)
    assert all(lives(pid) for pid in pids)
    sweep_leftovers(house.registry)
    assert [pid for pid in pids if lives(pid)] == []
    assert house.run_folders() == []
    assert not house.registry.exists()


@pytest.fixture
def groups() -> Path:
    """The kernel's control groups of version 2; their controllers may be in use by version 1."""
    places = [Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")]
    found = next((each for each in places if (each / "cgroup.subtree_control").exists()), None)
    if found is None or os.geteuid() != 0:
        pytest.skip("takes root, and control groups of version 2")
    return found


def test_a_process_that_flees_from_the_tree_is_ended_with_its_control_group(
    house: House, groups: Path, monkeypatch: pytest.MonkeyPatch
):
    """The group is made by the test, as systemd would."""
    trace, made = house.folder / "trace", groups

    def steps() -> int:
        return trace.stat().st_size if trace.exists() else 0

    def limit(pid: int, _leave: int) -> None:
        nonlocal made
        made = groups / group_name(pid)
        made.mkdir()
        (made / "cgroup.procs").write_text(str(pid))

    monkeypatch.setattr("skep.adapters.process.worker.own_group", lambda pid: own_group(pid, groups))
    worker = house.worker(LEAVES_ONE_THAT_FLEES, limit_memory=limit)
    try:
        worker.start(start_message())
        wait_for(lambda: steps() > 100)
        worker.stop(within=0.2)
        house.wait_exit()
        assert (made / "cgroup.procs").read_text() == ""
    finally:
        (house.folder / "enough").touch()
        worker.close(within=0.0)
        if made != groups:
            wait_for(lambda: not (made / "cgroup.procs").read_text())
            made.rmdir()


def test_a_group_that_was_not_made_for_a_process_is_not_its_own():
    assert own_group(os.getpid()) is None


def test_what_nobody_had_seen_is_ended_too_by_the_next_start(house: House):
    pids = kill_all_of_an_engine(house, LEAVES_A_STRAY.replace("END", "time.sleep(600)"))
    noted = json.loads(house.registry.read_text())
    house.registry.write_text(json.dumps(noted | {"seen": [noted["root"]]}))
    assert all(lives(pid) for pid in pids)
    sweep_leftovers(house.registry)
    assert [pid for pid in pids if lives(pid)] == []


def test_what_ran_before_the_worker_is_left_alone_whatever_folder_it_uses(house: House):
    folder = house.make_run_folder()
    with subprocess.Popen([sys.executable, "-c", SLEEPER], env=os.environ | {"TMPDIR": str(folder)}) as earlier:
        later = Mark(2**22 + 1, time.time() + 60)
        assert Tree(later, held=False, folder=folder).kill()
        assert lives(earlier.pid)
        earlier.kill()


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", SLEEPER], start_new_session=True) as process:
        yield process
        process.kill()


def test_a_process_that_only_has_the_same_number_is_left_alone(house: House, stranger: subprocess.Popen[bytes]):
    found = mark(stranger.pid)
    assert found is not None
    other = {"pid": stranger.pid, "started": found.started - 60}
    house.registry.write_text(json.dumps({"root": other, "seen": [other], "run_folder": str(house.folder / "skep-1")}))
    sweep_leftovers(house.registry)
    assert lives(stranger.pid)
    assert not house.registry.exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"root": 1}', '{"root": {"pid": "x"}}', "\x00"])
def test_a_damaged_note_is_forgotten(house: House, text: str):
    house.registry.write_text(text)
    sweep_leftovers(house.registry)
    assert not house.registry.exists()


def test_without_a_note_there_is_nothing_to_sweep(house: House):
    sweep_leftovers(house.registry)


def test_a_note_of_a_folder_that_is_no_run_folder_ends_nobody_who_uses_it(house: House):
    environment = os.environ | {"TMPDIR": str(house.folder)}
    nobody = {"pid": 2**22 + 1, "started": 1.0}
    with subprocess.Popen([sys.executable, "-c", SLEEPER], env=environment) as user:
        house.registry.write_text(json.dumps({"root": nobody, "seen": [], "run_folder": str(house.folder)}))
        sweep_leftovers(house.registry)
        assert lives(user.pid)
        user.kill()


@pytest.mark.parametrize("name", ["important", "skep-x/../important"])
def test_a_folder_that_is_no_run_folder_is_never_removed(house: House, name: str):
    (house.folder / "important").mkdir()
    (house.folder / "skep-x").mkdir()
    nobody = {"pid": 2**22 + 1, "started": 1.0}
    body = {"root": nobody, "seen": [], "run_folder": str(house.folder / name)}
    house.registry.write_text(json.dumps(body))
    sweep_leftovers(house.registry)
    assert (house.folder / "important").exists()


def test_a_link_named_like_a_run_folder_is_not_followed(house: House):
    (house.folder / "important").mkdir()
    (house.folder / "skep-1").symlink_to(house.folder / "important")
    process_tree.remove_run_folder(house.folder / "skep-1")
    assert (house.folder / "important").exists()


def test_a_process_is_found_by_number_and_start_time(stranger: subprocess.Popen[bytes]):
    found = mark(stranger.pid)
    assert found is not None
    assert Mark(stranger.pid, found.started).find() is not None
    assert Mark(stranger.pid, found.started + 10).find() is None


LEADER = "sleep 600 & echo $!; sleep 600 & echo $!; exec sleep 600"


@pytest.fixture
def orphans() -> Iterator[tuple[Mark, list[Mark]]]:
    """A dead session leader, and two processes in its session."""
    with subprocess.Popen(["sh", "-c", LEADER], stdout=subprocess.PIPE, start_new_session=True) as leader:
        assert leader.stdout is not None
        children = [mark(int(leader.stdout.readline())) for _ in range(2)]
        root = mark(leader.pid)
        leader.kill()
    assert root is not None
    marks = [child for child in children if child]
    yield root, marks
    for each in marks:
        if process := each.find():
            process.kill()


def test_one_known_process_tells_whose_the_session_is(orphans: tuple[Mark, list[Mark]]):
    root, (known, unknown) = orphans
    assert Tree(root, [known], held=False).kill()
    assert known.find() is unknown.find() is None


def test_a_session_in_which_nobody_is_known_is_left_alone(orphans: tuple[Mark, list[Mark]]):
    root, others = orphans
    assert Tree(root, held=False).kill()
    assert all(other.find() for other in others)


def test_a_start_ends_what_an_earlier_worker_left(house: House, run: Run, stranger: subprocess.Popen[bytes]):
    found = mark(stranger.pid)
    assert found is not None
    process_tree.write_registry(house.registry, Tree(found, held=False), house.make_run_folder())
    run(SPEAKS)
    assert not lives(stranger.pid)
    assert len(house.run_folders()) == 1


def test_a_tree_tells_when_something_would_not_end(stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch):
    found = mark(stranger.pid)
    assert found is not None
    monkeypatch.setattr(process_tree, "_kill", lambda process: None)
    assert not Tree(found, held=True).kill(within=0.1)


@pytest.fixture
def family() -> Iterator[tuple[subprocess.Popen[bytes], list[Mark]]]:
    """A child that leads its own session and ignores SIGTERM, and marks of its two children."""
    child = subprocess.Popen(["sh", "-c", f"trap '' TERM; {LEADER}"], stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None
    children = [mark(int(child.stdout.readline())) for _ in range(2)]
    yield child, [each for each in children if each]
    with child:
        child.kill()


def test_a_child_that_does_not_end_when_asked_is_killed_with_its_tree(
    family: tuple[subprocess.Popen[bytes], list[Mark]],
):
    child, others = family
    output = child.stdout
    assert output is not None
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(output.read()))
    reader.start()
    end_child(child, child.terminate, within=0.1)
    reader.join(SOON)
    assert read == [b""]
    assert child.returncode == -signal.SIGKILL
    assert output.closed
    assert not any(each.find() for each in others)


def test_what_a_child_that_has_ended_left_is_killed(family: tuple[subprocess.Popen[bytes], list[Mark]]):
    child, others = family
    child.kill()
    begun = time.monotonic()
    end_child(child, lambda: None, within=60.0)
    assert time.monotonic() - begun < SOON
    assert not any(each.find() for each in others)
