"""Fetching the note of a project's signed checkpoint, and keeping the newest one.

The note that was kept is what shows that an older one was put in its place, so that it outlives the run.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from pathlib import Path
from typing import Final

from skep.adapters.net.web import NotThere, Web
from skep.adapters.storage.files import os_errors
from skep.adapters.storage.signed_checkpoints import read_note, write_note
from skep.core.errors import CheckpointError
from skep.core.project import signed_checkpoint
from skep.core.project.manifest import Manifest
from skep.core.project.signed_checkpoint import SignedCheckpoint
from skep.core.text import Text
from skep.signatures import is_valid

_NONE: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)

log = logging.getLogger(__name__)


def fetch_note(manifest: Manifest, web: Web, folder: Path) -> SignedCheckpoint:
    """The note as it is published, kept in `folder` by project. Raises SkepError, Stopped.

    It is a CheckpointError if there is none, if it is not the publisher's for this run, or older than the one that is kept.
    """
    what = Text("signed_checkpoint.note")
    try:
        raw = web.persist(lambda: web.read(signed_checkpoint.address(manifest), what, signed_checkpoint.LIMIT))
    except NotThere as error:
        if error.status in _NONE:
            raise signed_checkpoint.missing(manifest) from None
        raise
    found = signed_checkpoint.read(raw, is_valid)
    signed_checkpoint.check(found, manifest)
    path = folder / signed_checkpoint.file_name(manifest.id)
    signed_checkpoint.later(_kept(path, manifest), found)
    with os_errors(Text("signed_checkpoint.cannot_be_kept", folder=str(folder))):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_note(found, path)
    return found


def _kept(path: Path, manifest: Manifest) -> SignedCheckpoint | None:
    try:
        return read_note(path, manifest)
    except CheckpointError as error:
        log.warning("%s is not used: %s", path, error)
        return None
