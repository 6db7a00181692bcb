"""A file that the worker may only read cannot be shortened either, by whatever way it is opened."""

import json
import subprocess
import sys

import pytest

from sandboxes import has_landlock, has_namespaces
from skep.core.sandbox import Guard, Level

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this sandbox")

SECONDS = 60
PROGRAM = """
import json, os, sys
from skep.core.sandbox import Level
from skep.worker.sandbox.confine import confine
from skep.worker.sandbox.rules import Own

run, reads, level = sys.argv[1:]
before = os.open(reads + "/file", os.O_RDONLY)
found = confine(Own(run, reads=[reads]), Level(level))
errors = {}
for name, path in (("path", reads + "/file"), ("descriptor", f"/proc/self/fd/{before}")):
    for way, shorten in (
        ("truncate", lambda: os.truncate(path, 0)),
        ("opened to read", lambda: os.open(path, os.O_RDONLY | os.O_TRUNC)),
        ("opened to write", lambda: os.open(path, os.O_WRONLY | os.O_TRUNC)),
    ):
        try:
            shorten()
            errors[f"{name}, {way}"] = ""
        except OSError as error:
            errors[f"{name}, {way}"] = str(error)
os.truncate(run + "/own", 1)
print(json.dumps([list(found.missing), errors]))
"""


@pytest.mark.parametrize("level", [Level.BEST, Level.LANDLOCK, Level.ROOT])
def test_what_may_only_be_read_cannot_be_shortened(tmp_path, level):
    if level is not Level.ROOT and not has_landlock():
        pytest.skip("this system has no Landlock that refuses signals")
    if level is not Level.LANDLOCK and not has_namespaces(as_nobody=False):
        pytest.skip("this system has no user namespaces")
    run, reads = tmp_path / "run", tmp_path / "reads"
    for folder, name in ((run, "own"), (reads, "file")):
        folder.mkdir()
        (folder / name).write_text("content")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, run, reads, level],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    missing, errors = json.loads(done.stdout)
    assert (Guard.SERVICES in missing) == (level is Level.LANDLOCK)
    assert (run / "own").read_text() == "c"
    if level is Level.ROOT:  # only Landlock checks what a descriptor of before leads to
        errors = {way: error for way, error in errors.items() if way.startswith("path")}
    else:
        assert (reads / "file").read_text() == "content"
    assert all(errors.values()), errors
