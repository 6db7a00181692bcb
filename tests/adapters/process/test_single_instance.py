"""One skep per home, with real locks and a real second process."""

import os
import subprocess
import sys

import pytest

from english import in_english, raises
from skep.adapters.process.single_instance import instance_lock
from skep.core.errors import AlreadyRunning, StorageError

HOLDER = """
import sys
from pathlib import Path
from skep.adapters.process.single_instance import instance_lock
with instance_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(home):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home.lock_file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_second_process_is_told_who_holds_the_home(home, holder):
    with pytest.raises(AlreadyRunning) as caught, instance_lock(home.lock_file):
        pass
    assert in_english(caught.value.title) == f"skep is already running in {home.root} (process {holder.pid})."


def test_a_killed_holder_lets_go(home, holder):
    holder.kill()
    holder.wait()
    with instance_lock(home.lock_file):
        assert home.lock_file.read_text() == str(os.getpid())


def test_one_process_cannot_hold_a_home_twice(home):
    with instance_lock(home.lock_file), pytest.raises(AlreadyRunning), instance_lock(home.lock_file):
        pass


def test_it_can_be_held_again_after_it_was_let_go(home):
    for _ in range(2):
        with instance_lock(home.lock_file):
            pass


def test_a_child_of_the_holder_does_not_keep_the_lock(home):
    with instance_lock(home.lock_file):
        command = [sys.executable, "-c", "print(flush=True); input()"]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False)
        child.stdout.readline()  # the child's files are closed a moment after Popen returns
    with child, instance_lock(home.lock_file):
        child.communicate(b"\n")


def test_the_file_is_for_this_user_only(home):
    with instance_lock(home.lock_file):
        assert home.lock_file.stat().st_mode & 0o777 == 0o600


def test_a_home_that_is_missing_is_said(tmp_path):
    with raises(StorageError, match="cannot be opened"), instance_lock(tmp_path / "none" / "lock"):
        pass


def test_what_another_program_wrote_into_the_file_is_not_shown(home, holder):
    home.lock_file.write_bytes(b"\xff not a number")
    with raises(AlreadyRunning, match=r"running in [^(]*\.$"), instance_lock(home.lock_file):
        pass
