"""What the worker may reach of the file system: its own folders, Python and its libraries, the system's files, devices.

The same list makes the rules of Landlock and the private root folder. Everything else does not exist for the worker.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import skep


class Access(Enum):
    READ = auto()
    LOAD = auto()
    """Read, also libraries that are mapped as code."""
    RUN = auto()
    """Read, and start as a program."""
    WRITE = auto()
    """Read, write, create and remove, also sockets."""
    DEVICE = auto()
    """Read, write and control a device."""


@dataclass(frozen=True)
class Rule:
    """What is allowed at `path` and, for a folder, below it. A path that does not exist is ignored."""

    path: Path
    access: Access


@dataclass(frozen=True)
class Own:
    """The worker's own paths: folders that it writes to, with its `run` folder, folders and files that it reads; "" is none."""

    run: str
    writes: Sequence[str] = ()
    reads: Sequence[str] = ()
    files: Sequence[str] = ()


# --- devices: all that training on the processor, NVIDIA's and AMD's cards needs; a new kind of device is added here

DEVICE_NODES: Final = ("null", "zero", "full", "random", "urandom", "nvidia*", "nvhost*", "nvmap", "dxg", "kfd", "dri")
"""Patterns below /dev; of a folder, everything in it. nvhost and nvmap are NVIDIA's boards', dxg is Windows' in WSL."""
DEVICE_LIBRARIES: Final = ("/opt/rocm*", "/usr/local/cuda*", "/run/opengl-driver")
"""Patterns of folders with libraries of drivers, besides the system's."""
DEVICE_FACTS: Final = ("/sys", "/etc/nvidia", "/etc/OpenCL", "/etc/vulkan")
DEVICE_CACHES: Final = ("CUDA_CACHE_PATH", "MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR")
"""Variables that name folders for compiled kernels. They are usually in the person's home, and code in them is run by
other programs too, so the worker gets the run folder instead."""

LIBRARIES: Final = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/nix/store")
LOADER: Final = Path("/etc/ld.so.conf")
SYSTEM: Final = (
    "/usr/share",
    "/proc",
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/run/connman",
)
"""In /run only the folders to which /etc/resolv.conf leads: folders, since that file is replaced in a new network."""
NO_SECRETS: Final = (
    "alternatives", "ca-certificates", "crypto-policies", "gai.conf", "group", "host.conf", "hosts", "ld.so.cache",
    "localtime", "nsswitch.conf", "passwd", "pki/tls/certs", "protocols", "resolv.conf", "services", "ssl/certs",
    "ssl/openssl.cnf", "timezone",
)  # fmt: skip
"""Names in /etc for a worker that runs as root, who owns the secret files there too."""


def rules(own: Own) -> list[Rule]:
    """All rules. Those of folders inside others come later. May be called before the training stack is loaded only."""
    found = dict(_rules(own))
    return [Rule(path, access) for path, access in sorted(found.items(), key=lambda each: len(each[0].parts))]


def _rules(own: Own) -> Iterator[tuple[Path, Access]]:
    yield from _each(map(Path, SYSTEM), Access.READ)
    yield from _each(map(Path, DEVICE_FACTS), Access.READ)
    yield from _each(_etc(), Access.READ)
    yield from _each(map(Path, LIBRARIES), Access.LOAD)
    yield from _each(_matching(DEVICE_LIBRARIES), Access.LOAD)
    yield from _each(loader_folders(LOADER), Access.LOAD)
    yield from _each(_python(), Access.LOAD)
    yield from _each(_programs(), Access.RUN)
    yield from _each(Path("/dev").glob("shm"), Access.WRITE)
    for pattern in DEVICE_NODES:
        yield from _each(Path("/dev").glob(pattern), Access.DEVICE)
    yield from _each((Path(each) for each in (*own.reads, *own.files) if each), Access.READ)
    yield from _each((Path(each) for each in (own.run, *own.writes) if each), Access.WRITE)


def _each(paths: Iterable[Path], access: Access) -> Iterator[tuple[Path, Access]]:
    for path in paths:
        if path.is_absolute() and os.path.exists(path):  # noqa: PTH110 - False where it may not be looked at
            yield path, access


def _matching(patterns: Iterable[str]) -> Iterator[Path]:
    for pattern in patterns:
        path = Path(pattern)
        yield from path.parent.glob(path.name)


def loader_folders(configuration: Path) -> Iterator[Path]:
    """The folders that the loader is told of (ldconfig(8)): a driver's may be anywhere, in containers above all."""
    files = [configuration]
    for file in files:  # which grows
        with suppress(OSError, UnicodeError):
            for line in file.read_text().splitlines():
                words = line.partition("#")[0].split()
                if words[:1] == ["include"]:
                    found = (each for pattern in words[1:] for each in _matching([str(file.parent / pattern)]))
                    files += [each for each in sorted(found) if each not in files]
                elif words:
                    yield Path(words[0])


def _etc() -> Iterable[Path]:
    # a whole folder where that is harmless: the rule for a file ends when it is replaced, as resolv.conf often is
    return map(Path("/etc").joinpath, NO_SECRETS) if os.geteuid() == 0 else (Path("/etc"),)


def _python() -> Iterator[Path]:
    """Where Python, skep and the training stack are, and the libraries that the person's environment names."""
    yield from map(Path, filter(None, sys.path))
    yield from (Path(prefix, name) for prefix in (sys.prefix, sys.base_prefix) for name in ("lib", "lib64"))
    yield Path(skep.__file__).parent
    if unpacked := getattr(sys, "_MEIPASS", ""):
        yield Path(unpacked).parent  # PyInstaller's modules are in the program's own file
    yield from map(Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")))
    if hivemind := _hivemind():
        yield hivemind


def _programs() -> Iterator[Path]:
    """p2pd, which needs no other file to be started: it is linked statically."""
    if hivemind := _hivemind():
        yield hivemind / "hivemind_cli" / "p2pd"


def _hivemind() -> Path | None:
    spec = find_spec("hivemind")
    return Path(spec.origin).parent if spec is not None and spec.origin else None
