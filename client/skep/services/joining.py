"""The checks before joining a project: its manifest, the fit check, and the invitation if it needs one."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil

from skep import bootstrap
from skep.adapters.storage import invitations, signing
from skep.adapters.storage.paths import Home
from skep.adapters.storage.shard_cache import free_bytes
from skep.core.errors import BadInput, DoesNotFit, InvitationError, StorageError
from skep.core.project import fit as fitting
from skep.core.project import invitation, manifest
from skep.core.project.fit import Estimate, Fit, Verdict
from skep.core.project.invitation import Invitation
from skep.core.project.manifest import Manifest, VerifiedProject
from skep.core.project.spread import chosen_together
from skep.core.text import Text, sentences
from skep.core.traffic import caps_of
from skep.signatures import is_valid


def read_manifest(path: str) -> Manifest:
    """The manifest in a file, its signature verified; it is not stored. Raises ManifestError, BadInput."""
    return read_project(path).manifest


def read_project(path: str) -> VerifiedProject:
    """The project of the manifest in a file, as `read_manifest`."""
    if "://" in path:
        raise BadInput(
            Text("joining.only_file_can_looked_without"), Text("joining.skep_project_add_fetches", path=path)
        )
    from skep.adapters.net.catalogue import Verified  # noqa: PLC0415 - it brings what only downloads need

    return Verified(*signing.load_verified(signing.given_path(path))).project(path)


def check_expiry(plan: Manifest) -> None:
    """Raises ManifestError when the manifest has expired."""
    manifest.check_expiry(plan, datetime.now(UTC))


def fit(home: Home, plan: Manifest) -> Fit:
    """The result of the fit check for the current state of this computer.

    A project in which it has trained keeps its data here, so that free space is no condition any more.
    """
    home.create()
    disk = None if _has_trained(home, plan) else free_bytes(home.root)
    devices, settings = bootstrap.devices().list(), bootstrap.settings(home).load()
    together = chosen_together(devices, str(settings["compute.device"]))
    memory = psutil.virtual_memory().total
    found = fitting.check(plan, devices, memory=memory, disk_free=disk, together=together)
    return fitting.limited(found, plan, caps_of(settings))


def _has_trained(home: Home, plan: Manifest) -> bool:
    with contextlib.suppress(StorageError), bootstrap.ledger(home) as ledger:
        return plan.id in ledger.projects()
    return False


def check_fit(home: Home, project: VerifiedProject) -> Sequence[Text]:
    """Remarks of the fit check. Raises DoesNotFit with the reasons, ManifestError."""
    plan = project.manifest
    check_expiry(plan)
    if lacking := fitting.lacking(
        plan, bootstrap.devices().list(), str(bootstrap.settings(home).load()["compute.device"])
    ):
        raise DoesNotFit(lacking, fitting.HINT, remedy="setting:compute.device")
    found = fit(home, plan)
    if found.verdict is Verdict.TOO_BIG:
        raise DoesNotFit(sentences(*found.reasons), Text("joining.nothing_was_downloaded_choose_smaller"))
    return found.reasons


def estimate(home: Home, plan: Manifest) -> Estimate:
    """The estimated resources and samples of this computer for the project, with the cards that the setting names."""
    devices, settings = bootstrap.devices().list(), bootstrap.settings(home).load()
    together = chosen_together(devices, str(settings["compute.device"]))
    return fitting.estimate(plan, devices, cores=psutil.cpu_count(logical=False) or 1, together=together)


def check_invitation(home: Home, project: VerifiedProject) -> None:
    """Raises InvitationError if the project needs an invitation and this computer has no valid one, SecretsError."""
    bootstrap.kept_invitations(home).present(project)


def accept_invitation(home: Home, path: Path, hint: Text, *, in_file: bool) -> tuple[VerifiedProject, Invitation]:
    """Check the invitation in a file and store it; returns it with its project. `hint` is used for an unknown project.

    Raises InvitationError, SecretsError.
    """
    raw = invitations.read_file(path)
    wanted = invitation.read(raw, is_valid).project
    try:
        project = bootstrap.catalogue(home).find(wanted)
    except BadInput:
        raise InvitationError(Text("joining.invitation_project_not_known_here", wanted=wanted), hint) from None
    return project, bootstrap.kept_invitations(home).accept(raw, project.manifest, in_file=in_file)
