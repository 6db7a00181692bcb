"""The verbs `project revoke` and `project revoked`, for publishers of projects by invitation."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skep import bootstrap
from skep.adapters.storage import invitations as files
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import numbers, tr
from skep.cli.show.terminal import table
from skep.cli.verbs.join import is_source
from skep.cli.verbs.keys import private_key
from skep.core.project import revocation
from skep.core.project.manifest import Manifest
from skep.core.project.revocation import Revocations
from skep.services import joining

_NAME = "NAME|MANIFEST"


def add(group: Verbs) -> None:
    revoke = group.verb("revoke", _revoke, tr("end the invitation of one computer before its date"))
    listing = group.verb("revoked", _revoked, tr("list the computers whose invitation was revoked"))
    for option in (revoke.add_argument, listing.add_argument):
        option("project", metavar=_NAME, help=tr("a known project, or the path of its signed manifest"))
        option("--list", metavar=tr("FILE"), type=Path, help=tr("the published list (PROJECT.revoked.json here)"))
    revoke.add_argument("--peer", metavar="ID", required=True, help=tr("what skep identity prints on that computer"))
    revoke.add_argument("--key", metavar=tr("NAME|FILE"), help=tr("the key (the one that the manifest names)"))


def _manifest(context: Context, name: str) -> Manifest:
    return joining.read_manifest(name) if is_source(name) else bootstrap.catalogue(context.home).find(name).manifest


def _path(arguments: argparse.Namespace, manifest: Manifest) -> Path:
    given: Path | None = arguments.list
    return given or Path(revocation.file_name(manifest))


def _revoke(context: Context, arguments: argparse.Namespace) -> None:
    manifest = _manifest(context, arguments.project)
    path = _path(arguments, manifest)
    earlier = files.read_revocations(path, manifest)
    draft = revocation.draft(manifest, earlier, arguments.peer, datetime.now(UTC))
    made = files.sign(draft, private_key(context.home, arguments.key, manifest.publisher.key))
    files.write(made, path)
    where = revocation.address(manifest)
    lines = [
        tr(
            "{peer} is revoked: its invitations to {title} do not count any more.",
            peer=arguments.peer,
            title=manifest.title,
        ),
        tr(
            "Put {path} at {where}. Computers of the project fetch it when they join and every hour. Keep it: each "
            "revocation is added to it.",
            path=path,
            where=where,
        ),
    ]
    context.terminal.show({"path": str(path), "address": where} | _body(made), lines)


def _revoked(context: Context, arguments: argparse.Namespace) -> None:
    manifest = _manifest(context, arguments.project)
    found = files.read_revocations(_path(arguments, manifest), manifest)
    rows = [(each.peer, numbers().date(each.until)) for each in found.revoked] if found else []
    lines = [table((tr("Computer"), tr("Revoked")), rows)] if rows else [tr("No invitation is revoked in this list.")]
    context.terminal.show(_body(found) if found else {"project": manifest.id, "revoked": []}, lines)


def _body(found: Revocations) -> dict[str, Any]:
    return {
        "project": found.project,
        "issued": found.issued.isoformat(),
        "revoked": [{"peer": each.peer, "until": each.until.isoformat()} for each in found.revoked],
    }
