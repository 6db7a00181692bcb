"""How the self-test tries an attack: within a time, and whether it is refused; and bytes that several attacks send."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgpack

ANSWER_SECONDS: Final = 5.0
"""For an attack that would be waited for."""
EXTENSION: Final = 0x40
"""hivemind's extension of msgpack, which is decoded recursively."""
LEVELS: Final = 280
"""As many take a stock reader's whole stack."""
UNDECODABLE: Final = b"\xc1"


def raises(kind: type[Exception], call: Callable[[], object]) -> bool:
    try:
        call()
    except kind:
        return True
    return False


def within_time(answer: Coroutine[Any, Any, object]) -> Any:
    return asyncio.run(asyncio.wait_for(answer, ANSWER_SECONDS))


def nested(levels: int) -> bytes:
    """A value of `levels` extension types inside each other."""
    value: bytes = msgpack.packb([])
    for _ in range(levels):
        value = msgpack.packb(msgpack.ExtType(EXTENSION, value))
    return value
