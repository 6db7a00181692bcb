"""Receives the parts that this peer reduces, and has them combined once every sender's has come.

Stock behaviour that this corrects, each covered by a test: a part that is not finite, or has a weight that is none, goes
into the average; one of another shape is broadcast, or bans its sender and lets the round wait for the part all the same;
a sender that dies while it waits for the average takes it from all others, and the round lasts until its time is up.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import torch
from hivemind.averaging.partition import AllreduceException, BannedException, TensorPartReducer
from hivemind.p2p import PeerID

from skep.worker.swarm.averaging.robust import Combination, Part


class CheckedReducer(TensorPartReducer):
    """`senders` are in the group's order; `first` is the number of our first part among those of all peers.

    A part that cannot be used raises AllreduceException before it is counted, and hivemind then bans its sender.
    """

    def __init__(
        self, part_shapes: Sequence[torch.Size], senders: Sequence[PeerID], combination: Combination, first: int
    ) -> None:
        self._senders, self._combination, self._first = senders, combination, first
        self._parts: list[Part] = []
        self.scaled = set[PeerID]()
        self.left_out = set[PeerID]()
        self.unlike = set[PeerID]()
        """Who has sent a part that cannot be used."""
        super().__init__(part_shapes, len(senders))

    def reset_accumulators(self) -> None:
        self._parts = []
        super().reset_accumulators()

    async def accumulate_part(
        self, sender_index: int, part_index: int, tensor_part: torch.Tensor, weight: float = 1.0
    ) -> torch.Tensor:
        """Return the combination of this part of all senders, once it is there. Raises AllreduceException."""
        try:
            self._check(sender_index, part_index, tensor_part, weight)
        except AllreduceException:
            self.unlike.add(self._senders[sender_index])
            raise
        self.num_parts_received[sender_index] += 1
        while part_index > self.current_part_index:
            await self._until_finished(self.current_part_future)
            if self.finished.is_set():
                raise AllreduceException("the round is over")
        if self.sender_failed_after[sender_index] != math.inf:
            raise BannedException(f"{self._senders[sender_index]} was banned meanwhile")
        combined = self.current_part_future
        self._parts.append(
            Part(self._senders[sender_index], tensor_part.float(), min(weight, self._combination.most_weight))
        )
        self.current_part_accumulated_from += 1
        self.check_current_part_finished()
        # the handler of a sender that dies is cancelled, and with it what it awaits, which is the others' result too
        averaged: torch.Tensor = await asyncio.shield(combined)
        return averaged

    async def _until_finished(self, combined: asyncio.Future[torch.Tensor]) -> None:
        over = asyncio.ensure_future(self.finished.wait())
        try:
            await asyncio.wait({combined, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()

    def _check(self, sender_index: int, part_index: int, values: torch.Tensor, weight: float) -> None:
        if not 0 <= part_index < self.num_parts:
            raise AllreduceException("there is no such part")
        if part_index != self.num_parts_received[sender_index]:
            # hivemind accepts a second stream of a peer, whose parts would count for those of others
            raise AllreduceException("a part came twice, or not in its turn")
        if values.shape != self.part_shapes[part_index] or not values.is_floating_point():
            raise AllreduceException("a part has another shape or kind than ours")
        if not (math.isfinite(weight) and weight >= 0):
            raise AllreduceException("a part has a weight that is none")
        # scaled down to a bound, values with an infinite norm would be zeros that count with their weight
        if not math.isfinite(float(values.float().norm())):
            raise AllreduceException("a part is not finite, or too large to have a norm")

    def check_current_part_finished(self) -> None:
        if self.current_part_accumulated_from < self.num_current_senders:
            return
        number = self._first + self.current_part_index
        if self._parts:
            found = self._combination.combine(number, self._parts)
            self.scaled |= found.scaled
            self.left_out |= found.left_out
            self.current_part_future.set_result(found.values)
        else:
            self.current_part_future.set_result(self.accumulator.fill_(math.nan))
        self.reset_accumulators()
