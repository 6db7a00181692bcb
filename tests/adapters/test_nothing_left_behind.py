"""The check of tests/leftovers.py: a test that leaves something behind fails, and what it left is removed."""

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import leftovers

pytestmark = pytest.mark.alone

WATCH = Path(leftovers.__file__)

START = "import subprocess, sys, os, tempfile, signal\nSLEEP = [sys.executable, '-c', 'import time; time.sleep(60)']\n"


# each leaves one thing behind; what the last one leaves is found only at the end of the run
LEAKS = {
    "child": """
def test_it():
    subprocess.Popen(SLEEP)
""",
    "orphan": """
def test_it():
    code = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"
    subprocess.run([sys.executable, "-c", code, *SLEEP], check=True)
""",
    "child_without_marker": """
def test_it():
    subprocess.Popen(SLEEP, env={})
""",
    "orphan_marked_by_its_words": """
def test_it():
    code = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True, env={})"
    subprocess.run([sys.executable, "-c", code, *SLEEP, os.environ["SKEP_TEST_RUN"]], check=True)
""",
    "run_folder": """
def test_it():
    tempfile.mkdtemp(prefix="skep-")
""",
    "run_folder_of_a_child": """
def test_it():
    code = "from skep.adapters.storage.paths import make_run_folder; make_run_folder()"
    subprocess.run([sys.executable, "-c", code], check=True)
""",
    "wider_fixture": """
import pytest
@pytest.fixture(scope="module")
def helper():
    subprocess.Popen(SLEEP)
def test_it(helper):
    pass
""",
}
PROCESS, RUN_FOLDER = r"process \d+ \(.*time\.sleep\(60\)", r"/.*/st-\w+/skep-\w+"
LEFT = dict.fromkeys(LEAKS, PROCESS) | {"run_folder": RUN_FOLDER, "run_folder_of_a_child": RUN_FOLDER}

NOTHING = """
def test_it(tmp_path):
    assert subprocess.run([sys.executable, "-c", ""]).returncode == 0
    with tempfile.TemporaryDirectory(prefix="skep-"):
        pass
    (tmp_path / "skep-file").touch()
"""
ENDS_A_MOMENT_LATER = "def test_it():\n    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(0.3)'])\n"
SOCKET_OF_ANOTHER_PROGRAM = """
import atexit, secrets, socket
def test_it():
    path = f"/tmp/hivemind-p2pd-{secrets.token_hex(8)}.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    atexit.register(os.unlink, path)
"""
OF_SOMEBODY_ELSE = """
def test_it():
    code = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True, env={})"
    sleep = [sys.executable, "-c", "import time; time.sleep(1.5)"]
    subprocess.run([sys.executable, "-c", code, *sleep], check=True, env={})
"""
RUN_FOLDER_OF_A_WIDER_FIXTURE = """
import pytest, shutil
PARENT = '''
import os, subprocess, sys, tempfile
input()
folder = tempfile.mkdtemp(prefix="skep-")
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={**os.environ, "TMPDIR": folder})
print(folder, flush=True)
input()
child.communicate(b"end")
os.rmdir(folder)
'''
@pytest.fixture(scope="module")
def swarm():
    made = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield made
    made.communicate("end", timeout=20)
def test_it(swarm):
    print("restart", file=swarm.stdin, flush=True)
    assert swarm.stdout.readline().strip()
"""
FOLDER_OF_MULTIPROCESSING = """
import atexit
from multiprocessing import util
def test_it():
    assert os.path.exists(util.get_temp_dir())
    if os.fork() == 0:
        atexit._run_exitfuncs()
        os._exit(0)
    os.wait()
    assert os.path.exists(os.environ["TMPDIR"])
"""
TIDY = {
    "nothing": NOTHING,
    "multiprocessing": FOLDER_OF_MULTIPROCESSING,
    "wider": RUN_FOLDER_OF_A_WIDER_FIXTURE,
    "late": ENDS_A_MOMENT_LATER,
    "another_program": OF_SOMEBODY_ELSE,
    "socket_of_another_program": SOCKET_OF_ANOTHER_PROGRAM,
}

RUN = "import multiprocessing.util, pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
"""multiprocessing's exit handler is registered before the watch's, as in workers of pytest-xdist."""


def pytest_run(folder, bodies, grace=2.0):
    watch = WATCH.read_text().replace("GRACE_SECONDS = 2.0", f"GRACE_SECONDS = {grace}")
    (folder / "conftest.py").write_text(watch)
    for number, (name, body) in enumerate(bodies.items()):
        (folder / f"test_{number}_{name}.py").write_text(START + body)
    # a Popen object that is left causes a warning, which would hide the check's message
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", "--rootdir", folder, folder]
    command = [sys.executable, "-c", RUN, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture(scope="module")
def leaky_run(tmp_path_factory):
    """The output of a run of all LEAKS, and the sleepers that ran afterwards."""
    before = set(psutil.pids())
    done = pytest_run(tmp_path_factory.mktemp("leaky"), LEAKS, grace=0.3)
    return done.stdout, sleepers(set(psutil.pids()) - before)


def sleepers(pids):
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            if process.status() != psutil.STATUS_ZOMBIE and "import time; time.sleep(60)" in process.cmdline():
                found.append(process)
    return found


@pytest.mark.parametrize("name", LEAKS)
def test_a_test_that_leaves_something_behind_fails(leaky_run, name):
    printed, _ = leaky_run
    reports = re.findall(r"^left behind: (.*)$", printed, re.MULTILINE)
    assert re.match(LEFT[name], dict(zip(LEAKS, reports, strict=True))[name]), printed


def test_what_was_left_behind_is_ended_and_removed(leaky_run):
    printed, living = leaky_run
    assert not living
    places = re.findall(RUN_FOLDER, printed)
    assert len(places) >= 2
    assert not [place for place in places if Path(place).exists()]


def test_tests_that_leave_nothing_pass(tmp_path):
    done = pytest_run(tmp_path, TIDY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(TIDY)} passed" in done.stdout
    assert not done.stderr  # as multiprocessing prints when it ends, if its folder is gone by then


def test_the_watch_is_cheap():
    begun = time.process_time()
    for _ in range(20):
        assert leftovers._left(set(psutil.pids()), leftovers._files()) is None
    assert (time.process_time() - begun) / 20 < 0.02


def test_this_run_has_a_marker_and_a_temporary_folder_of_its_own():
    assert os.environ["SKEP_TEST_RUN"]
    assert Path(os.environ["TMPDIR"]).name.startswith("st-")
