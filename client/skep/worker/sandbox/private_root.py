"""A root folder of its own for this process and those it starts: only what the rules name exists in it.

So the sockets of the session bus, the screen, the keyring and Docker cannot be found, and what is read-only cannot be
changed in any way. What the host mounts or unmounts later changes nothing here. It takes Linux 5.12, and user namespaces
for those who are not root (mount_namespaces(7)).

The process makes it itself: a program such as bubblewrap would stay between the engine and the worker, which the engine
knows by its process id, session and signals.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skep.worker.sandbox import calls
from skep.worker.sandbox.rules import Access, Rule
from skep.worker.sandbox.trial import why_it_fails

_CLONE_NEWNS: Final = 0x00020000
_CLONE_NEWUSER: Final = 0x10000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE, _MS_SLAVE = 2, 4, 8, 0x4000, 0x40000, 0x80000
_MNT_DETACH: Final = 2
_OPEN_TREE_CLONE: Final = 1
_OPEN_TREE_CLOEXEC: Final = os.O_CLOEXEC if hasattr(os, "O_CLOEXEC") else 0
_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_AT_EMPTY_PATH: Final = 0x1000
_MOVE_MOUNT_F_EMPTY_PATH: Final = 4
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV, _ATTR_NOEXEC = 1, 2, 4, 8

_ATTRIBUTES: Final = {
    Access.READ: _ATTR_NOSUID | _ATTR_RDONLY | _ATTR_NODEV | _ATTR_NOEXEC,
    Access.LOAD: _ATTR_NOSUID | _ATTR_RDONLY | _ATTR_NODEV,
    Access.RUN: _ATTR_NOSUID | _ATTR_RDONLY | _ATTR_NODEV,
    Access.WRITE: _ATTR_NOSUID | _ATTR_NODEV | _ATTR_NOEXEC,
    Access.DEVICE: _ATTR_NOSUID | _ATTR_NOEXEC,
}
_PROC: Final = Path("/proc")
_OF_THE_SYSTEM: Final = ("sys", "irq", "bus", "fs", "sysrq-trigger")
"""What root may write to in /proc, besides its processes."""
_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the place of POSIX shared memory, here a new one
_LINKS: Final = {"/dev/fd": "/proc/self/fd"}
_MOST_LINKS: Final = 40


class _Attributes(ctypes.Structure):
    """struct mount_attr of mount_setattr(2)."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "namespace"))


def why_not(rules: Sequence[Rule], place: Path) -> str:
    """Why this system refuses `enter`, found out by a process that tries it; empty if it can be done."""
    return why_it_fails(lambda: enter(rules, place))


def enter(rules: Sequence[Rule], place: Path) -> None:
    """Make the root folder at the folder `place`, where it is mounted first, and enter it. Raises OSError.

    This process has to have one thread. After an error it must end: some of it may be done.
    """
    number = calls.PIVOT_ROOT.get(calls.machine())
    if number is None:
        raise OSError(errno.ENOSYS, "the number of pivot_root is not known")
    _own_namespace()
    calls.mount("none", "/", None, _MS_REC | _MS_SLAVE)
    with _copies(rules) as copies:
        calls.mount("skep", str(place), "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "mode=755,size=4m")
        for copy in copies:
            copy.attach(place)
    for path, target in _LINKS.items():
        with suppress(FileExistsError):
            _below(place, Path(path)).symlink_to(target)
    _change(str(place), _ATTR_RDONLY)
    os.chdir(place)
    calls.syscall(number, b".", b".")
    calls.umount(".", _MNT_DETACH)
    os.chdir(place)  # the same path, now of the folder that was there before


def _own_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    try:
        calls.unshare(_CLONE_NEWNS)  # root
    except PermissionError:
        calls.unshare(_CLONE_NEWUSER | _CLONE_NEWNS)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


@dataclass(frozen=True)
class _Copy:
    """A part of the file system that is not attached anywhere yet; `links` lead to its real path."""

    tree: int
    path: Path
    links: Sequence[tuple[Path, str]]

    def attach(self, place: Path) -> None:
        for link, leads_to in self.links:
            _parents(place, link)
            with suppress(FileExistsError):
                _below(place, link).symlink_to(leads_to)
        target = _below(place, self.path)
        if not target.exists():
            _parents(place, self.path)
            if stat.S_ISDIR(os.fstat(self.tree).st_mode):
                target.mkdir()
            else:
                target.touch()
        calls.syscall(calls.MOVE_MOUNT, self.tree, b"", _AT_FDCWD, os.fsencode(target), _MOVE_MOUNT_F_EMPTY_PATH)


@contextmanager
def _copies(rules: Iterable[Rule]) -> Iterator[list[_Copy]]:
    made: list[_Copy] = []
    try:
        for rule in rules:
            links, path = _followed(rule.path)
            if path == _SHARED_MEMORY:
                continue
            made.append(_Copy(_copy(path, 0 if path == _PROC else _ATTRIBUTES[rule.access]), path, links))
        facts = [path for path in (_PROC / name for name in _OF_THE_SYSTEM) if path.exists()]
        made += [_Copy(_copy(path, _ATTRIBUTES[Access.READ]), path, ()) for path in facts]
        made.append(_Copy(_shared_memory(), _SHARED_MEMORY, ()))
        made.sort(key=lambda copy: len(copy.path.parts))  # links may lead from a deep path to one above others
        yield made
    finally:
        for copy in made:
            os.close(copy.tree)


def _copy(path: Path, attributes: int) -> int:
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE
    tree = calls.syscall(calls.OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags)
    try:
        # private, since a later mount of the host would arrive with the host's attributes
        _set(tree, b"", _Attributes(attributes, 0, _MS_PRIVATE, 0), _AT_EMPTY_PATH | _AT_RECURSIVE)
    except OSError:
        os.close(tree)
        raise
    return tree


def _change(path: str, attributes: int) -> None:
    _set(_AT_FDCWD, path.encode(), _Attributes(attributes, 0, 0, 0), 0)


def _set(at: int, path: bytes, asked: _Attributes, flags: int) -> None:
    calls.syscall(calls.MOUNT_SETATTR, at, path, flags, ctypes.byref(asked), ctypes.sizeof(asked))


def _shared_memory() -> int:
    """A new one: the shared memory of other programs is not in it. Mounted over the real one, then copied."""
    calls.mount("skep", str(_SHARED_MEMORY), "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "mode=1777")
    return _copy(_SHARED_MEMORY, 0)


def _followed(path: Path) -> tuple[list[tuple[Path, str]], Path]:
    """The symbolic links on the way of an absolute path, and the path behind them all."""
    links: list[tuple[Path, str]] = []
    behind, left = Path("/"), list(path.parts[1:])
    while left:
        name = left.pop(0)
        if name == "..":
            behind = behind.parent
            continue
        step = behind / name
        if not step.is_symlink():
            behind = step
            continue
        target = str(step.readlink())
        links.append((step, target))
        if len(links) > _MOST_LINKS:
            raise OSError(errno.ELOOP, f"{path} leads to no file")
        ahead = Path(target)
        left[:0] = ahead.parts[1:] if ahead.is_absolute() else ahead.parts
        behind = Path("/") if ahead.is_absolute() else behind
    return links, behind


def _below(place: Path, path: Path) -> Path:
    return place / path.relative_to("/")


def _parents(place: Path, path: Path) -> None:
    _below(place, path).parent.mkdir(parents=True, exist_ok=True)
