"""Getting a pack onto this computer: only the wheels that are not here are fetched, then the pack is laid down.

An interruption at any point costs nothing that was verified: whole wheels stay until they are laid down, and a partial
download is continued.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skep.adapters.packs.store import PackStore, Source, Told
from skep.adapters.packs.wheelhouse import Wheelhouse
from skep.core.packs import Pack, Wheel

Get = Callable[[Wheelhouse, Wheel, Callable[[int], None]], object]
"""Brings a wheel into the wheelhouse, telling the bytes of it that are there."""


@dataclass(frozen=True)
class Plan:
    """What is to be done for a pack: wheels to link, to fetch, and to unpack; sizes in bytes."""

    sources: Mapping[str, Source]
    fetched: Sequence[Wheel]
    to_fetch: int
    to_unpack: int

    @property
    def room(self) -> int:
        """Bytes of the disk that are needed while it is done."""
        return self.to_fetch + self.to_unpack


def plan(store: PackStore, pack: Pack, *, hashed: bool = True) -> Plan:
    """The plan for a pack. Hashes everything that is here, and deletes damaged wheels. Raises StorageError.

    Without `hashed` only sizes are compared and nothing is deleted: for showing what is to be done.
    """
    house = Wheelhouse(store.fetched_folder)
    sources = store.sources(pack, hashed=hashed)
    unlinked = [wheel for wheel in pack.wheels if wheel.sha256 not in sources]
    missing = [wheel for wheel in unlinked if not (house.has(wheel) if hashed else house.seems_here(wheel))]
    return Plan(
        sources,
        missing,
        to_fetch=sum(house.to_come(wheel) for wheel in missing),
        to_unpack=sum(wheel.unpacked for wheel in unlinked),
    )


def obtain(store: PackStore, pack: Pack, get: Get, *, keep_free: int, fetched: Told, laid: Told) -> Path:
    """Fetch what is missing of a pack and lay it down, under the store's lock; returns its folder.

    `keep_free` bytes of the disk stay free. Raises UpdateError, StorageError, and what `fetched` and `laid` raise; then
    what was verified is kept, and no other pack has changed.
    """
    house = Wheelhouse(store.fetched_folder)
    if not store.is_whole(pack):
        todo = plan(store, pack)
        store.check_room(todo.room, keep_free)
        done = 0
        for wheel in todo.fetched:
            before, to_come = done, house.to_come(wheel)

            def heard(have: int, before: int = before, had: int = wheel.size - to_come) -> None:
                fetched(before + max(0, have - had), todo.to_fetch)

            heard(wheel.size - to_come)
            get(house, wheel, heard)
            done += to_come
        store.lay(pack, todo.sources, house.path, laid)
    folder = store.place(pack)
    store.keep_until_used(folder)  # its files are all that is left of the wheels
    for wheel in pack.wheels:
        house.remove(wheel)
    return folder
