"""Where the result of a run is, as far as this computer has it. Pure."""

from __future__ import annotations

from skep.cli.show.speech import tr
from skep.services.results import Kept


def sentence(kept: Kept, name: str) -> str:
    """`name` is the project's, or its manifest's path."""
    return tr(
        "This computer has the model of epoch {epoch}: skep project export {name} DIR writes it.",
        epoch=kept.epoch,
        name=name,
    )
