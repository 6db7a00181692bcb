"""Imports of large libraries without garbage collection: they are most of the time a join takes. Imports none itself."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """Turn the garbage collector off while importing: it took a sixth of the time and found nothing.

    Afterwards everything that exists is exempt from collection, so forked processes keep sharing its memory.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
