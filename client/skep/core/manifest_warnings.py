"""What in a manifest is accepted and yet likely to go badly, in words. Pure.

What can never work is refused when the manifest is read (manifest_rules).
"""

from __future__ import annotations

from typing import Final

from skep.core.manifest_types import Manifest
from skep.core.parameters import expected_parameters, patches
from skep.core.recipe_types import ImageRecipe

SHORT: Final = 3
"""Epochs up to this many times matchmaking are short: newcomers were seen never to catch up with such swarms."""
PROCESSOR_FLOPS: Final = 50e9
"""Floating point operations a second that training reached on a processor with two cores."""
FLOPS_PER_PARAMETER: Final = 6
"""For each token: two in the forward pass, four in the backward pass."""
FLOPS_PER_FROZEN: Final = 4


def warnings(manifest: Manifest, samples_per_second: float | None = None) -> tuple[str, ...]:
    """Sentences about the manifest at the swarm's rate.

    `samples_per_second` is what the whole swarm was measured to process. While that is unknown, the rate of a single
    computer without a GPU stands in for it: no swarm is much slower, so only what is surely too short is warned of.
    """
    measured = max(samples_per_second or 0.0, 0.0)
    rate = measured or lone_processor_rate(manifest)
    epoch, matchmaking = manifest.sync.target_batch_size / rate, manifest.sync.matchmaking_seconds
    if epoch > SHORT * matchmaking:
        return ()
    who = "takes" if measured else "takes even a single computer without a GPU only"
    sentence = (
        f"An epoch of this project {who} {_seconds(epoch)}, and finding peers up to {matchmaking:g} s: "
        "computers that join or come back may need several epochs until they average with others."
    )
    return (sentence,)


def lone_processor_rate(manifest: Manifest) -> float:
    """Samples a second that one computer without a GPU is expected to process."""
    recipe = manifest.recipe
    counts = expected_parameters(recipe)
    # a frozen parameter needs no gradient of its own, only what passes through it
    flops = FLOPS_PER_PARAMETER * counts.trained + FLOPS_PER_FROZEN * counts.frozen
    positions = patches(recipe.model) if isinstance(recipe, ImageRecipe) else recipe.sequence_length
    return PROCESSOR_FLOPS / (flops * positions)


def _seconds(seconds: float) -> str:
    return f"about {seconds:.0f} s" if seconds >= 1 else "less than 1 s"
