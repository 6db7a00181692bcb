"""What the sandbox forbids is tried by a process that confined itself as the worker does: on every level, as every user."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import forbidden_operations
from forbidden_operations import NOBODY, OPERATIONS
from sandboxes import BY_LANDLOCK, BY_SYSTEMD, has_landlock, has_namespaces
from skep.core.sandbox import Guard, Level
from skep.worker.sandbox import calls

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this sandbox")

SECONDS = 120
ROOTS = {"open_a_raw_socket", "open_a_packet_socket", "change_the_root", "make_a_device", "set_the_clock",
         "become_another_user", "change_the_control_groups", "load_a_program_into_the_kernel", "mount_a_disk"}  # fmt: skip
"""What only root may do, without a sandbox too."""
NOBODYS = {"user": NOBODY, "group": NOBODY, "extra_groups": []}


@pytest.fixture(params=["root", "ordinary user"])
def as_nobody(request):
    if os.geteuid() == 0:
        return request.param == "ordinary user"
    if request.param == "root":
        pytest.skip("takes root")
    return False


@pytest.fixture
def tried(as_nobody):
    """Tries every operation in the sandbox of a level; returns what is missing, and each operation's error."""
    folder = Path(tempfile.mkdtemp(prefix="forbidden-"))
    run, outside = folder / "run", folder / "outside"
    owner = NOBODY if as_nobody else os.getuid()
    for each in (run, outside, outside / ".ssh", outside / "renamed"):
        each.mkdir()
    for name in (".ssh/id_ed25519", "written", "removed"):
        (outside / name).write_text("secret")
    shared = Path("/dev/shm", outside.name + secrets.token_hex(4))
    outside = outside.rename(folder / shared.name)
    shared.write_text("secret")
    for each in (folder, *folder.rglob("*"), shared):
        os.chown(each, owner, owner if as_nobody else os.getgid())
    abstract = f"skep-{secrets.token_hex(8)}"
    services = [listening(str(outside / name)) for name in ("bus", "X0", "docker.sock")]
    services.append(listening(f"\0{abstract}"))
    segment = calls.LIBC.shmget(0, 4096, 0o1666)
    assert segment >= 0
    sleeper = subprocess.Popen(["sleep", "600"], **(NOBODYS if as_nobody else {}))

    def attempt(level):
        case = {
            "run": str(run),
            "outside": str(outside),
            "process": sleeper.pid,
            "abstract": abstract,
            "segment": segment,
            "level": level,
            "as_nobody": as_nobody,
        }
        command = [sys.executable, forbidden_operations.__file__, json.dumps(case)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=run)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout.splitlines()[-1])
        return {Guard(guard) for guard in said["missing"]} - BY_SYSTEMD, said["errors"]

    yield attempt
    sleeper.kill()
    sleeper.wait()
    for each in services:
        each.close()
    shared.unlink()
    calls.LIBC.shmctl(segment, 0, None)  # removes it
    shutil.rmtree(folder)


def listening(path):
    made = socket.socket(socket.AF_UNIX)
    made.bind(path)
    made.listen()
    if not path.startswith("\0"):
        Path(path).chmod(0o777)
    return made


def refused(errors):
    return {name for name, error in errors.items() if error}


def by(*guards):
    return {name for name, (own, _) in OPERATIONS.items() if set(own) & set(guards)}


def test_the_best_level_refuses_all_of_them(tried, as_nobody):
    missing, errors = tried(Level.BEST)
    if not (has_landlock() and has_namespaces(as_nobody)):
        pytest.skip("this system has no user namespaces, or no Landlock that refuses signals")
    assert missing == set()
    assert len(OPERATIONS) > 20
    assert refused(errors) == set(OPERATIONS), errors


def test_landlock_alone_refuses_all_but_the_sockets_of_services(tried):
    missing, errors = tried(Level.LANDLOCK)
    if not has_landlock():
        pytest.skip("this system has no Landlock that refuses signals")
    assert missing == {Guard.SERVICES}
    assert refused(errors) == set(OPERATIONS) - by(Guard.SERVICES), errors


def test_a_private_root_alone_refuses_files_and_sockets_of_services(tried, as_nobody):
    missing, errors = tried(Level.ROOT)
    if not has_namespaces(as_nobody):
        pytest.skip("this system has no user namespaces")
    assert missing == BY_LANDLOCK
    assert refused(errors) >= by(*set(Guard) - missing), errors
    assert {"signal_another_process", "connect_to_an_abstract_socket"}.isdisjoint(refused(errors))


def test_without_a_sandbox_none_is_refused_but_what_only_root_may_do(tried, as_nobody):
    missing, errors = tried(Level.NONE)
    assert missing == set(Guard) - BY_SYSTEMD
    ordinary = as_nobody or os.geteuid() != 0
    assert refused(errors) <= (ROOTS if ordinary else set()), errors
