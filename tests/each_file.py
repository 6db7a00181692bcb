"""Runs pytest on each file in a separate process, several at once.

    python tests/each_file.py AT_ONCE PYTEST_ARGUMENTS... -- FILES...

Prints a line for each file that passes, and at the end the output of those that failed; exits with 1 if one did. A file
without tests counts as passed. The processes are forked from this one, which has imported torch and hivemind,
which takes 2.6 s of processor time.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

# as in the worker; both must be set before hivemind is imported
os.environ["HIVEMIND_MEMORY_SHARING_STRATEGY"] = "file_descriptor"
from skep.worker.process import processes

processes.use_fork()

import hivemind  # noqa: F401 - for the processes forked from this one
import pytest
import torch  # noqa: F401 - as above
from hivemind.utils.mpfuture import MPFuture


def run_file(file: str, arguments: list[str], said: Path) -> int:
    """Start the process that runs the tests of `file` and writes to `said`; returns its id."""
    if pid := os.fork():
        return pid
    output = os.open(said, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    MPFuture.reset_backend()  # otherwise all files would share hivemind's locks
    status = pytest.main([*arguments, file])
    sys.stdout.flush()
    os._exit(status)


def main(at_once: int, arguments: list[str], files: list[str]) -> int:
    folder = Path(tempfile.mkdtemp())
    running, failed = dict[int, tuple[str, Path]](), list[Path]()
    waiting = files[::-1]
    while waiting or running:
        while waiting and len(running) < at_once:
            file = waiting.pop()
            said = folder / file.replace(os.sep, "-")
            running[run_file(file, arguments, said)] = file, said
        pid, status = os.wait()
        file, said = running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        if code == pytest.ExitCode.OK:
            print(file, said.read_text().splitlines()[-1], flush=True)
        elif code != pytest.ExitCode.NO_TESTS_COLLECTED:
            print(f"{file} failed ({code})", flush=True)
            failed.append(said)
    for said in failed:
        print(said.read_text(errors="replace"))
    shutil.rmtree(folder)
    return bool(failed)


if __name__ == "__main__":
    end = sys.argv.index("--")
    sys.exit(main(int(sys.argv[1]), sys.argv[2:end], sys.argv[end + 1 :]))
