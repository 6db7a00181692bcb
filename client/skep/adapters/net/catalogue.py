"""The projects known in a home: each a verified manifest with its signature, its publisher's key pinned.

Joining is the session's business. It must not run anything of a project.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from skep.adapters.net import manifest_fetch
from skep.adapters.net.manifest_fetch import Fetch, Verified, fetch_over_web, verified
from skep.adapters.storage import signing
from skep.adapters.storage.atomic import atomic_write
from skep.core.errors import BadInput, ManifestError, SkepError, StorageError
from skep.core.plain_text import plain
from skep.core.project import links
from skep.core.project.manifest import ID, check_expiry
from skep.core.project.revisions import check_revision
from skep.core.project.types import VerifiedProject
from skep.core.strict_json import read_object
from skep.core.text import Problem, Text

NAME: Final = "project.json"
"""One file a project, since manifest, signature and source must change together."""
KEPT_LIMIT: Final = 512 * 1024
_PARTS: Final = ("manifest", "signature", "source")


@dataclass(frozen=True)
class _Kept:
    verified: Verified
    source: str

    @property
    def project(self) -> VerifiedProject:
        manifest = self.verified.manifest
        return VerifiedProject(
            id=manifest.id,
            title=manifest.title,
            run_id=manifest.run_id,
            fingerprint=manifest.fingerprint,
            revision=manifest.revision,
            source=self.source,
            manifest=manifest,
            text=self.verified.raw.decode(),
        )


class FileCatalogue:
    """Implements ports.Catalogue over a folder with one folder a project."""

    def __init__(
        self,
        folder: Path,
        *,
        fetch: Fetch = fetch_over_web,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._folder, self._fetch, self._now = folder, fetch, now

    def add(self, source: str, *, consent: bool = False) -> VerifiedProject:
        """Verify the manifest at a path, a web address or a join link, or that of a file with a link, and keep it.

        A link names its publisher, and nothing signed by anybody else is looked at any further.
        A later revision must carry the pinned key and a higher number; one that needs more than before is taken only
        with `consent`. Raises ManifestError (NeedsConsent for the latter), StorageError.
        """
        source = manifest_fetch.resolved(source)
        link = links.parse(source) if links.is_link(source) else None
        source = link.manifest if link else source
        new = verified(source, self._fetch)
        if link and not link.names(new.manifest.publisher.key):
            raise ManifestError(
                Text("catalogue.manifest_published_not_whom_link", source=source, fingerprint=new.manifest.fingerprint),
                Text("catalogue.nothing_was_kept_ask_whoever"),
            )
        check_expiry(new.manifest, self._now())
        old = self._kept(new.manifest.id)
        if old:
            same_bytes = old.verified.raw == new.raw
            check_revision(old.verified.manifest, new.manifest, same_bytes=same_bytes, consent=consent)
        where = source if "://" in source else str(signing.given_path(source))
        kept = _Kept(new, where.encode(errors="replace").decode())
        self._keep(kept)
        return kept.project

    def find(self, name: str) -> VerifiedProject:
        """The project with this id or title. Raises BadInput with the known names, ManifestError when it is damaged."""
        if kept := self._kept(name):
            return kept.project
        known = self.projects()
        named = [project for project in known if project.title.casefold() == plain(name).casefold()]
        if len(named) == 1:
            return named[0]
        if named:
            raise BadInput(
                Text("catalogue.several_projects_called", name=name), Text("catalogue.name_one_id", ids=_ids(named))
            )
        hint = Text("catalogue.known_ones", ids=_ids(known)) if known else Text("catalogue.skep_project_add_file_adds")
        raise BadInput(Text("catalogue.there_no_project_here", name=name), hint)

    def projects(self) -> Sequence[VerifiedProject]:
        """Every project that can be read; `damaged` names the others. Raises StorageError."""
        return [found for found in self._all() if isinstance(found, VerifiedProject)]

    def damaged(self) -> Sequence[Problem]:
        """One for each project that is kept here and cannot be read. Raises StorageError."""
        return [found for found in self._all() if isinstance(found, Problem)]

    def _all(self) -> list[VerifiedProject | Problem]:
        try:
            names = sorted(folder.name for folder in self._folder.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(
                Text("catalogue.projects_cannot_read", folder=str(self._folder), reason=str(error.strerror or error)),
                Text("key.check_folder_permissions"),
            ) from None
        found: list[VerifiedProject | Problem] = []
        for name in names:
            try:
                kept = self._kept(name)
            except SkepError as error:
                found.append(error.problem)
            else:
                found += [kept.project] if kept else []
        return found

    def _kept(self, project_id: str) -> _Kept | None:
        """What is kept of a project, None when it is unknown. Raises ManifestError when it is damaged."""
        path = self._folder / project_id / NAME
        if not re.fullmatch(ID.expression, project_id) or not os.path.exists(path):  # noqa: PTH110 - never raises
            return None
        try:
            return _read(signing.read_capped(path, KEPT_LIMIT), project_id)
        except ManifestError as error:
            raise ManifestError(
                Text("catalogue.what_kept_project_damaged", project_id=project_id, title=error.title),
                Text("catalogue.remove_folder_add_project_again", parent=str(path.parent)),
            ) from None

    def _keep(self, kept: _Kept) -> None:
        new = kept.verified
        text = json.dumps(
            {"manifest": new.raw.decode(), "signature": new.signature.decode(), "source": kept.source}, indent=1
        )
        folder = self._folder / new.manifest.id
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic_write(folder / NAME, text.encode())
        except OSError as error:
            raise StorageError(
                Text("catalogue.project_cannot_kept", folder=str(self._folder), reason=str(error.strerror or error)),
                Text("key.free_some_space_check_folder"),
            ) from None


def _read(content: bytes, project_id: str) -> _Kept:
    body = read_object(content, KEPT_LIMIT, _bad_file)
    manifest, signature, source = (body.get(name) for name in _PARTS)
    if not isinstance(manifest, str) or not isinstance(signature, str) or not isinstance(source, str):
        raise _bad_file(Text("catalogue.not_complete"))
    # a lone surrogate, which JSON can spell, becomes bytes that no signature fits
    raw, signature_file = manifest.encode(errors="replace"), signature.encode(errors="replace")
    kept = _Kept(Verified(raw, signature_file, signing.check(raw, signature_file)), source)
    if kept.project.id != project_id:
        raise _bad_file(Text("catalogue.another_project"))
    return kept


def _bad_file(phrase: Text) -> ManifestError:
    return ManifestError(Text("catalogue.not_valid", name=NAME, phrase=phrase))


def _ids(projects: Sequence[VerifiedProject]) -> str:
    return ", ".join(project.id for project in projects)
