"""When a `join` ends by itself, and whether it went well. Pure: the time comes in as an argument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from skep.core.model import ContributionState

PATIENCE: Final = 120.0
"""Seconds a limited run may take to join, when its own limit is shorter: a swarm takes a while to be reached."""


@dataclass(frozen=True)
class Goal:
    """At least `confirmed` epochs averaged with others, and the held-out loss at `loss_ratio` of the first or less."""

    confirmed: int
    loss_ratio: float


@dataclass(frozen=True)
class Ending:
    """Any one of these ends the run; None never does.

    `seconds` count from joining; `epochs` are contributions of this run that became confirmed or lost; a `goal` is
    reached by what was learned; `confirmed` are those of this run's epochs; `total_seconds` count from the start, joined or not.
    """

    seconds: float | None = None
    epochs: int | None = None
    goal: Goal | None = None
    confirmed: int | None = None
    total_seconds: float | None = None


@dataclass
class Course:
    """What the run has seen so far; fed with the printed events. Monotonic seconds."""

    ending: Ending
    started: float
    joined: float | None = None
    ended: int = 0
    confirmed: int = 0
    peers: int = 0
    """The most other peers averaged with in one round."""
    losses: tuple[float, ...] = ()
    """Held-out losses, oldest first."""
    bytes_sent: int = 0
    bytes_received: int = 0
    _ours: frozenset[str] = frozenset()

    def see(self, event: dict[str, Any], now: float) -> None:
        match event["event"]:
            case "joined" if self.joined is None:
                self.joined = now
            case "contribution":
                self._contribution(event)
            case "progress":
                self.bytes_sent, self.bytes_received = event["bytes_sent"], event["bytes_received"]
            case "evaluation" if event["loss"] is not None:
                self.losses = (*self.losses, event["loss"])

    def _contribution(self, event: dict[str, Any]) -> None:
        # what an earlier run left pending is told as lost at the start, and is no epoch of this run
        if event["state"] == ContributionState.PENDING:
            self._ours |= {event["id"]}
        elif event["id"] in self._ours:
            self.ended += 1
            self.confirmed += event["state"] == ContributionState.CONFIRMED
            self.peers = max(self.peers, event["peers"])

    def over(self, now: float) -> bool:
        """Whether the run shall leave now."""
        ending = self.ending
        return (
            (ending.epochs is not None and self.ended >= ending.epochs)
            or (ending.goal is not None and self.reached(ending.goal))
            or (ending.confirmed is not None and self.confirmed >= ending.confirmed)
            or (ending.total_seconds is not None and now - self.started >= ending.total_seconds)
            or (ending.seconds is not None and self._time_is_up(ending.seconds, now))
        )

    def _time_is_up(self, seconds: float, now: float) -> bool:
        if self.joined is None:
            return now - self.started >= max(seconds, PATIENCE)
        return now - self.joined >= seconds

    @property
    def loss_ratio(self) -> float | None:
        """The last held-out loss as a fraction of the first; None before there are two."""
        return self.losses[-1] / self.losses[0] if len(self.losses) > 1 and self.losses[0] > 0 else None

    def reached(self, goal: Goal) -> bool:
        ratio = self.loss_ratio
        return self.confirmed >= goal.confirmed and ratio is not None and ratio <= goal.loss_ratio
