"""What is believed of a worker's lines: messages of ours, in words that there are, and not too many of them.

Who has taken over the worker could otherwise fill the ledger, and have front ends fill in sentences of their own.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from skep.core.session import wire
from skep.core.session.messages import FromWorker
from skep.core.session.wire import WireError
from skep.core.text import Text
from skep.language.translator import fits

MINUTE: Final = 60.0
MOST_A_MINUTE: Final = 6000
"""Messages of one worker; it sends a few a second."""
LONGEST_WORDS: Final = 4000
"""Characters of a message for the user."""


class Heard:
    """The messages of one worker."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until, self._count = 0.0, 0

    def message(self, line: bytes) -> FromWorker:
        """Raises WireError: by a bug, or an attack."""
        now = self._clock()
        if now >= self._until:
            self._until, self._count = now + MINUTE, 0
        self._count += 1
        if self._count > MOST_A_MINUTE:
            raise WireError("too many messages in a minute")
        message = wire.decode_from_worker(line)
        for text in _texts(message):
            if not fits(text, LONGEST_WORDS):
                raise WireError("a text is none of ours")
        return message


def _texts(value: object) -> Iterator[Text]:
    if isinstance(value, Text):
        yield value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _texts(getattr(value, name))
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _texts(getattr(value, field.name))
    elif isinstance(value, tuple):
        for each in value:
            yield from _texts(each)
