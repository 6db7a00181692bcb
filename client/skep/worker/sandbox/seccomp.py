"""A seccomp filter: calls to the system that training never needs fail, in this process and those it starts.

The filter is a program for the kernel's BPF machine (linux/filter.h, linux/seccomp.h). Only x86-64 and 64-bit ARM are
known. The numbers of calls are those of asm/unistd.h.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from skep.worker.sandbox.calls import machine, prctl

_PR_SET_SECCOMP: Final = 22
_MODE_FILTER: Final = 2
_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000

_LOAD: Final = 0x20
_IF_EQUAL: Final = 0x15
_IF_AT_LEAST: Final = 0x35
_IF_ANY_BIT: Final = 0x45
_AND: Final = 0x54
_RETURN: Final = 0x06

_NUMBER: Final = 0
_ARCHITECTURE: Final = 4
_ARGUMENTS: Final = 16
"""Offsets in struct seccomp_data."""
_X32: Final = 0x40000000
"""Bit of the calls of x86-64's ABI with 32-bit pointers."""

# calls with the same number on both architectures, as all since Linux 5.1
_SAME: Final[dict[str, int]] = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "process_madvise": 440,
    "mount_setattr": 442, "quotactl_fd": 443, "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466,
    "open_tree_attr": 467, "file_setattr": 469,
}  # fmt: skip
_FORBIDDEN: Final[Mapping[str, Mapping[str, int]]] = {
    "x86_64": _SAME | {
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "add_key": 248,
        "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "mount": 165,
        "umount2": 166, "pivot_root": 155, "chroot": 161, "setns": 308, "unshare": 272, "kexec_load": 246,
        "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176, "reboot": 169,
        "swapon": 167, "swapoff": 168, "acct": 163, "quotactl": 179, "settimeofday": 164, "clock_settime": 227,
        "clock_adjtime": 305, "adjtimex": 159, "sethostname": 170, "setdomainname": 171, "syslog": 103,
        "vhangup": 153, "iopl": 172, "ioperm": 173, "modify_ldt": 154, "open_by_handle_at": 304,
        "fanotify_init": 300, "lookup_dcookie": 212, "chmod": 90, "fchmod": 91, "fchmodat": 268, "chown": 92,
        "fchown": 93, "lchown": 94, "fchownat": 260, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
        "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "mknod": 133, "mknodat": 259,
        "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66, "semtimedop": 220,
        "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "mq_open": 240, "mq_unlink": 241,
        "utime": 132, "utimes": 235, "futimesat": 261, "utimensat": 280,
    },
    "aarch64": _SAME | {
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "add_key": 217,
        "request_key": 218, "keyctl": 219, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "mount": 40,
        "umount2": 39, "pivot_root": 41, "chroot": 51, "setns": 268, "unshare": 97, "kexec_load": 104,
        "kexec_file_load": 294, "init_module": 105, "finit_module": 273, "delete_module": 106, "reboot": 142,
        "swapon": 224, "swapoff": 225, "acct": 89, "quotactl": 60, "settimeofday": 170, "clock_settime": 112,
        "clock_adjtime": 266, "adjtimex": 171, "sethostname": 161, "setdomainname": 162, "syslog": 116,
        "vhangup": 58, "open_by_handle_at": 265, "fanotify_init": 262, "lookup_dcookie": 18, "fchmod": 52,
        "fchmodat": 53, "fchown": 55, "fchownat": 54, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7,
        "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16, "mknodat": 33,
        "shmget": 194, "shmat": 196, "shmctl": 195, "semget": 190, "semop": 193, "semctl": 191, "semtimedop": 192,
        "msgget": 186, "msgsnd": 189, "msgrcv": 188, "msgctl": 187, "mq_open": 180, "mq_unlink": 181, "utimensat": 88,
    },
}  # fmt: skip


@dataclass(frozen=True)
class _Partly:
    """The architecture's number for the filter, and those of calls that are allowed with some arguments only."""

    architecture: int
    clone: int
    ioctl: int
    memfd_create: int
    prlimit: int
    socket: int


_PARTLY: Final = {
    "x86_64": _Partly(0xC000003E, clone=56, ioctl=16, memfd_create=319, prlimit=302, socket=41),
    "aarch64": _Partly(0xC00000B7, clone=220, ioctl=29, memfd_create=279, prlimit=261, socket=198),
}
_CLONE3: Final = 435
_NEW_NAMESPACES: Final = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
_MFD_NOEXEC_SEAL: Final = 8
"""Since Linux 6.3: a file in memory that can never be started as a program."""
_TIOCSTI: Final = 0x5412
_TIOCLINUX: Final = 0x541C
_SOCK_TYPE: Final = 0xF
_SOCK_PACKET: Final = 10

_Step = tuple[int, int, int, int]
"""Code, value, and how many steps to skip if the condition is true, and if it is false."""


def restrict(*, memory_files: bool = False) -> None:
    """Filter the calls of this process, which has one thread and no_new_privs, for good. Raises OSError.

    With `memory_files` it may make files in memory that can be started as programs.
    """
    filter_steps = steps(machine(), memory_files=memory_files)
    program = b"".join(struct.pack("HBBI", code, yes, no, value) for code, value, yes, no in filter_steps)
    kept = ctypes.create_string_buffer(program, len(program))
    filtering = _Program(len(program) // 8, ctypes.addressof(kept))
    prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(filtering))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def steps(architecture: str, *, memory_files: bool) -> Sequence[_Step]:
    """The filter. Raises OSError for an architecture whose calls are not known."""
    if architecture not in _PARTLY:
        raise OSError(errno.ENOSYS, f"the calls of {architecture or '32 bits'} are not known")
    partly = _PARTLY[architecture]
    return [
        _load(_ARCHITECTURE),
        (_IF_EQUAL, partly.architecture, 1, 0),
        _refuse(errno.ENOSYS),
        _load(_NUMBER),
        (_IF_AT_LEAST, _X32, 0, 1),
        _refuse(errno.ENOSYS),
        # as unknown: the C library then uses clone, whose flags a filter can read
        *_if(_CLONE3, [_refuse(errno.ENOSYS)]),
        *_if(partly.clone, [_argument(0), (_IF_ANY_BIT, _NEW_NAMESPACES, 0, 1), _refuse(), _allow()]),
        *_if(partly.prlimit, [_argument(0), (_IF_EQUAL, 0, 1, 0), _refuse(), _allow()]),
        *_if(
            partly.ioctl,
            [_argument(1), (_IF_EQUAL, _TIOCSTI, 1, 0), (_IF_EQUAL, _TIOCLINUX, 0, 1), _refuse(), _allow()],
        ),
        *_if(partly.socket, list(_sockets())),
        *([] if memory_files else _if(partly.memfd_create, list(_memory_files()))),
        *chain.from_iterable(_if(number, [_refuse()]) for number in _FORBIDDEN[architecture].values()),
        _allow(),
    ]


def _sockets() -> Iterator[_Step]:
    """Unix sockets, TCP and UDP, and netlink's routes, which list this computer's addresses; nothing else."""
    yield _argument(0)
    yield (_IF_EQUAL, socket.AF_UNIX, 9, 0)
    yield (_IF_EQUAL, socket.AF_INET, 4, 0)
    yield (_IF_EQUAL, socket.AF_INET6, 3, 0)
    yield (_IF_EQUAL, socket.AF_NETLINK, 0, 7)
    yield _argument(2)
    yield (_IF_EQUAL, 0, 4, 5)  # NETLINK_ROUTE
    yield _argument(1)
    yield (_AND, _SOCK_TYPE, 0, 0)
    yield (_IF_EQUAL, socket.SOCK_RAW, 2, 0)
    yield (_IF_EQUAL, _SOCK_PACKET, 1, 0)
    yield _allow()
    yield _refuse()


def _memory_files() -> Iterator[_Step]:
    """No rule for paths is asked when one is started as a program. As unknown: drivers know systems without them."""
    yield _argument(1)
    yield (_IF_ANY_BIT, _MFD_NOEXEC_SEAL, 1, 0)
    yield _refuse(errno.ENOSYS)
    yield _allow()


def _if(number: int, then: Sequence[_Step]) -> Iterator[_Step]:
    yield (_IF_EQUAL, number, 0, len(then))
    yield from then


def _load(offset: int) -> _Step:
    return (_LOAD, offset, 0, 0)


def _argument(position: int) -> _Step:
    """Load the lower 32 bits of an argument; both architectures store them first."""
    return _load(_ARGUMENTS + 8 * position)


def _refuse(error: int = errno.EPERM) -> _Step:
    return (_RETURN, _ERRNO | error, 0, 0)


def _allow() -> _Step:
    return (_RETURN, _ALLOW, 0, 0)
