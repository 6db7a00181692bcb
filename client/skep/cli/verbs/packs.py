"""The verbs about compute packs: what suits this computer, fetching it or adding it from a file, checking, removing."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from skep import bootstrap
from skep.adapters.net.web import Stopped
from skep.adapters.storage.paths import expanded
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import numbers, say, tr
from skep.cli.show.terminal import table
from skep.core.errors import StorageError, UpdateError
from skep.core.pack_choice import Choice, PassedOver
from skep.core.text import NOTHING, Text
from skep.language import units
from skep.services import packs as services
from skep.services.packs import Installed, Offer, Packs, Progress

STEP: Final = 10
"""Percent between two lines about how far it is."""
SHOWN: Final = 5
"""Damaged files that are named."""


def add(verbs: Verbs) -> None:
    group = verbs.group("packs", tr("list, fetch, check and remove what skep computes with"), _list)
    group.verb("list", _list, tr("list the compute packs here, and which one suits this computer"))
    fetch = group.verb("fetch", _fetch, tr("fetch the compute pack that suits, try it, and use it"))
    fetch.add_argument("name", metavar="NAME", nargs="?", default="", help=tr("try this one first"))
    adding = group.verb("add", _add, tr("as fetch, from a copy of the update repository"))
    adding.add_argument("file", metavar=tr("FILE"), help=tr("its folder, or a tar or zip file of it"))
    group.verb("verify", _verify, tr("check every file of the compute packs here"))
    group.verb("back", _back, tr("use the previous compute pack again"))
    removing = group.verb("remove", _remove, tr("remove compute packs, and what was fetched for them"))
    removing.add_argument("name", metavar="NAME", nargs="?", default="", help=tr("only this one"))


def ensure(context: Context) -> None:
    """Before something is computed: fetch a compute pack if there is none, or if a new driver broke it.

    Raises UpdateError, StorageError.
    """
    packs = services.packs(context.home)
    why = NOTHING if packs.own_stack else packs.check()
    if why:
        context.terminal.note(say(why))
        _got(context, packs, packs.fetch(_progress(context)), show=False)


def got(context: Context) -> Path | None:
    """The compute pack for processes that need the training stack, fetched if need be; None where they need none.

    Raises UpdateError, StorageError.
    """
    ensure(context)
    return bootstrap.pack(context.home)


def here(context: Context) -> Path | None:
    """As `got`, but nothing is fetched: None also where one is missing."""
    with contextlib.suppress(UpdateError):
        return bootstrap.pack(context.home)
    return None


def _list(context: Context, _arguments: argparse.Namespace) -> None:
    packs = services.packs(context.home)
    installed = packs.installed()
    offer, problem = _offer(packs)
    spare = packs.spare
    body: dict[str, Any] = {
        "installed": [_described(each) for each in installed],
        "spare_bytes": spare,
        "lacking": packs.lacking or None,
        "suits": None if offer is None else _offered(offer),
        "problem": problem or None,
    }
    heading = (tr("Pack"), tr("PyTorch"), tr("Size"), tr("Use"))
    rows = [(each.pack.name, each.pack.torch, numbers().size(each.size), _use(each)) for each in installed]
    context.terminal.show(
        body,
        [
            *([table(heading, rows)] if rows else [] if packs.own_stack else [say(Text("packs.none_here"))]),
            *([tr("Removing those that are not used frees {size}.", size=numbers().size(spare))] if spare else []),
            *([say(packs.lacking)] if packs.lacking else []),
            *(_lines(offer) if offer is not None else []),
            *([say(problem)] if problem else []),
        ],
    )


def _offer(packs: Packs) -> tuple[Offer | None, Text]:
    """What the publisher offers, or why that is not known: what is here is listed all the same."""
    if packs.lacking:
        return None, NOTHING
    try:
        return packs.look(), NOTHING
    except (UpdateError, StorageError) as error:
        return None, error.title
    except Stopped:
        return None, NOTHING


def _lines(offer: Offer) -> list[str]:
    lines = [say(offer.choice.why)]
    if offer.to_fetch:
        lines.append(
            tr(
                "`skep packs fetch` fetches {size}. It needs {room} of the disk, in {folder}.",
                size=numbers().size(offer.to_fetch),
                room=numbers().size(offer.room or 0),
                folder=offer.folder,
            )
        )
    return [*lines, *(_passed(each) for each in offer.choice.passed_over)]


def _fetch(context: Context, arguments: argparse.Namespace) -> None:
    packs = services.packs(context.home)
    _got(context, packs, packs.fetch(_progress(context), arguments.name))


def _add(context: Context, arguments: argparse.Namespace) -> None:
    packs = services.packs(context.home)
    _got(context, packs, packs.add(expanded(arguments.file), _progress(context)))


def _got(context: Context, packs: Packs, choice: Choice | None, *, show: bool = True) -> None:
    """Say what is used now. Nothing cancels in a terminal but Ctrl-C, which ends it."""
    if choice is None or choice.pack is None:
        return
    words = tr(
        "The compute pack {name} is used now, with PyTorch {torch}.", name=choice.pack.name, torch=choice.pack.torch
    )
    if not show:
        context.terminal.note(words)
        return
    body = _chosen(choice) | {"path": str(packs.store.current)}
    context.terminal.show(body, [words, say(choice.why)])


def _verify(context: Context, _arguments: argparse.Namespace) -> int:
    packs = services.packs(context.home)
    found = packs.verify(_Steps(context, lambda how: tr("{percent} % of {size} checked.", **how)))
    lines = [
        tr(
            "{name}: damaged or missing: {files}.",
            name=name,
            files=", ".join([*paths[:SHOWN], *["…"][: len(paths) > SHOWN]]),
        )
        if paths
        else tr("{name}: every file is as it was laid down.", name=name)
        for name, paths in found.items()
    ]
    wrong = any(found.values())
    advice = [tr("`skep packs fetch` mends the one that suits.")] if wrong else []
    context.terminal.show({"damaged": found}, [*(lines or [say(Text("packs.none_here"))]), *advice])
    return 1 if wrong else 0


def _back(context: Context, _arguments: argparse.Namespace) -> None:
    pack = services.packs(context.home).go_back()
    context.terminal.show(
        {"name": pack.name, "torch": pack.torch},
        [tr("The compute pack {name} is used now, with PyTorch {torch}.", name=pack.name, torch=pack.torch)],
    )


def _remove(context: Context, arguments: argparse.Namespace) -> None:
    freed = services.packs(context.home).remove(arguments.name)
    words = tr("{size} are free again.", size=numbers().size(freed))
    context.terminal.show({"freed_bytes": freed}, [words])


# --- in words and as data


def _use(installed: Installed) -> str:
    if installed.is_current:
        return tr("is used")
    return tr("the previous one") if installed.is_previous else units.MISSING


def _passed(passed: PassedOver) -> str:
    return say(Text("packs.passed_over", pack=passed.pack.name, why=passed.why))


def _described(installed: Installed) -> dict[str, Any]:
    return {
        "name": installed.pack.name,
        "torch": installed.pack.torch,
        "path": str(installed.folder),
        "bytes": installed.size,
        "bytes_alone": installed.alone,
        "current": installed.is_current,
        "previous": installed.is_previous,
    }


def _offered(offer: Offer) -> dict[str, Any]:
    return _chosen(offer.choice) | {
        "to_fetch_bytes": offer.to_fetch,
        "room_bytes": offer.room,
        "path": None if offer.folder is None else str(offer.folder),
        "offered": [pack.name for pack in offer.packs],
    }


def _chosen(choice: Choice) -> dict[str, Any]:
    return {
        "name": choice.pack and choice.pack.name,
        "torch": choice.pack and choice.pack.torch,
        "device": choice.device and choice.device.choice,
        "why": choice.why,
        "passed_over": [{"name": each.pack.name, "why": each.why} for each in choice.passed_over],
    }


def _progress(context: Context) -> Progress:
    note = context.terminal.note
    return Progress(
        chosen=lambda choice: note(say(choice.why)),
        fetched=_Steps(context, lambda how: tr("{percent} % of {size} fetched{left}.", **how)),
        laid=_Steps(context, lambda how: tr("{percent} % of {size} laid down{left}.", **how)),
        tried=lambda pack: note(tr("{name} is being tried.", name=pack.name)),
        passed_over=lambda pack: note(_passed(pack)),
    )


class _Steps:
    """A line every STEP percent, with the time left."""

    def __init__(self, context: Context, words: Callable[[dict[str, Any]], str]) -> None:
        self._context, self._words = context, words
        self._told, self._began, self._total = 0, time.monotonic(), 0

    def __call__(self, done: int, total: int) -> bool:
        if total != self._total:  # another pack
            self._told, self._began, self._total = 0, time.monotonic(), total
        percent = 100 * done // max(1, total)
        if percent >= self._told + STEP:
            self._told = percent - percent % STEP
            how = {"percent": self._told, "size": numbers().size(total), "left": self._left(done, total)}
            self._context.terminal.note(self._words(how))
        return True

    def _left(self, done: int, total: int) -> str:
        seconds = (time.monotonic() - self._began) * (total - done) / max(1, done)
        return tr(", about {time} left", time=units.span(seconds)) if seconds >= 1 else ""
