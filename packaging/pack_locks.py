"""The lock files of the compute packs, packaging/packs/NAME.toml.

A pack is declared by hand: what computes with it, for which system and Python, which torch, from which index, and the
least driver. It is locked by `packs.py --lock`, which adds every wheel with its SHA-256 and, for GPUs, the cards that
torch has code for. A pack without wheels is declared only: it is built for nobody.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import msgspec

from skep.core.packs import PackKind

FOLDER: Final = Path(__file__).resolve().parent / "packs"


class LockedWheel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One wheel; `size` in bytes. `source_sha256` is that of the source archive it is built from, "" if none is."""

    name: str
    version: str
    file: str
    sha256: str
    size: int
    source_sha256: str = ""


class Lock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pack as declared, and its wheels if it is locked. `index` is a package index beside the usual one.

    `driver` and `cards` as in skep.core.packs.Pack; `about` is for people.
    """

    kind: PackKind
    system: str
    machine: str
    python: str
    torch: str
    about: str
    index: str = ""
    driver: tuple[int, ...] = (0,)
    cards: tuple[str, ...] = ()
    wheel: tuple[LockedWheel, ...] = ()

    @property
    def for_whom(self) -> tuple[str, str, str]:
        """The system, machine and Python of its list."""
        return self.system, self.machine, self.python


def names(folder: Path = FOLDER) -> list[str]:
    return sorted(file.stem for file in folder.glob("*.toml"))


def read(name: str, folder: Path = FOLDER) -> Lock:
    """Raises ValueError."""
    file = folder / f"{name}.toml"
    try:
        return msgspec.toml.decode(file.read_bytes(), type=Lock)
    except FileNotFoundError:
        raise ValueError(f"there is no pack {name}: {', '.join(names(folder))} are declared in {folder}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from None


def write(name: str, lock: Lock, folder: Path = FOLDER) -> None:
    """Write a lock file: the same text for the same lock."""
    (folder / f"{name}.toml").write_text(text(lock), encoding="utf-8")


def text(lock: Lock) -> str:
    fields = msgspec.to_builtins(lock)
    wheels = fields.pop("wheel")
    lines = _lines(fields)
    for wheel in wheels:
        lines += ["", "[[wheel]]", *_lines(wheel)]
    return "\n".join(lines) + "\n"


def _lines(fields: dict[str, object]) -> list[str]:
    # strings and arrays of JSON are those of TOML
    return [
        f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items() if value not in ("", ())
    ]
