"""The publisher's signed checkpoint, with which a newcomer begins where no peer's state is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from skep.core.errors import CheckpointError
from skep.core.project.signed_checkpoint import SignedCheckpoint
from skep.core.text import Text
from skep.worker.swarm.state.checkpoints import read


@dataclass(frozen=True)
class SignedState:
    """The checkpoint in the file `path`, of the hash in its verified `note`. `names` are the model's parameters."""

    note: SignedCheckpoint
    path: Path
    names: Sequence[str]

    @property
    def epoch(self) -> int:
        """The epoch that the checkpoint belongs to."""
        return self.note.epoch

    def tensors(self) -> list[torch.Tensor]:
        """In hivemind's order. Raises CheckpointError for another checkpoint than its note says, StorageError."""
        found = read(self.path)
        if (found.run_id, found.epoch) != (self.note.run_id, self.note.epoch):
            raise CheckpointError(
                Text(
                    "signed_checkpoint.file_unlike_note",
                    run_id=found.run_id,
                    epoch=found.epoch,
                    expected=self.note.run_id,
                    expected_epoch=self.note.epoch,
                ),
                Text("web.tell_project_publisher"),
            )
        if set(found.parameters) != set(self.names):
            raise self.unfit()
        return [*(found.parameters[name] for name in self.names), *found.optimizer]

    def unfit(self) -> CheckpointError:
        """For a checkpoint that is not a state of this model."""
        return CheckpointError(
            Text("signed_checkpoint.not_of_this_model", epoch=self.epoch), Text("web.tell_project_publisher")
        )
