"""The projects known in a home, each a verified manifest with its signature and pinned key, and fetching them.

A manifest comes from a path, a web address or a `.skep` file with a join link.
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
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

from urllib3.util import Retry

from skep.adapters.net.connections import INTERNET, Network
from skep.adapters.net.web import Patience, Stop, TryAgain, Web
from skep.adapters.storage import signing
from skep.adapters.storage.files import atomic_write, os_errors, unreadable
from skep.core.errors import BadInput, DataError, ManifestError, SkepError
from skep.core.plain_text import plain
from skep.core.project import links
from skep.core.project.addresses import reach_of
from skep.core.project.fields import PROJECT_ID, FieldError, WebAddress
from skep.core.project.manifest import MANIFEST_BYTES_LIMIT, Manifest, VerifiedProject, check_expiry, check_reach
from skep.core.project.revisions import check_revision
from skep.core.strict_json import read_object
from skep.core.text import Problem, Text

SUFFIX: Final = ".skep"
NAME: Final = "project.json"
"""One file a project, since manifest, signature and source must change together."""
KEPT_LIMIT: Final = 512 * 1024
_PARTS: Final = ("manifest", "signature", "source")

QUICK: Final = Patience(retry=Retry(2, backoff_factor=0.5))

Fetch = Callable[[str, Text, int], bytes]
"""The bytes at a web address, never more than the limit + 1; the second argument names them in sentences.

Raises ManifestError.
"""


@dataclass(frozen=True)
class Verified:
    """A manifest as its publisher wrote it, and what it says."""

    raw: bytes
    signature: bytes
    manifest: Manifest

    def project(self, source: str) -> VerifiedProject:
        """`source` is where it came from."""
        return VerifiedProject(
            id=self.manifest.id,
            title=self.manifest.title,
            run_id=self.manifest.run_id,
            fingerprint=self.manifest.fingerprint,
            revision=self.manifest.revision,
            source=source,
            manifest=self.manifest,
            text=self.raw.decode(),
        )


def resolved(source: str) -> str:
    """The link in the file that `source` names; a path when it names another file; else `source`. Raises BadInput.

    Desktops name files by path or as file: addresses.
    """
    if source.startswith("file:"):
        source = url2pathname(urlsplit(source).path)
    if "://" in source or not source.lower().endswith(SUFFIX):
        return source
    path = Path(source)
    with unreadable(path, Text("signing.check_path"), BadInput), path.open("rb") as file:
        raw = file.read(links.LENGTH_LIMIT + 1)
    try:
        text = raw.decode("utf-8").strip()
    except UnicodeDecodeError:
        text = ""
    if len(raw) > links.LENGTH_LIMIT or not links.is_link(text):
        raise BadInput(
            Text("manifest.holds_no_join_link", path=str(path)),
            Text("manifest.would_one_line_such", example=links.EXAMPLE),
        )
    return text


def fetch_over_web(address: str, what: Text, limit: int, *, proxy: str = "", network: Network = INTERNET) -> bytes:
    """`proxy` is an address, or "" for the environment's."""
    web = Web(QUICK, Stop(), reach_of(address), lambda: proxy, network)
    try:
        return web.persist(lambda: web.read(address, what, limit))
    except TryAgain as error:
        raise ManifestError(error.title, Text("manifest.check_address_internet_connection_then")) from None
    except DataError as error:
        raise ManifestError(error.title, error.hint) from None


def verified(source: str, fetch: Fetch) -> Verified:
    """The manifest at a path or web address, its signature checked. Raises ManifestError."""
    if "://" not in source:
        return Verified(*signing.load_verified(signing.given_path(source)))
    try:
        WebAddress().read(source, "")
    except FieldError as error:
        raise ManifestError(
            Text("manifest.address", source=source, phrase=error.phrase), Text("manifest.check_address")
        ) from None
    raw = _whole(fetch, source, Text("field.manifest"), MANIFEST_BYTES_LIMIT)
    beside = _signature_address(source)
    signature = _whole(fetch, beside, Text("manifest.manifest_signature"), signing.SIGNATURE_FILE_LIMIT)
    return Verified(raw, signature, signing.check(raw, signature))


def current(source: str, fetch: Fetch, now: datetime) -> tuple[str, Verified]:
    """The manifest at a path, a web address or a join link, or that of a file with a link; and its own path or address.

    Its signature, publisher, expiry and reach are checked. Raises ManifestError, BadInput.
    """
    source = resolved(source)
    link = links.parse(source) if links.is_link(source) else None
    source = link.manifest if link else source
    new = verified(source, fetch)
    if link and not link.names(new.manifest.publisher.key):
        raise ManifestError(
            Text("catalogue.manifest_published_not_whom_link", source=source, fingerprint=new.manifest.fingerprint),
            Text("catalogue.nothing_was_kept_ask_whoever"),
        )
    check_expiry(new.manifest, now)
    check_reach(new.manifest, reach_of(source))
    return source, new


def _whole(fetch: Fetch, address: str, what: Text, limit: int) -> bytes:
    raw = fetch(address, what, limit)
    if len(raw) > limit:
        raise ManifestError(
            Text("manifest.what_lies_larger_than_kib", address=address, limit=limit // 1024, what=what),
            Text("manifest.check_address"),
        )
    return raw


def _signature_address(address: str) -> str:
    parts = urlsplit(address)
    return urlunsplit(parts._replace(path=parts.path + signing.SIGNATURE_SUFFIX, fragment=""))


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

        A link names its publisher; a manifest signed with another key is refused.
        A later revision must carry the pinned key and a higher number; one that needs more than before is taken only
        with `consent`. One from the internet may name hosts on the internet only.
        Raises ManifestError (NeedsConsent for missing consent), StorageError.
        """
        source, new = current(source, self._fetch, self._now())
        old = self._kept(new.manifest.id)
        if old:
            same_bytes = old.text.encode() == new.raw
            check_revision(old.manifest, new.manifest, same_bytes=same_bytes, consent=consent)
        where = source if "://" in source else str(signing.given_path(source))
        project = new.project(where.encode(errors="replace").decode())
        self._keep(project, new.signature)
        return project

    def find(self, name: str) -> VerifiedProject:
        """The project with this id or title. Raises BadInput with the known names, ManifestError when it is damaged."""
        if kept := self._kept(name):
            return kept
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
        with os_errors(
            Text("catalogue.projects_cannot_read", folder=str(self._folder)), Text("key.check_folder_permissions")
        ):
            try:
                names = sorted(folder.name for folder in self._folder.iterdir())
            except FileNotFoundError:
                return []
        found: list[VerifiedProject | Problem] = []
        for name in names:
            try:
                kept = self._kept(name)
            except SkepError as error:
                found.append(error.problem)
            else:
                found += [kept] if kept else []
        return found

    def _kept(self, project_id: str) -> VerifiedProject | None:
        """The stored manifest of a project, None if it is unknown. Raises ManifestError if it is damaged."""
        path = self._folder / project_id / NAME
        known = re.fullmatch(PROJECT_ID.expression, project_id) and os.path.exists(path)  # noqa: PTH110 - never raises
        if not known:
            return None
        try:
            return _read(signing.read_capped(path, KEPT_LIMIT), project_id)
        except ManifestError as error:
            raise ManifestError(
                Text("catalogue.what_kept_project_damaged", project_id=project_id, title=error.title),
                Text("catalogue.remove_folder_add_project_again", parent=str(path.parent)),
            ) from None

    def _keep(self, project: VerifiedProject, signature: bytes) -> None:
        kept = {"manifest": project.text, "signature": signature.decode(), "source": project.source}
        raw = json.dumps(kept, indent=1).encode()
        folder = self._folder / project.id
        with os_errors(
            Text("catalogue.project_cannot_kept", folder=str(self._folder)), Text("key.free_some_space_check_folder")
        ):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / NAME
            if not path.exists() or path.read_bytes() != raw:  # a full disk does not keep a known project from its use
                atomic_write(path, raw)


def _read(content: bytes, project_id: str) -> VerifiedProject:
    body = read_object(content, KEPT_LIMIT, _bad_file)
    manifest, signature, source = (body.get(name) for name in _PARTS)
    if not isinstance(manifest, str) or not isinstance(signature, str) or not isinstance(source, str):
        raise _bad_file(Text("catalogue.not_complete"))
    # a lone surrogate, which JSON can spell, becomes bytes that no signature fits
    raw, signature_file = manifest.encode(errors="replace"), signature.encode(errors="replace")
    kept = Verified(raw, signature_file, signing.check(raw, signature_file))
    if kept.manifest.id != project_id:
        raise _bad_file(Text("catalogue.another_project"))
    return kept.project(source)


def _bad_file(phrase: Text) -> ManifestError:
    return ManifestError(Text("catalogue.not_valid", name=NAME, phrase=phrase))


def _ids(projects: Sequence[VerifiedProject]) -> str:
    return ", ".join(project.id for project in projects)
