"""Compute packs: the training stack for one kind of device, as a locked list of wheels. Pure.

A list of packs is one JSON file for a system, a machine and a CPython, vouched for by the same TUF repository as
updates. It names each wheel by its SHA-256; the repository has it as `wheels/<sha256>.whl`. A list is data: nothing of
it is executed before a wheel's bytes have been verified against it.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from fnmatch import fnmatch
from typing import Annotated, Final

import msgspec

from skep.core.errors import UpdateError
from skep.core.text import Text

LIST_LIMIT: Final = 2 * 1024 * 1024
"""Maximum size of a list, in bytes."""
LARGEST_BYTES: Final = 20_000_000_000
"""Maximum size of one wheel, fetched or unpacked, in bytes."""

_Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9.-]{0,39}$")]
_WheelFile = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,199}\.whl$")]
_Hash = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
_Version = Annotated[str, msgspec.Meta(pattern=r"^[0-9][A-Za-z0-9.+!-]{0,59}$")]
_Size = Annotated[int, msgspec.Meta(gt=0, le=LARGEST_BYTES)]
_Pattern = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class PackKind(StrEnum):
    """What computes with a pack."""

    CPU = "cpu"
    CUDA = "cuda"
    ROCM = "rocm"
    MPS = "mps"


class Wheel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One wheel. `size` is its bytes as fetched, `unpacked` those of the files that are laid down."""

    name: _Name
    version: _Version
    file: _WheelFile
    sha256: _Hash
    size: _Size
    unpacked: _Size


class Pack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pack of one list.

    `driver` is the least driver version that can run it (NVML's, for CUDA), (0,) where none is needed. `cards` are the
    kinds of cards it has code for: compute capabilities such as "8.6" for CUDA, names such as "gfx1100" for ROCm; empty
    where it does not depend on the card. `left_out` are patterns on paths in the wheels that are not laid down, `kept`
    those that are all the same.
    """

    name: _Name
    kind: PackKind
    torch: _Version
    wheels: Annotated[tuple[Wheel, ...], msgspec.Meta(min_length=1, max_length=300)]
    driver: Annotated[tuple[_Count, ...], msgspec.Meta(min_length=1, max_length=4)] = (0,)
    cards: tuple[Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9.]{1,20}$")], ...] = ()
    left_out: tuple[_Pattern, ...] = ()
    kept: tuple[_Pattern, ...] = ()

    @property
    def to_fetch(self) -> int:
        """Bytes of all wheels as fetched."""
        return sum(wheel.size for wheel in self.wheels)

    @property
    def unpacked(self) -> int:
        """Bytes of all files that are laid down."""
        return sum(wheel.unpacked for wheel in self.wheels)

    @property
    def digest(self) -> str:
        """The identity of what is laid down: two packs with the same digest have the same files."""
        return hashlib.sha256(msgspec.json.encode([self.wheels, self.left_out, self.kept], order="sorted")).hexdigest()

    def is_laid(self, path: str) -> bool:
        """Whether a file of a wheel is laid down; `path` is relative to site-packages, with slashes."""
        return any(fnmatch(path, each) for each in self.kept) or not any(fnmatch(path, each) for each in self.left_out)


class PackList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every pack for one system, machine and CPython."""

    packs: Annotated[tuple[Pack, ...], msgspec.Meta(max_length=20)]


def list_name(system: str, machine: str, python: str) -> str:
    """The name of a list in the repository; `python` is a tag such as "cp311"."""
    return f"packs-{system}-{machine}-{python}.json"


def wheel_target(wheel: Wheel) -> str:
    """The name of a wheel in the repository."""
    return f"wheels/{wheel.sha256}.whl"


def read_packs(raw: bytes) -> PackList:
    """The packs of a list. Raises UpdateError."""
    if len(raw) > LIST_LIMIT:
        raise UpdateError(Text("packs.list_too_long"))
    try:
        found = msgspec.json.decode(raw, type=PackList)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UpdateError(Text("packs.list_unreadable", reason=str(error))) from None
    names = [pack.name for pack in found.packs]
    if len(set(names)) != len(names) or any(len({w.name for w in p.wheels}) != len(p.wheels) for p in found.packs):
        raise UpdateError(Text("packs.list_names_twice"))
    return found


def write_packs(packs: PackList) -> bytes:
    """A list as `read_packs` reads it: the same bytes for the same packs."""
    return msgspec.json.format(msgspec.json.encode(packs, order="sorted"), indent=1) + b"\n"
