"""How many samples a batch has."""

from __future__ import annotations

from typing import Any

from lightning.pytorch.utilities.data import _extract_batch_size

from skep.core.text import Text
from skep.training.words import refused


class BatchSizes:
    """The samples of each batch: the length of its tensors. `given` are those of a whole batch, None for the first one's.

    Where tensors differ in length, those count that have `given` in the first batch. If none has, each batch is a whole one.
    """

    def __init__(self, given: int | None) -> None:
        self.whole = given or 0
        """The samples of a whole batch; 0 until the first one."""
        self._place: int | None = None
        """Of the tensor that counts, among those of a batch."""
        self._began = False

    def samples_of(self, batch: Any) -> int:
        """The samples of this batch. Raises BadInput if the first one does not show them and none were given."""
        lengths: list[int] = [each for each in _extract_batch_size(batch) if each is not None]
        if not self._began:
            self._begin(lengths)
            self._began = True
        if self._place is None or self._place >= len(lengths):
            return self.whole
        return lengths[self._place]

    def _begin(self, lengths: list[int]) -> None:
        clear = len(set(lengths)) == 1
        if not self.whole and not clear:
            raise refused(Text("lightning.batch_size_not_clear"), Text("lightning.give_batch_size"))
        self.whole = self.whole or lengths[0]
        if self.whole in lengths:
            self._place = lengths.index(self.whole)
        elif clear and lengths[0] < self.whole:
            self._place = 0  # fewer samples than a whole batch has
