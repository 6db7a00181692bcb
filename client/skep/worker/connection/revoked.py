"""The peers that the publisher has excluded, known in every process of this peer.

The list is a file that one process replaces while others use it: the worker writes what the engine has fetched, the
operator of a host what the publisher has sent. Each process reads it again as soon as it has changed.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from skep.core.errors import InvitationError
from skep.core.project import revocation
from skep.core.project.invitation import Invitation
from skep.core.project.manifest import Manifest
from skep.core.project.revocation import Revocations
from skep.files import replacing
from skep.signatures import is_valid

NAME: Final = "revoked.json"
"""The file in the worker's run folder."""

log = logging.getLogger(__name__)


class RevokedPeers:
    """The newest list in the file `path`; none as long as there is no file."""

    def __init__(self, manifest: Manifest, path: Path) -> None:
        self._manifest, self._path = manifest, path
        self._mark: tuple[int, ...] = ()
        self._list: Revocations | None = None

    def voids(self, found: Invitation) -> bool:
        """Whether the list, as it is now, ends the invitation."""
        self._look()
        return self._list is not None and self._list.voids(found)

    def _look(self) -> None:
        try:
            status = self._path.stat()
        except OSError:
            return
        mark = status.st_ino, status.st_mtime_ns, status.st_size
        if mark == self._mark:
            return
        self._mark = mark  # of before, so that a file that is replaced while it is read is read again
        try:
            self._list = revocation.later(self._list, self._read())
        except (OSError, InvitationError) as error:
            log.warning("%s is not used, what was known of revoked peers still holds: %s", self._path, error)

    def _read(self) -> Revocations:
        with self._path.open("rb") as file:
            found = revocation.read(file.read(revocation.LIMIT + 1), is_valid)
        revocation.check(found, self._manifest)
        return found


def write(text: str, folder: Path) -> None:
    """Replace the list in the run folder. Raises OSError."""
    with replacing(folder / NAME) as fresh:
        fresh.write_text(text)


def of_project(listed: str, manifest: Manifest) -> Revocations | None:
    """The list with this text, whose signature the engine has verified; None if it is another project's."""
    found = revocation.read(listed.encode(), lambda *_: True)
    try:
        revocation.check(found, manifest)
    except InvitationError:
        return None
    return found
