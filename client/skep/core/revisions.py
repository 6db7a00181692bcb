"""What a later revision of a manifest may change without asking, and what it may not. Pure."""

from __future__ import annotations

from typing import Final

from skep.core.errors import ManifestError
from skep.core.fit import traffic_per_epoch
from skep.core.manifest_types import Manifest

_NEEDS: Final = {
    "memory_gb": "memory",
    "vram_gb": "GPU memory",
    "disk_gb": "disk space",
    "upload_mbit": "upload",
}


class NeedsConsent(ManifestError):
    """The new revision uses more than the one that was agreed to."""


def check_revision(old: Manifest, new: Manifest, *, same_bytes: bool, consent: bool) -> None:
    """Raise ManifestError unless `new` may take the place of `old`, NeedsConsent when only a click is missing."""
    if new.publisher.key != old.publisher.key:
        raise ManifestError(
            f'This manifest of "{old.id}" is signed by another publisher ({new.fingerprint}) '
            f"than the one you joined ({old.fingerprint}).",
            "Do not trust it, unless the publisher told you of a new key; then remove the project first.",
        )
    if same_bytes:
        return
    if new.revision <= old.revision:
        raise ManifestError(
            f'This manifest of "{old.id}" is revision {new.revision}, and revision {old.revision} is known already.',
            "Get the newest one from the project's publisher.",
        )
    if not consent and (rises := rising(old, new)):
        raise NeedsConsent(
            f'The new manifest of "{old.id}" asks for more than you agreed to: {"; ".join(rises)}.',
            "Add it again with --consent if that is fine.",
        )


def rising(old: Manifest, new: Manifest) -> list[str]:
    """What the new revision uses more of, in words."""
    before, after = vars(old.needs), vars(new.needs)
    rises = [f"{words} {before[key]:g} → {after[key]:g}" for key, words in _NEEDS.items() if after[key] > before[key]]
    old_traffic, new_traffic = _traffic(old), _traffic(new)
    if new_traffic > old_traffic:
        rises.append(f"traffic per 1000 samples {old_traffic / 1e3:.3g} → {new_traffic / 1e3:.3g} MB")
    return rises


def _traffic(manifest: Manifest) -> float:
    """Bytes sent for each sample of the swarm: shorter epochs send more often."""
    return traffic_per_epoch(manifest).up / manifest.sync.target_batch_size
