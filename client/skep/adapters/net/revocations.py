"""Fetching a project's list of revoked invitations, and keeping the newest one.

The list that was kept is what shows that an older one was put in its place, so that it outlives the run.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Final

from skep.adapters.net.connections import INTERNET, Network
from skep.adapters.net.web import NotThere, Patience, Stop, Stopped, Web
from skep.adapters.storage.files import atomic_write, os_errors
from skep.adapters.storage.invitations import read_revocations
from skep.core.errors import InvitationError, SkepError
from skep.core.project import revocation
from skep.core.project.addresses import Reach
from skep.core.project.manifest import Manifest
from skep.core.project.revocation import Revocations
from skep.core.session.messages import ProblemArose, RevocationsArrived
from skep.core.text import Problem, Text
from skep.ports import Post
from skep.signatures import is_valid

EVERY_SECONDS: Final = 3600.0
RETRY_SECONDS: Final = 300.0
"""After a failure."""
_NONE: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
_STILL: Final = Text("revocation.known_list_holds")

log = logging.getLogger(__name__)


class PublishedRevocations:
    """Implements ports.Revocations. Lists are kept in `folder`, by project; `proxy` and `network` as in Web."""

    def __init__(
        self,
        folder: Path,
        *,
        proxy: Callable[[], str] = lambda: "",
        network: Network = INTERNET,
        every: float = EVERY_SECONDS,
        retry: float = RETRY_SECONDS,
    ) -> None:
        self._folder, self._proxy, self._network = folder, proxy, network
        self.pauses = every, retry
        self._watch: _Watch | None = None

    def watch(self, manifest: Manifest, reach: Reach, post: Post) -> str:
        """The text of the list that is kept, "" if there is none; newer ones are posted as RevocationsArrived.

        A list that is not the publisher's, or older than the one that is kept, is not used, and a ProblemArose says so.
        Replaces an earlier watch. Nothing is fetched for an open project.
        """
        self.rest()
        if not manifest.by_invitation:
            return ""
        path = self.path(manifest)
        try:
            kept = read_revocations(path, manifest)
        except InvitationError as error:
            log.warning("%s is not used: %s", path, error)
            kept = None
        self._watch = _Watch(self, manifest, reach, post, kept)
        self._watch.start()
        return kept.text if kept else ""

    def path(self, manifest: Manifest) -> Path:
        """Where the project's newest list is kept."""
        return self._folder / revocation.file_name(manifest)

    def rest(self) -> None:
        """End the watch."""
        if self._watch:
            self._watch.end()
            self._watch = None

    close = rest

    def fetch(self, manifest: Manifest, reach: Reach, stop: Stop) -> Revocations | None:
        """The list as it is published, None if there is none. Raises SkepError, Stopped."""
        web = Web(Patience(), stop, reach, self._proxy, self._network)
        what = Text("revocation.list_of_revoked")
        try:
            raw = web.persist(lambda: web.read(revocation.address(manifest), what, revocation.LIMIT))
        except NotThere as error:
            if error.status in _NONE:
                return None
            raise
        found = revocation.read(raw, is_valid)
        revocation.check(found, manifest)
        return found

    def keep(self, manifest: Manifest, found: Revocations) -> None:
        """Raises StorageError."""
        with os_errors(Text("revocation.cannot_be_kept", folder=str(self._folder))):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic_write(self.path(manifest), found.text.encode())


class _Watch:
    """Of one project, in a thread."""

    def __init__(
        self, lists: PublishedRevocations, manifest: Manifest, reach: Reach, post: Post, kept: Revocations | None
    ) -> None:
        self._lists, self._manifest, self._reach, self._post = lists, manifest, reach, post
        self._newest = self._kept = kept
        self._stop = Stop()
        self._told: Problem | None = None
        self._thread = threading.Thread(target=self._run, name="revocations", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Nothing is posted afterwards, but for what is being posted now."""
        self._stop.set()

    def _run(self) -> None:
        try:
            every, retry = self._lists.pauses
            while True:
                self._stop.wait(every if self._look() else retry)
        except Stopped:
            return

    def _look(self) -> bool:
        """Fetch the list once; whether that went well. Raises Stopped."""
        try:
            found = self._lists.fetch(self._manifest, self._reach, self._stop)
            self._stop.check()
            arrived = None
            if found is not None and found != self._newest:
                arrived = self._newest = revocation.later(self._newest, found)
            try:
                self._keep()
            finally:  # it counts, whether or not it can be kept
                if arrived is not None:
                    self._post(RevocationsArrived(arrived.text))
        except SkepError as error:
            log.warning("the list of revoked invitations of %s: %s", self._manifest.id, error)
            self._tell(error)
            return False
        return True

    def _keep(self) -> None:
        """The newest list, if it is not kept yet. Raises StorageError; it is tried again after the next look."""
        if self._newest is not None and self._newest != self._kept:
            self._lists.keep(self._manifest, self._newest)
            self._kept = self._newest

    def _tell(self, error: SkepError) -> None:
        """Only of a wrong list: one that cannot be fetched is tried again."""
        if isinstance(error, InvitationError) and error.problem != self._told:
            self._told = error.problem
            self._post(ProblemArose(Problem(error.title, _STILL)))
