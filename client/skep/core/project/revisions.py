"""The check of a manifest's new revision: what it may change, and what needs the user's consent. Pure."""

from __future__ import annotations

from typing import Final

from skep.core.errors import ManifestError
from skep.core.project.manifest import Manifest
from skep.core.project.needs import traffic_per_epoch
from skep.core.text import Text

_NEEDS: Final = {
    "memory_gb": Text("revisions.memory"),
    "vram_gb": Text("rule.gpu_memory"),
    "disk_gb": Text("revisions.disk_space"),
    "upload_mbit": Text("revisions.upload"),
}


class NeedsConsent(ManifestError):
    """The new revision uses more resources than the one that the user agreed to."""


def check_revision(old: Manifest, new: Manifest, *, same_bytes: bool, consent: bool) -> None:
    """Raise ManifestError unless `new` may replace `old`, NeedsConsent when only the user's consent is missing."""
    if new.publisher.key != old.publisher.key:
        raise ManifestError(
            Text(
                "revisions.manifest_signed_another_publisher_than",
                id_=old.id,
                fingerprint=new.fingerprint,
                fingerprint_2=old.fingerprint,
            ),
            Text("revisions.do_not_trust_unless_publisher"),
        )
    if same_bytes:
        return
    if new.revision <= old.revision:
        raise ManifestError(
            Text(
                "revisions.manifest_revision_revision_known_already",
                id_=old.id,
                revision=new.revision,
                revision_2=old.revision,
            ),
            Text("revisions.get_newest_one_from_project"),
        )
    if not consent and (rises := rising(old, new)):
        raise NeedsConsent(
            Text("revisions.new_manifest_asks_more_than", id_=old.id, names=tuple(rises)),
            Text("revisions.add_again_consent_if_fine"),
        )


def rising(old: Manifest, new: Manifest) -> list[Text]:
    """The resources that the new revision uses more of, as texts."""
    before, after = vars(old.needs), vars(new.needs)
    rises = [
        Text("revisions.rise", what=words, before=before[key], after=after[key])
        for key, words in _NEEDS.items()
        if after[key] > before[key]
    ]
    old_traffic, new_traffic = _traffic(old), _traffic(new)
    if new_traffic > old_traffic:
        rises.append(
            Text(
                "revisions.traffic_per_1000_samples_mb",
                old_traffic=old_traffic / 1000.0,
                new_traffic=new_traffic / 1000.0,
            )
        )
    return rises


def _traffic(manifest: Manifest) -> float:
    """Bytes sent per sample of the swarm: shorter epochs send more often."""
    return traffic_per_epoch(manifest) / manifest.sync.target_batch_size
