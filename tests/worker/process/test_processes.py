import subprocess
import sys
import time

import psutil
import pytest

from families import kill, lives

DEADLINE = 10

FAMILY = """
import os, signal, subprocess, sys, time
from skep.worker.process import processes
processes.tie_to_this_process()
processes.REAP_SECONDS = 60  # how long that takes is not the matter here
if os.fork() == 0:
    subprocess.Popen(["sleep", "600"])
    time.sleep(600)
print("ready", flush=True)
sys.stdin.readline()
{end}
print([p.name() for p in __import__("psutil").Process().children(recursive=True)], flush=True)
sys.stdin.readline()
"""


def start(end):
    process = subprocess.Popen(
        [sys.executable, "-c", FAMILY.format(end=end)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    wait_until(lambda: len(psutil.Process(process.pid).children(recursive=True)) == 2)
    return process, psutil.Process(process.pid).children(recursive=True)


def wait_until(condition):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def finish(process):
    process.kill()
    process.wait(DEADLINE)
    process.stdin.close()
    process.stdout.close()


def test_children_and_grandchildren_are_ended_and_collected():
    process, _ = start("processes.kill_descendants()")
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "[]\n"
    finish(process)


def test_forked_processes_die_with_a_worker_that_is_killed():
    process, family = start("pass")
    forked = next(member for member in family if member.name() != "sleep")
    process.kill()
    wait_until(lambda: not lives(forked))
    finish(process)
    kill(family)  # the engine ends executed (not forked) processes


BROOD = """
import os, subprocess, sys, time
from skep.worker.process import processes
processes.tie_to_this_process()
processes.REAP_SECONDS = 60  # how long it takes to end many processes is not the matter here
if os.fork() == 0:
    time.sleep(0.2)
    while True:
        subprocess.Popen(["sleep", "600"])
        time.sleep(0.002)
time.sleep(0.3)
processes.kill_descendants()
print([p.name() for p in __import__("psutil").Process().children(recursive=True)], flush=True)
"""


def test_a_child_that_was_starting_another_one_leaves_none():
    done = subprocess.run([sys.executable, "-c", BROOD], capture_output=True, text=True, timeout=DEADLINE, check=True)
    assert done.stdout == "[]\n"


HANDLER = """
import os, signal, sys, time
from skep.worker.process import processes
processes.tie_to_this_process()
signal.signal(signal.SIGTERM, lambda *_: os.write(2, b"the child believes it is the worker"))
ready, begun = os.pipe()
child = os.fork()
if child == 0:
    os.write(begun, b"it runs, so what is to be done after a fork is done")
    time.sleep(600)
os.read(ready, 1)
os.kill(child, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_does_not_take_the_workers_sigterm_for_its_own():
    done = subprocess.run([sys.executable, "-c", HANDLER], capture_output=True, text=True, timeout=DEADLINE, check=True)
    assert (done.stdout, done.stderr) == ("-15\n", "")


SESSIONS = """
import os, subprocess
from skep.worker.process import processes
processes.fork_into_sessions()
child = os.fork()
if child == 0:
    subprocess.run(["sh", "-c", "ps -o sid= -p $$"])
    os._exit(0)
os.waitpid(child, 0)
print(child, os.getsid(0), flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="sessions are weighed against each other on Linux only")
def test_a_forked_process_leads_a_session_which_its_programs_share():
    done = subprocess.run(
        [sys.executable, "-c", SESSIONS], capture_output=True, text=True, timeout=DEADLINE, check=True
    )
    program, child, own = map(int, done.stdout.split())
    assert program == child != own


SHARES = """
import os, resource, torch
from skep.worker.process import processes
torch.multiprocessing.set_sharing_strategy("file_descriptor")
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))

def share():
    return [torch.zeros(4).share_memory_() for _ in range(200)]

try:
    share()
except RuntimeError as error:
    print("Too many open files" in str(error))
processes.raise_file_limit()
shared = share()
print(len(os.listdir("/proc/self/fd")) >= 200, resource.getrlimit(resource.RLIMIT_NOFILE)[1] == most)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_more_tensors_are_shared_than_a_desktop_lets_files_be_opened():
    done = subprocess.run([sys.executable, "-c", SHARES], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == ("True\nTrue True\n", 0), done.stderr
