"""Problems that do not end training, told to the user when they begin and when they are over."""

from __future__ import annotations

from collections.abc import Callable

from skep.core.session.messages import WorkerNoticed
from skep.core.text import Problem

Tell = Callable[[WorkerNoticed], object]


class Notices:
    """Of one kind of problem. `tell` gets what has changed; `standing` is the problem that is not over."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self.standing: Problem | None = None

    def notice(self, found: Problem | None, relief: Problem) -> None:
        """Tell of `found`, or by `relief` that what was found before is over; nothing if neither is new."""
        if found != self.standing:
            self._tell(WorkerNoticed(found or relief, over=self.standing))
            self.standing = found
