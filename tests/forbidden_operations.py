"""A program that confines itself as the worker does, and then tries what the sandbox forbids.

It reads one JSON object (see `Case`) from its arguments, and prints one: what is missing, and the error of each
operation, "" where it was done. The operations are in `OPERATIONS`, each with the guards of which one is enough.
"""

import ctypes
import errno
import fcntl
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from skep.core.project.data import ShardIndex, TextLayout
from skep.core.sandbox import Guard, Level
from skep.core.session.messages import WorkerOptions
from skep.worker.main import Volunteer
from skep.worker.process.link import Link
from skep.worker.sandbox import calls
from skep.worker.sandbox.seccomp import _FORBIDDEN

NOBODY = 65534
MSGGET, MSGCTL = (68, 71) if os.uname().machine == "x86_64" else (186, 187)
PR_SET_DUMPABLE = 4
NUMBERS = _FORBIDDEN[calls.machine()]
OWN_MEMORY = ctypes.create_string_buffer(8)


@dataclass
class Case:
    """`outside` is a folder with what the worker must not reach, `process` one that it must not touch.

    `abstract` is a socket's name, `segment` shared memory of another program of the same user.
    """

    run: str
    outside: str
    process: int
    abstract: str
    segment: int
    level: str = Level.BEST
    as_nobody: bool = False

    def path(self, name):
        return Path(self.outside, name)


OPERATIONS = {}


def operation(*guards):
    def add(function):
        OPERATIONS[function.__name__] = guards, function
        return function

    return add


# --- files


@operation(Guard.FILES)
def read_an_ssh_key(case):
    case.path(".ssh/id_ed25519").read_bytes()


@operation(Guard.FILES)
def list_a_home(case):
    list(Path(case.outside).iterdir())


@operation(Guard.FILES)
def write_a_file(case):
    case.path("autostart").write_text("evil")


@operation(Guard.FILES)
def change_a_file(case):
    with case.path("written").open("r+") as file:
        file.truncate(0)


@operation(Guard.FILES)
def remove_a_file(case):
    case.path("removed").unlink()


@operation(Guard.FILES)
def rename_a_folder(case):
    case.path("renamed").rename(case.path("elsewhere"))


@operation(Guard.SERVICES)
def read_shared_memory_of_others(case):
    Path("/dev/shm", Path(case.outside).name).read_bytes()


@operation(Guard.FILES)
def change_the_control_groups(_):
    """Who can leave its own has no limit on memory."""
    next(Path("/sys/fs/cgroup").rglob("cgroup.procs")).open("w").close()


@operation(Guard.FILES)
def open_a_terminal(_):
    for each in os.openpty():
        os.close(each)


@operation(Guard.CALLS)
def chmod_a_file(case):
    case.path("written").chmod(0o777)


@operation(Guard.CALLS)
def chmod_an_own_file(case):
    made = Path(case.run, "own")
    made.touch()
    made.chmod(0o777)


@operation(Guard.CALLS)
def give_a_file_away(case):
    os.chown(case.path("written"), os.getuid(), os.getgid())


@operation(Guard.CALLS)
def change_the_time_of_a_file(case):
    os.utime(case.path("written"), (0, 0))


# --- programs


@operation(Guard.PROGRAMS)
def start_a_shell(_):
    subprocess.run(["/bin/sh", "-c", ":"], check=True)


@operation(Guard.PROGRAMS)
def start_a_program(_):
    subprocess.run(["/usr/bin/env"], check=True, stdout=subprocess.DEVNULL)


@operation(Guard.PROGRAMS)
def start_a_program_by_its_loader(_):
    loader = next(Path("/lib64").glob("ld-linux*"), None) or next(Path("/lib").glob("ld-linux*"))
    subprocess.run([loader, "/bin/true"], check=True)


@operation(Guard.PROGRAMS)
def start_an_own_program(case):
    made = Path(case.run, "program")
    made.touch(0o700)
    made.write_bytes(TRUE)
    subprocess.run([made], check=True)


TRUE = Path(shutil.which("true")).read_bytes()


@operation(Guard.PROGRAMS)
def start_a_program_from_memory(_):
    """One that needs no loader, which could not be started either."""
    written = os.memfd_create("program", 0)
    with os.fdopen(written, "wb") as file:
        file.write(WITHOUT_LOADER)
        file.flush()
        read = os.open(f"/proc/self/fd/{written}", os.O_RDONLY)  # one that is open for writing is not started
    try:
        subprocess.run([f"/proc/self/fd/{read}", "-help"], pass_fds=[read], check=True, capture_output=True)
    finally:
        os.close(read)


WITHOUT_LOADER = Path(find_spec("hivemind").origin).with_name("hivemind_cli").joinpath("p2pd").read_bytes()


# --- services


def connect(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(path)


@operation(Guard.SERVICES)
def connect_to_the_session_bus(case):
    connect(str(case.path("bus")))


@operation(Guard.SERVICES)
def connect_to_the_screen(case):
    connect(str(case.path("X0")))


@operation(Guard.SERVICES)
def connect_to_docker(case):
    connect(str(case.path("docker.sock")))


@operation(Guard.PROCESSES)
def connect_to_an_abstract_socket(case):
    connect(f"\0{case.abstract}")


# --- other processes


@operation(Guard.PROCESSES)
def signal_another_process(case):
    os.kill(case.process, signal.SIGCONT)


@operation(Guard.PROCESSES)
def read_the_environment_of_another_process(case):
    Path(f"/proc/{case.process}/environ").read_bytes()


@operation(Guard.PROCESSES)
def follow_the_root_of_another_process(case):
    list(Path(f"/proc/{case.process}/root/").iterdir())


@operation(Guard.CALLS, Guard.PROCESSES)
def trace_another_process(case):
    calls.syscall(NUMBERS["ptrace"], 16, case.process, 0, 0)
    os.waitpid(case.process, 0x40000000)  # __WALL
    calls.syscall(NUMBERS["ptrace"], 17, case.process, 0, 0)


@operation(Guard.CALLS)
def change_the_limits_of_another_process(case):
    limits = resource.prlimit(case.process, resource.RLIMIT_NOFILE)
    resource.prlimit(case.process, resource.RLIMIT_NOFILE, limits)


@operation(Guard.PROCESSES)
def offer_another_process_when_memory_ends(case):
    Path(f"/proc/{case.process}/oom_score_adj").write_text("1000")


# --- calls


@operation(Guard.CALLS)
def open_a_raw_socket(_):
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()


@operation(Guard.CALLS)
def open_a_packet_socket(_):
    socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM).close()


@operation(Guard.CALLS)
def open_a_socket_of_the_kernels_events(_):
    socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 15).close()


def is_refused(name, *arguments, allowed=()):
    """Make a call with arguments that the kernel refuses in another way; raise what it says, unless that is allowed."""
    try:
        done = calls.syscall(NUMBERS[name], *arguments)
    except OSError as error:
        if error.errno not in allowed:
            raise
    else:
        if name in {"userfaultfd", "io_uring_setup"}:
            os.close(done)


@operation(Guard.CALLS)
def read_a_windows_shared_memory(case):
    """As programs share pixels with X: segments have no names and are of the whole user."""
    attached = calls.LIBC.shmat
    attached.restype = ctypes.c_void_p
    if attached(case.segment, None, 0x1000) == ctypes.c_void_p(-1).value:  # SHM_RDONLY
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@operation(Guard.CALLS)
def make_a_message_queue(_):
    queue = calls.syscall(MSGGET, 0, 0o600)
    calls.syscall(MSGCTL, queue, 0, None)


@operation(Guard.CALLS)
def unshare_a_user_namespace(_):
    child = os.fork()
    if child == 0:
        try:
            calls.unshare(0x10000000)
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise OSError(status, os.strerror(status))


@operation(Guard.CALLS)
def ask_for_a_key(_):
    is_refused("keyctl", 0, -3, 0, allowed=(errno.ENOKEY,))


@operation(Guard.CALLS)
def set_up_io_uring(_):
    is_refused("io_uring_setup", 1, None, allowed=(errno.EFAULT,))


@operation(Guard.CALLS)
def load_a_program_into_the_kernel(_):
    is_refused("bpf", 0, None, 0, allowed=(errno.EINVAL, errno.EFAULT))


@operation(Guard.CALLS)
def measure_the_system(_):
    is_refused("perf_event_open", None, 0, -1, -1, 0, allowed=(errno.EFAULT,))


@operation(Guard.CALLS)
def catch_page_faults(_):
    is_refused("userfaultfd", 1)


@operation(Guard.CALLS)
def mount_a_disk(_):
    is_refused("mount", b"none", b"/nowhere", b"tmpfs", 0, None, allowed=(errno.ENOENT,))


@operation(Guard.CALLS)
def change_the_root(case):
    is_refused("chroot", b"/nowhere", allowed=(errno.ENOENT,))


@operation(Guard.CALLS)
def make_a_device(case):
    os.mknod(Path(case.run, "device"), 0o600 | 0o020000, os.makedev(1, 3))


@operation(Guard.CALLS)
def type_into_a_terminal(_):
    with Path(os.devnull).open("rb") as terminal:
        try:
            fcntl.ioctl(terminal, termios.TIOCSTI, b"x")
        except OSError as error:
            if error.errno != errno.ENOTTY:
                raise


@operation(Guard.CALLS, Guard.PRIVILEGES)
def set_the_clock(_):
    now = time.clock_gettime(time.CLOCK_REALTIME)
    time.clock_settime(time.CLOCK_REALTIME, now)


# --- privileges and limits


@operation(Guard.PRIVILEGES)
def become_another_user(_):
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(1234, 1234, 1234)
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise OSError(status, os.strerror(status))


@operation(Guard.LIMITS)
def allow_core_dumps(_):
    resource.setrlimit(resource.RLIMIT_CORE, (4096, 4096))


def main():
    case = Case(**json.loads(sys.argv[1]))
    options = WorkerOptions("", ShardIndex(TextLayout(1, 2), ()), run_folder=case.run, sandbox=Level(case.level))
    with Path(os.devnull).open("rb") as nothing:
        # before the rights are dropped: it imports modules, which that user may not be able to read
        volunteer = Volunteer(options, Link(nothing, os.open(os.devnull, os.O_WRONLY)))
    if case.as_nobody:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        calls.prctl(PR_SET_DUMPABLE, 1)  # as after the start of a program by that user
    found = volunteer.confine()
    errors = {}
    for name, (_, tried) in OPERATIONS.items():
        try:
            tried(case)
            errors[name] = ""
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            errors[name] = str(error)
    sys.stdout.write(json.dumps({"missing": found.missing, "errors": errors}) + "\n")


if __name__ == "__main__":
    main()
