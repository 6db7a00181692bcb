"""Importing the large libraries, which is most of what a join takes. It must not import any itself."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """Imports make hundreds of thousands of objects that stay: looking for garbage among them took a sixth of the time.

    What is there at the end is never looked at again, so that forked processes go on sharing its memory with us.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
