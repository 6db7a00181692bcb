"""Compute packs: which one suits this computer, fetching it, trying it, using it, and going back.

An app without the training stack starts its workers with the current pack. A pack is tried in a process of its own before
it is used; one that fails is left with its reason and the next one is taken. Lists and wheels come from the repository of
the updates, or from a copy of it in a file. A skep that has a training stack of its own uses that, and no pack.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skep import bootstrap
from skep.adapters.net.web import Patience, Stop, Stopped, Web
from skep.adapters.packs import laying, obtaining
from skep.adapters.packs.store import PackStore
from skep.adapters.packs.trial import LASTING, Trials, try_out
from skep.adapters.packs.wheelhouse import Wheelhouse
from skep.adapters.process.programs import UpdateSource, has_own_stack, update_source
from skep.adapters.storage.files import os_errors
from skep.adapters.storage.paths import Home
from skep.core.device import Device
from skep.core.errors import BadInput, StorageError, UpdateError
from skep.core.pack_choice import DEVICES, Choice, PassedOver, choose, stands_in
from skep.core.packs import Pack, PackList, Wheel, list_name, wheel_target
from skep.core.project.addresses import reach_of
from skep.core.text import NOTHING, Text, sentences
from skep.services import updating

if TYPE_CHECKING:
    from skep.adapters.net.repository_copy import RepositoryCopy
    from skep.adapters.net.update_repository import UpdateRepository

NO_SOURCE: Final = Text("packs.no_source")
OWN_STACK: Final = Text("packs.own_stack")

_SPARE_LEAST: Final = 100_000
"""Fewer bytes are those of the lock and of the trials' results."""

GoOn = Callable[[int, int], bool]
"""Called with the bytes done and the total. If it returns False, the operation is cancelled; what came is kept."""


@dataclass(frozen=True)
class Progress:
    """What is called while a pack is got: when one is chosen, with bytes fetched and laid down, when one is passed over."""

    chosen: Callable[[Choice], object] = lambda _choice: None
    fetched: GoOn = lambda _done, _total: True
    laid: GoOn = lambda _done, _total: True
    tried: Callable[[Pack], object] = lambda _pack: None
    passed_over: Callable[[PassedOver], object] = lambda _pack: None
    waited: Callable[[], bool] = lambda: True
    """Called several times a second during a trial; False cancels."""


@dataclass(frozen=True)
class Offer:
    """What the publisher offers and this computer would get; sizes in bytes, None where nothing suits."""

    packs: Sequence[Pack]
    choice: Choice
    to_fetch: int | None = None
    room: int | None = None
    folder: Path | None = None


@dataclass(frozen=True)
class Installed:
    """A pack that is laid down; `size` in bytes, `alone` of them in files that no other pack here has."""

    pack: Pack
    folder: Path
    size: int
    alone: int
    is_current: bool
    is_previous: bool


@dataclass
class Packs:
    """The packs of one home. Calls may be slow. `keep_free` returns how many GB of the disk must stay free."""

    home: Home
    source: UpdateSource | None
    devices: Callable[[], Sequence[Device]]
    proxy: Callable[[], str]
    keep_free: Callable[[], float]
    own_stack: bool = False
    name: str = field(default_factory=lambda: list_name(*this_kind()))
    trial: Callable[[Path, Device, Callable[[], None]], Text] = try_out
    _stop: Stop = field(default_factory=Stop)
    _tried_displaced: bool = False

    def __post_init__(self) -> None:
        self.store = PackStore(self.home.packs_folder)
        self._house = Wheelhouse(self.store.fetched_folder)
        self._trials = Trials(self.home.packs_folder / "trials.json")

    @property
    def lacking(self) -> Text:
        """Why no packs are fetched, "" if they are."""
        if self.own_stack:
            return OWN_STACK
        return NOTHING if self.source is not None else NO_SOURCE

    def installed(self) -> list[Installed]:
        """Every pack that is laid down and can be read."""
        current, previous = self.store.current, self.store.previous
        records = [(folder, laying.read_record(folder)) for folder in self.store.laid()]
        return [
            Installed(
                record.pack, folder, self.store.size(folder), self.store.alone(folder),
                folder == current, folder == previous,
            )
            for folder, record in records
            if record is not None
        ]  # fmt: skip

    def look(self) -> Offer:
        """What the publisher offers now; damage that leaves a file's size as it was is not seen. Raises UpdateError, StorageError, Stopped."""
        known = self._list(self._repository())
        choice = self._choose(known)
        if choice.pack is None:
            return Offer(known.packs, choice)
        if self.store.is_whole(choice.pack, hashed=False):
            return Offer(known.packs, choice, 0, 0, self.store.place(choice.pack))
        plan = obtaining.plan(self.store, choice.pack, hashed=False)
        return Offer(known.packs, choice, plan.to_fetch, plan.room, self.store.place(choice.pack))

    def fetch(self, progress: Progress, name: str = "") -> Choice | None:
        """Get the pack that suits, or first the one called `name`, try it, and use it.

        Returns the choice that is used now; None when it was cancelled. Raises UpdateError, StorageError; then the pack
        that was used before still is.
        """
        try:
            repository = self._repository()
            known = self._list(repository)
            web = self._web()
            return self._get(known, name, progress, lambda house, wheel, told: house.fetch(
                wheel, repository.wheel_address(wheel), web, told
            ))  # fmt: skip
        except Stopped:
            return None

    def add(self, file: Path, progress: Progress, name: str = "") -> Choice | None:
        """As `fetch`, from a copy of the repository in a folder, a tar or a zip file."""
        from skep.adapters.net.repository_copy import repository_copy  # noqa: PLC0415 - rarely needed

        if self.lacking:
            raise UpdateError(self.lacking)
        try:
            with repository_copy(file) as copy:
                try:
                    known = self._list(self._repository(copy))
                except UpdateError as error:
                    refused = Text("packs.copy_refused", path=str(file), reason=error.title)
                    raise UpdateError(refused, Text("packs.ask_for_another_copy")) from None
                return self._get(known, name, progress, lambda house, wheel, told: _from_copy(copy, house, wheel, told))
        except Stopped:
            return None

    def must_be_tried(self) -> bool:
        """Whether the current pack was not tried with the present card and driver, does not suit them, or stands in for one that does."""
        pack = self._pack_in(self.store.current)
        if pack is None or self._displaced():
            return pack is not None
        device = choose(self.devices(), [pack]).device
        return device is None or not self._trials.passed(pack.digest, device)

    def check(self) -> Text:
        """Try the current pack if it must be tried: the reason why it no longer works, "" if it does.

        With a reason, `fetch` gets the next pack that suits. One for which the current one stands in is tried once, and used
        again if it works. Raises UpdateError, StorageError, Stopped.
        """
        if displaced := self._displaced():
            self._tried_displaced = True
            with contextlib.suppress(UpdateError, StorageError), self.store.changing():
                if not self._try(*displaced):
                    self.store.use(displaced[1])
        folder = self.store.current
        pack = self._pack_in(folder)
        if pack is None or folder is None:
            return Text("packs.none_here")
        choice = choose(self.devices(), [pack])
        if choice.device is None:
            return choice.passed_over[0].why
        if self._trials.passed(pack.digest, choice.device):
            return NOTHING
        with self.store.changing():
            return self._try(pack, folder, choice.device)

    def verify(self, told: GoOn = lambda _done, _total: True) -> dict[str, list[str]]:
        """By folder name, the files of each laid pack that are missing or changed. Raises Stopped."""
        return {folder.name: self.store.damaged(folder, self._ending(told)) for folder in self.store.laid()}

    def remove(self, name: str = "") -> int:
        """Remove the packs called `name`, or everything; returns the bytes freed. Raises UpdateError, StorageError."""
        found = [each for each in self.installed() if name in ("", each.pack.name)]
        if name and not found:
            raise BadInput(Text("packs.not_here", name=name), self._names_here())
        if not self.home.packs_folder.exists():
            return 0
        before = self.store.bytes()
        with self.store.changing():
            used = self.store.in_use()
            if any(not name or each.folder in used for each in found) and used:
                raise UpdateError(Text("packs.in_use"), Text("packs.leave_first"))
            for each in found:
                self.store.remove(each.folder)
            if not name:
                for folder in self.store.laid():
                    self.store.remove(folder)
                self.store.tidy()
                self._house.tidy()
                self._trials.forget()
        return before - self.store.bytes()

    @property
    def spare(self) -> int:
        """Bytes that `free` frees: of packs that are not used, and of what was fetched for none."""
        current = self.store.current
        spare = self.store.bytes() - (self.store.bytes(current) if current else 0)
        return spare if spare >= _SPARE_LEAST else 0

    def free(self) -> int:
        """Remove every pack but the current one and those that processes compute with; returns the bytes freed. Raises UpdateError, StorageError."""
        before = self.store.bytes()
        with self.store.changing():
            used = self.store.in_use()
            for folder in self.store.laid():
                if folder != self.store.current and folder not in used:
                    self.store.remove(folder)
            self.store.tidy()
            self._house.tidy()
        return before - self.store.bytes()

    def go_back(self) -> Pack:
        """Use the previous pack again. Raises UpdateError, StorageError."""
        with self.store.changing():
            record = laying.read_record(self.store.go_back())
        if record is None:
            raise UpdateError(Text("packs.none_here"))
        return record.pack

    def tidy(self) -> None:
        """Remove what an interruption left, and packs that nothing leads to."""
        if self.store.laid():
            with contextlib.suppress(UpdateError, StorageError), self.store.changing():
                self.store.tidy()

    def stop(self) -> None:
        """Cancel running operations in all threads; later ones do not start."""
        self._stop.set()

    # --- implementation

    def _get(self, known: PackList, name: str, progress: Progress, get: obtaining.Get) -> Choice:
        passed_over: list[PassedOver] = []
        with self.store.changing():
            choice = self._named(known, name) if name else self._choose(known)
            while choice.pack is not None and choice.device is not None:
                progress.chosen(choice)
                folder = self._obtain(choice.pack, progress, get)
                progress.tried(choice.pack)
                why = self._try(choice.pack, folder, choice.device, progress.waited, again=bool(name))
                if not why:
                    over = [*passed_over, *choice.passed_over]
                    self.store.use(folder, stands_in=stands_in(self._pack_in(self.store.current), choice.pack, over))
                    self.store.tidy()
                    self._house.tidy(keep={wheel.sha256 for pack in known.packs for wheel in pack.wheels})
                    return choice
                if why.id in LASTING:
                    self.store.keep_no_longer()
                passed_over.append(PassedOver(choice.pack, why))
                progress.passed_over(passed_over[-1])
                choice = self._choose(known, but=passed_over)
        raise UpdateError(choice.why, sentences(*(_said(each) for each in choice.passed_over)))

    def _obtain(self, pack: Pack, progress: Progress, get: obtaining.Get) -> Path:
        return obtaining.obtain(
            self.store, pack, get,
            keep_free=int(self.keep_free() * bootstrap.GB),
            fetched=self._ending(progress.fetched),
            laid=self._ending(progress.laid),
        )  # fmt: skip

    def _try(
        self,
        pack: Pack,
        folder: Path,
        device: Device,
        go_on: Callable[[], bool] = lambda: True,
        *,
        again: bool = False,
    ) -> Text:
        if not again and self._trials.passed(pack.digest, device):
            return NOTHING
        told = self._ending(lambda _done, _total: go_on())
        why = self.trial(folder, device, lambda: told(0, 0))
        with os_errors(Text("packs.cannot_be_kept", folder=str(self.home.packs_folder))):
            self._trials.note(pack.digest, device, why)
        return why

    def _choose(self, known: PackList, but: Sequence[PassedOver] = ()) -> Choice:
        devices = tuple(self.devices())
        failed = {each.pack.digest: each.why for each in but}
        return choose(devices, known.packs, {**self._trials.failed(devices), **failed})

    def _named(self, known: PackList, name: str) -> Choice:
        """The pack of that name, although it may not suit: the trial shows. Raises BadInput."""
        pack = next((each for each in known.packs if each.name == name), None)
        if pack is None:
            names = tuple(each.name for each in known.packs)
            raise BadInput(Text("packs.no_such_pack", name=name), Text("packs.there_are", names=names))
        suits = choose(self.devices(), [pack])
        if suits.device is not None:
            return suits
        return Choice(pack, Device(DEVICES[pack.kind], 0, pack.name), suits.passed_over[0].why)

    def _pack_in(self, folder: Path | None) -> Pack | None:
        record = laying.read_record(folder) if folder else None
        return record.pack if record else None

    def _displaced(self) -> tuple[Pack, Path, Device] | None:
        """The pack for which the current one stands in, if it suits now, with its folder and device."""
        folder = None if self._tried_displaced else self.store.displaced
        pack, devices = self._pack_in(folder), tuple(self.devices()) if folder else ()
        device = choose(devices, [pack], self._trials.failed(devices)).device if pack else None
        return (pack, folder, device) if pack and folder and device else None

    def _names_here(self) -> Text:
        names = tuple(each.pack.name for each in self.installed())
        return Text("packs.there_are", names=names) if names else NOTHING

    def _list(self, repository: UpdateRepository) -> PackList:
        known = repository.packs(self.name)
        if known is None or not known.packs:
            raise UpdateError(Text("packs.none_offered"), Text("packs.tell_publisher"))
        return known

    def _repository(self, copy: RepositoryCopy | None = None) -> UpdateRepository:
        """Raises UpdateError."""
        if self.lacking or self.source is None:
            raise UpdateError(self.lacking)
        from skep.adapters.net.repository_copy import ADDRESS  # noqa: PLC0415 - needed rarely
        from skep.adapters.net.update_repository import UpdateRepository  # noqa: PLC0415 - needed rarely

        self.home.create()
        address = self.source.address if copy is None else ADDRESS
        hint = Text("packs.try_again_tell_publisher")
        return UpdateRepository(self.home.updates_folder, address, self.source.root, copy or self._web(), hint)

    def _web(self) -> Web:
        assert self.source is not None
        return Web(Patience(), self._stop, reach_of(self.source.address), self.proxy)

    def _ending(self, go_on: GoOn) -> Callable[[int, int], None]:
        def told(done: int, total: int) -> None:
            self._stop.check()
            if not go_on(done, total):
                raise Stopped

        return told


def packs(home: Home) -> Packs:
    """The packs of the running skep; settings are read at each use."""
    return Packs(
        home,
        source=update_source(),
        devices=lambda: bootstrap.devices().list(),
        proxy=lambda: str(bootstrap.settings(home).load()["network.proxy"]),
        keep_free=lambda: float(bootstrap.settings(home).load()["disk.keep_free_gb"]),
        own_stack=has_own_stack(),
    )


def this_kind() -> tuple[str, str, str]:
    """System, machine and CPython's tag, as in the names of lists."""
    return (*updating.this_kind(), f"cp{sys.version_info.major}{sys.version_info.minor}")


def _from_copy(copy: RepositoryCopy, house: Wheelhouse, wheel: Wheel, told: Callable[[int], None]) -> None:
    """Raises UpdateError, StorageError, and what damaged archives raise."""
    try:
        with copy.target(wheel_target(wheel)) as file:
            house.add(wheel, file, told)
    except FileNotFoundError:
        raise UpdateError(Text("packs.not_in_copy", file=wheel.file), Text("packs.ask_for_another_copy")) from None


def _said(passed: PassedOver) -> Text:
    return Text("packs.passed_over", pack=passed.pack.name, why=passed.why)
