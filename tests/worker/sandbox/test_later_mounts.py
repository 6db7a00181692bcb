"""What the host mounts later does not appear below the folders that the worker has in its private root."""

import subprocess
import sys

import pytest

from sandboxes import has_namespaces

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this sandbox")

SECONDS = 60
PROGRAM = """
import os, sys
from pathlib import Path
from skep.core.sandbox import Guard, Level
from skep.worker.sandbox import calls, private_root
from skep.worker.sandbox.confine import confine
from skep.worker.sandbox.rules import Own

MS_REC, MS_SHARED = 0x4000, 0x100000
run, reads = map(Path, sys.argv[1:])
private_root._own_namespace()
calls.mount("none", "/", None, MS_REC | MS_SHARED)  # as systemd mounts it
entered, mounted = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    found = confine(Own(str(run), reads=[str(reads)]), Level.ROOT)
    assert Guard.SERVICES not in found.missing, found.missing
    os.write(entered[1], b".")
    os.read(mounted[0], 1)
    print(sorted(each.name for each in (reads / "stick").iterdir()), flush=True)
    os._exit(0)
os.close(entered[1])
assert os.read(entered[0], 1)
calls.mount("stick", str(reads / "stick"), "tmpfs", 0)
(reads / "stick" / "new").touch()
os.write(mounted[1], b".")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_later_mount_of_the_host_does_not_appear(tmp_path):
    if not has_namespaces(as_nobody=False):
        pytest.skip("this system has no user namespaces")
    run, reads = tmp_path / "run", tmp_path / "reads"
    run.mkdir()
    (reads / "stick").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, run, reads], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
