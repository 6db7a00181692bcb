"""hivemind's functions and classes as they were before a test has guarded this process: the tests of stock ones may follow."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

from hivemind.dht import node  # noqa: F401 - all that is changed must be there before
from hivemind.optim import optimizer  # noqa: F401 - as above

Owner = ModuleType | type
CODE = (FunctionType, classmethod, staticmethod, property, type)
"""What a guard replaces. Other attributes, such as locks and futures, are the state of this process."""


def owners() -> Iterator[Owner]:
    """hivemind's modules and their classes."""
    for module in [each for name, each in sys.modules.items() if name.partition(".")[0] == "hivemind"]:
        yield module
        yield from (each for each in vars(module).values() if isinstance(each, type) and of_hivemind(each))


def of_hivemind(found: type) -> bool:
    return found.__module__.partition(".")[0] == "hivemind"


def code_of(owner: Owner) -> dict[str, Any]:
    return {name: each for name, each in vars(owner).items() if isinstance(each, CODE)}


@contextmanager
def unguarded_again() -> Iterator[None]:
    kept = {owner: code_of(owner) for owner in owners()}
    try:
        yield
    finally:
        for owner, code in kept.items():
            for name in code_of(owner).keys() - code.keys():
                delattr(owner, name)
            for name, each in code.items():
                if vars(owner).get(name) is not each:
                    setattr(owner, name, each)
