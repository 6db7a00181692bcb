"""Which sensors of the person fit this computer's system and this session.

It must not load what another system's sensors need: those libraries are not installed here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final

from skep.adapters.macos.activity import MacActivity
from skep.adapters.process.own_processes import is_our_process
from skep.adapters.windows.activity import WindowsActivity
from skep.ports import Sensor

_ALWAYS_GRAPHICAL: Final = {"darwin", "win32"}


def graphical(environment: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Whether this user has a session at a screen of this computer; without, nobody sits there. Takes up to a second."""
    if platform in _ALWAYS_GRAPHICAL:
        return True

    from skep.adapters.linux import session  # noqa: PLC0415 - its libraries are there on Linux alone

    return session.graphical(environment)


def choose(environment: Mapping[str, str], platform: str = sys.platform) -> Sequence[Sensor]:
    """The sensors for this session, none opened; no two tell the same condition. None where nobody can sit at a screen."""
    if platform == "darwin":
        return [MacActivity()]
    if platform == "win32":
        return [WindowsActivity(own_pid=is_our_process)]

    from skep.adapters.linux import session  # noqa: PLC0415 - as above

    return session.sensors(environment) if session.graphical(environment) else []
