"""Receiving a file of a known size into a part file, which a later attempt continues."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from skep.adapters.net.web import Answer, RangeRefused, TryAgain, Web
from skep.adapters.storage.shard_cache import PartFile
from skep.core.errors import DataError
from skep.core.text import Text

PROGRESS_SECONDS: Final = 0.2


@dataclass(frozen=True)
class Download:
    """A file at `address`, called `what` in messages; an answer with another length than `size` bytes is an error."""

    address: str
    what: Text
    size: int
    wrong_size: Callable[[Answer], DataError]
    told: Callable[[int], None]
    """Called with the bytes that are there, a few times a second."""


def receive(web: Web, download: Download, part: PartFile) -> bool:
    """Write the answer's body to `part` until it has all bytes. Returns whether these include earlier ones.

    Raises DataError, TryAgain, StorageError, Stopped.
    """
    try:
        with web.get(download.address, download.what, part.have) as answer:
            if answer.start == 0:
                part.restart()
            resumed = answer.start > 0
            _write(answer, download, part)
    except RangeRefused:
        part.restart()
        raise
    if part.have < download.size:
        raise TryAgain(
            Text("web.connection_data_server_broke_off", host=answer.host),
            Text("web.try_again_later"),
        )
    return resumed


def _write(answer: Answer, download: Download, part: PartFile) -> None:
    if answer.length is not None and answer.start + answer.length != download.size:
        part.restart()
        raise download.wrong_size(answer)
    last_told = float("-inf")
    for chunk in answer.chunks():
        if part.have + len(chunk) > download.size:
            part.restart()
            raise download.wrong_size(answer)
        part.write(chunk)
        if time.monotonic() - last_told >= PROGRESS_SECONDS:
            last_told = time.monotonic()
            download.told(part.have)
