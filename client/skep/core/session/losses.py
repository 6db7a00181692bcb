"""Contributions lost in a row while other peers are there: computing alone is no progress of a volunteer. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skep.core.text import NOTHING, Text

ROW: Final = 10
"""So many in a row are no accident: then the worker is started afresh, once, and front ends say it until one succeeds."""
ALONE: Final = frozenset({Text("round.no_other_peer"), Text("round.other_peers_had_computed_nothing")})
"""With nobody to average with nothing is wrong: a row ends here."""
ASLEEP: Final = Text("round.computer_was_asleep")
LEFT: Final = Text("worker.left_before_round")
OWN: Final = frozenset(
    {
        ASLEEP,
        Text("round.computer_was_paused"),
        Text("round.run_is_finished"),
        LEFT,
        Text("worker.training_process_stopped"),
    }
)
"""What this computer itself ended says nothing of the rounds."""


@dataclass(frozen=True)
class Losses:
    """`count` contributions in a row, the last one for `reason`; `answered` if the worker was ended for them."""

    count: int = 0
    reason: Text = NOTHING
    answered: bool = False

    def plus(self, reason: Text) -> Losses:
        """After one more, lost for `reason`; a confirmed one ends the row."""
        if reason in ALONE:
            return Losses()
        return self if reason in OWN else Losses(self.count + 1, reason, self.answered)

    @property
    def sentence(self) -> Text:
        """The empty message for less than a row."""
        if self.count < ROW:
            return NOTHING
        return Text("wait.contributions_lost", reason=self.reason)
