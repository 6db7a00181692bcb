"""Fifty starts at the same moment, each a process of its own with the real lock and the real control socket."""

import json
import subprocess
import sys

STARTS = 50
WITHIN = 120

START = """
import json, os, signal, sys, time
from pathlib import Path
from skep.adapters.net.control_socket import ControlServer, ask
from skep.adapters.process.single_instance import instance_lock
from skep.adapters.storage.paths import Home
from skep.core.errors import AlreadyRunning, NotRunning

home, starts, within = Home(Path(sys.argv[1])), int(sys.argv[2]), float(sys.argv[3])


def start():
    try:
        with instance_lock(home.lock_file), ControlServer(home.control_file, lambda _: {"pid": os.getpid()}):
            say(runs=os.getpid())
            os.read(ended, 1)
    except AlreadyRunning as error:
        say(title=str(error.title), answer=answer())


def answer():
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            return ask(home.control_file, {"verb": "status"})["pid"]
        except NotRunning:
            time.sleep(0.02)  # the one that runs does not listen yet


def say(**told):
    os.write(1, json.dumps(told).encode() + b"\\n")


begun, begin = os.pipe()
ended, end = os.pipe()
children = []
for _ in range(starts):
    if not (child := os.fork()):
        signal.alarm(int(within))
        os.close(begin), os.close(end)
        os.read(begun, 1)  # all of them go on when the other end is closed
        start()
        os._exit(0)
    children.append(child)
os.close(begin)
for child in children[:]:
    pid, _ = os.wait()
    children.remove(pid)
    if len(children) == 1:
        os.close(end)  # the one that runs ends last
"""


def test_of_fifty_starts_one_runs_and_the_others_say_so_and_reach_it(home):
    command = [sys.executable, "-c", START, str(home.root), str(STARTS), str(WITHIN)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * WITHIN, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    runs = [each["runs"] for each in told if "runs" in each]
    assert len(told) == STARTS
    assert len(runs) == 1
    assert [each["answer"] for each in told if "title" in each] == runs * (STARTS - 1)
    assert {each["title"].split()[0] for each in told if "title" in each} == {"single_instance.skep_already_running"}
    assert done.stderr == ""
    assert not home.control_file.exists()
