"""Which peers a peer has averaged with, and which of the records under their ids are theirs. Pure.

Anybody can publish a record under the id of another peer, but not take part in a round in its name.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Hashable, Mapping
from typing import Final

from skep.worker.swarm.claims import Claim, Key

MET_ROUNDS: Final = 3
"""A peer counts as met for this many of our rounds."""


class MetPeers:
    """The peers of our last rounds."""

    def __init__(self) -> None:
        self._heard: deque[frozenset[str]] = deque(maxlen=MET_ROUNDS)
        self._records: Mapping[str, set[Hashable]] = {}
        """The records that there were under the id of each peer, as last seen."""
        self._record_of: dict[str, Hashable] = {}
        """The only one that there was when we averaged with that peer. Others can publish more under its id later."""

    def see(self, claims: Mapping[Key, Claim]) -> None:
        """These are the records that there are now."""
        records: dict[str, set[Hashable]] = defaultdict(set)
        for key, claim in claims.items():
            records[claim.peer].add(key)
        self._records = dict(records)

    def records_of(self, peer: str) -> Collection[Hashable]:
        """Those under the id of `peer`, as last seen."""
        return self._records.get(peer, set())

    def averaged(self, heard: Collection[str]) -> None:
        """A round has averaged our data with that of these peers."""
        self._heard.append(frozenset(heard))
        for peer in heard:
            if len(keys := self.records_of(peer)) == 1:
                (self._record_of[peer],) = keys
        self._record_of = {peer: key for peer, key in self._record_of.items() if self.has(peer)}

    @property
    def in_last_round(self) -> frozenset[str]:
        return self._heard[-1] if self._heard else frozenset()

    def has(self, peer: str) -> bool:
        """Whether we have met that peer."""
        return any(peer in heard for heard in self._heard)

    def is_of_met(self, key: Hashable, peer: str) -> bool:
        """Whether this record is that of a peer that we have met. Of several under its id, all but one are false."""
        return self.has(peer) and self.is_only_one(key, peer)

    def is_only_one(self, key: Hashable, peer: str) -> bool:
        """Whether this is the only record under the id of `peer`, or was when we averaged with it."""
        return self.records_of(peer) == {key} or self._record_of.get(peer) == key
