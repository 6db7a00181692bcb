"""The worker as a process before it joins a swarm: how it starts, and that it always ends."""

import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest

from english import in_english, spoken
from families import lives
from manifests import PEER
from skep.core.session import wire
from skep.core.session.messages import ShardFailed, ShardWanted, StopTraining, WorkerFailed, WorkerStage
from skep.core.session.phases import Stage
from skep.core.text import Problem, verbatim
from worker_pipes import PATIENCE, PipedWorker, cut_shards

STOP_SECONDS = 2.0
PEER_ID = PEER.rpartition("/")[2]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    return folder, cut_shards(folder)


@pytest.fixture
def worker(data):
    started = []

    def start(**options):
        started.append(PipedWorker(*data, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


def at(stage, fraction=0.0):
    return lambda message: isinstance(message, WorkerStage) and (message.stage, message.fraction) == (stage, fraction)


def test_it_hears_the_engine_before_it_has_loaded_what_takes_seconds():
    program = "import sys, skep.worker.main; print({'torch', 'hivemind', 'transformers'} & sys.modules.keys())"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "set()\n"
    )


def test_an_engine_that_is_gone_before_it_said_anything_is_no_failure(worker):
    made = worker()
    made.hang_up()
    made.wait_gone()
    assert made.process.returncode == 0
    assert made.said == []


@pytest.mark.parametrize("line", [b"nonsense\n", b'{"type":"StopTraining"}\n', b'{"type":"WorkerOptions"}\n'])
def test_a_first_line_that_is_no_start_ends_it_with_two(worker, line):
    made = worker()
    made.write(line)
    made.wait_gone()
    assert made.process.returncode == 2
    assert made.said == []


# torch and hivemind take seconds to import; a stop must not wait for that
@pytest.mark.alone
@pytest.mark.parametrize("end", [lambda w: w.tell(StopTraining()), PipedWorker.hang_up, lambda w: w.write(b"?\n")])
def test_it_can_be_stopped_while_it_still_imports(worker, end):
    made = worker().start()
    made.wait_for(at(Stage.HARDWARE))
    end(made)
    assert made.wait_gone() < STOP_SECONDS
    assert made.process.returncode == 0
    assert not made.remains


def test_it_writes_its_stacks_when_asked_and_goes_on(worker):
    made = worker(serve=False).start()
    made.wait_for(lambda message: isinstance(message, ShardWanted))
    made.process.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + PATIENCE
    while "_await_data" not in made.words():
        assert time.monotonic() < deadline, made.words()
        time.sleep(0.02)
    made.tell(StopTraining())
    made.wait_gone()
    assert made.process.returncode == 0


@pytest.mark.alone
def test_sigterm_ends_it_too(worker):
    made = worker().start()
    made.wait_for(at(Stage.HARDWARE))
    made.process.send_signal(signal.SIGTERM)
    assert made.wait_gone() < STOP_SECONDS
    assert made.process.returncode == 0


@pytest.mark.alone
def test_it_can_be_stopped_while_it_waits_for_data(worker):
    made = worker(serve=False).start()
    made.wait_for(lambda message: isinstance(message, ShardWanted))
    made.tell(StopTraining())
    assert made.wait_gone() < STOP_SECONDS


def test_data_that_cannot_be_had_ends_it_in_the_words_of_the_engine(worker):
    made = worker(serve=False).start()
    problem = Problem(verbatim("The shard server does not answer."), verbatim("Try again later."))
    seen = 0
    failed = None
    while failed is None:
        wanted = made.all(ShardWanted)
        for message in wanted[seen:]:
            made.tell(ShardFailed(message.sha256, problem))
        seen = len(wanted)
        failed = next(iter(made.all(WorkerFailed)), None)
        time.sleep(0.01)
    made.wait_gone()
    assert failed == WorkerFailed(problem, retry=True)
    assert made.process.returncode == 1


def test_unreachable_seeds_are_named_and_worth_another_try(worker):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: it refuses connections
        port = taken.getsockname()[1]
        addresses = [f"/ip4/127.0.0.1/tcp/{port}/p2p/{PEER_ID}", f"/dns4/nowhere.invalid/tcp/1/p2p/{PEER_ID}"]
        made = worker().start(addresses)
        failed = made.wait_for(lambda message: isinstance(message, WorkerFailed))
        made.wait_gone()
    assert failed.retry
    assert in_english(failed.problem.title) == (
        f"None of the project's seed peers answers: 127.0.0.1:{port} refuses the connection; "
        "nowhere.invalid:1 is a name that could not be found."
    )
    assert made.process.returncode == 1
    assert "Traceback" not in made.words()
    assert not made.remains


def test_a_manifest_that_is_none_is_refused_in_words_and_not_tried_again(worker):
    made = worker().start(recipe__name="telepathy")
    failed = made.wait_for(lambda message: isinstance(message, WorkerFailed))
    made.wait_gone()
    assert not failed.retry
    assert "recipe.name" in in_english(failed.problem.title)
    assert made.process.returncode == 1


def test_an_error_nobody_foresaw_is_put_in_words_and_its_traceback_in_the_log(worker):
    made = worker()
    made._identity = lambda: made.folder / "no-such-identity"
    made.start()
    failed = made.wait_for(lambda message: isinstance(message, WorkerFailed))
    made.wait_gone()
    assert spoken(failed) == WorkerFailed(
        Problem(
            verbatim("An unknown error occurred in the training process."),
            verbatim("Details are in its log. skep starts it again."),
        ),
        retry=True,
    )
    assert "no-such-identity" in made.words()
    assert made.process.returncode == 1


def test_it_ends_though_nobody_reads_its_log_any_more(worker):
    made = worker(reads_log=False)
    made._identity = lambda: made.folder / "no-such-identity"
    made.start()
    made.wait_gone(PATIENCE)
    assert made.process.returncode == 1
    assert isinstance(made.said[-1], WorkerFailed)


DEPARTURE = """
import os, subprocess, sys, time
from skep.core.session.messages import WorkerOptions
from skep.core.project.data import ShardIndex, TextLayout
from skep.worker.process import processes
from skep.worker.process.link import Link
from skep.worker.main import Volunteer

def fill(pipe):
    os.set_blocking(pipe, False)
    try:
        while os.write(pipe, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(pipe, True)

def fail(within):
    raise RuntimeError("the DHT's process is gone")

link = Link.over_stdio()
processes.tie_to_this_process()
start = WorkerOptions("", ShardIndex(TextLayout(1, 2), ()), run_folder=sys.argv[1])
volunteer = Volunteer(start, link)
volunteer._rounds.grow(0, 8)
child = subprocess.Popen(["sleep", "600"])
print(child.pid, file=sys.stderr, flush=True)
{trouble}
volunteer.depart()
"""


# a front end that hangs without reading, a DHT process that hangs, a dead one, a second thread that departs
@pytest.mark.parametrize(
    "trouble",
    [
        "fill(link._sink)",
        "volunteer._introduce(lambda within: time.sleep(600))",
        "volunteer._introduce(fail)",
        "import threading; threading.Thread(target=volunteer.stop).start()",
        "os.close(2); volunteer._introduce(fail)",
    ],
)
def test_a_departure_always_ends_the_process_and_its_children(tmp_path, trouble):
    process = subprocess.Popen(
        [sys.executable, "-c", DEPARTURE.replace("{trouble}", trouble), str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    child = psutil.Process(int(process.stderr.readline()))
    begun = time.monotonic()
    assert process.wait(PATIENCE) == 0
    assert time.monotonic() - begun < STOP_SECONDS
    deadline = time.monotonic() + PATIENCE
    while lives(child):  # killed, and not collected yet by the system's first process
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


SAVING = """
import sys, threading, time, types
from pathlib import Path
from skep.core.project.data import ShardIndex, TextLayout
from skep.core.session.messages import WorkerOptions
from skep.worker.main import Volunteer
from skep.core.sandbox import Level
from skep.worker.process.link import Link

folder, in_round, size = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
run_folder, saved, may_save = str(folder / "run"), folder / "saved", folder / "may-save"
may_copy = len(sys.argv) == 4
options = WorkerOptions("", ShardIndex(TextLayout(1, 2), ()), run_folder=run_folder, sandbox=Level.NONE)
volunteer = Volunteer(options, Link.over_stdio())
volunteer.__dict__["_manifest"] = types.SimpleNamespace(title="a project")


class Loop:
    sync = limits = property(lambda self: self)

    def state_bytes(self):
        return size

    def release(self):
        print("released", file=sys.stderr, flush=True)

    def run(self, stop, *_):
        threading.Thread(target=volunteer.stop, daemon=True).start()
        print("stopping", file=sys.stderr, flush=True)
        stop.wait()
        time.sleep(in_round)

    def save(self, within, copied=lambda: None):
        print("saving", file=sys.stderr, flush=True)
        if may_copy:
            copied()
        else:
            time.sleep(600)
        while not may_save.exists():
            time.sleep(0.01)
        saved.write_text("saved")


joining = types.SimpleNamespace(run=Loop)
sys.modules["skep.worker.joining"] = types.SimpleNamespace(Joining=lambda *_: joining)
volunteer.run()
volunteer.depart()
"""


def saving_worker(folder, *, in_round=0.0, size=0, may_copy=True):
    return subprocess.Popen(
        [sys.executable, "-c", SAVING, str(folder), str(in_round), str(size), *([] if may_copy else ["no copy"])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.alone
def test_a_stopped_worker_frees_the_device_at_once_and_writes_its_state_before_it_exits(tmp_path):
    with saving_worker(tmp_path, size=1_500_000_000) as process:
        assert process.stderr.readline() == b"stopping\n"
        begun = time.monotonic()
        said = wire.decode_from_worker(process.stdout.readline())
        assert [process.stderr.readline(), process.stderr.readline()] == [b"released\n", b"saving\n"]
        assert time.monotonic() - begun < STOP_SECONDS
        assert 75.0 < said.seconds < 120.0  # of a slow disk
        with pytest.raises(subprocess.TimeoutExpired):  # it was ended after a second before
            process.wait(STOP_SECONDS)
        (tmp_path / "may-save").touch()
        assert process.wait(PATIENCE) == 0, process.stderr.read()
    assert (tmp_path / "saved").exists()


@pytest.mark.alone
def test_a_worker_that_is_stopped_in_a_long_round_frees_the_device_once_its_state_is_copied(tmp_path):
    with saving_worker(tmp_path, in_round=600.0) as process:
        assert process.stderr.readline() == b"stopping\n"
        begun = time.monotonic()
        assert [process.stderr.readline(), process.stderr.readline()] == [b"saving\n", b"released\n"]
        assert time.monotonic() - begun < STOP_SECONDS
        (tmp_path / "may-save").touch()
        assert process.wait(PATIENCE) == 0, process.stderr.read()
    assert (tmp_path / "saved").exists()


@pytest.mark.alone
def test_a_state_that_a_round_holds_is_not_waited_for(tmp_path):
    with saving_worker(tmp_path, in_round=600.0, may_copy=False) as process:
        assert process.stderr.readline() == b"stopping\n"
        begun = time.monotonic()
        assert process.wait(PATIENCE) == 0
        assert time.monotonic() - begun < STOP_SECONDS
    assert not (tmp_path / "saved").exists()


def test_what_follows_a_start_is_heard_though_it_comes_in_the_same_breath(worker):
    made = worker(serve=False)
    made.start()
    made.write(wire.encode(StopTraining()))
    made.wait_gone()
    assert made.process.returncode == 0
