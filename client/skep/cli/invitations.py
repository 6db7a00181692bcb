"""The verbs about invitations: `project invite` for publishers; `accept`, `invitations` and `decline` for the invited."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skep import bootstrap
from skep.adapters import invitations as files
from skep.cli import arguments as spelled
from skep.cli import consent
from skep.cli.join import is_source
from skep.cli.parser import Context, Verbs
from skep.cli.terminal import table
from skep.core import invitation
from skep.core.errors import BadInput, InvitationError
from skep.core.invitation import ROLES, TRAINER, Invitation
from skep.core.manifest import Manifest, parse

_NONE = "No invitations here. skep project accept FILE keeps one."


def add_to(group: Verbs) -> None:
    """Add the verbs to the group `project`."""
    invite = group.verb("invite", _invite, "let one computer take part in a project of yours, until a date")
    invite.add_argument("project", metavar="NAME|MANIFEST", help="a known project, or the path of its signed manifest")
    invite.add_argument("--peer", metavar="ID", required=True, help="what skep identity prints on that computer")
    invite.add_argument("--days", metavar="N", type=spelled.count, required=True, help="how long it lasts")
    invite.add_argument("--role", choices=ROLES, default=TRAINER, help="a seed does not average (trainer)")
    invite.add_argument("--key", metavar="NAME|FILE", help="the key (the one that the manifest names)")
    invite.add_argument("--out", metavar="FILE", type=Path, help="where the invitation goes (this folder)")
    accept = group.verb("accept", _accept, "check an invitation to a project and keep it")
    accept.add_argument("file", metavar="FILE", type=Path, help="what the publisher sent")
    consent.add_option(accept)
    group.verb("invitations", _list, "list the invitations kept here")
    decline = group.verb("decline", _decline, "forget the invitation to a project")
    decline.add_argument("project", metavar="NAME", help="a known project")


def _invite(context: Context, arguments: argparse.Namespace) -> int:
    manifest = _manifest(context, arguments.project)
    draft = invitation.draft(manifest, arguments.peer, arguments.role, datetime.now(UTC), arguments.days)
    made = files.sign(draft, bootstrap.private_key(context.home, arguments.key, manifest.publisher.key))
    path = arguments.out or Path(f"{manifest.id}-{made.peer[-8:]}.invitation")
    files.write(made, path)
    lines = [
        f"{made.peer} is invited to {manifest.title} as {made.role} until {made.expires:%Y-%m-%d}.",
        f"Send it {path}; it is of use to that computer only, and cannot be taken back before it expires.",
    ]
    context.terminal.show({"path": str(path)} | _described(made), lines)
    return 0


def _manifest(context: Context, name: str) -> Manifest:
    return bootstrap.read_manifest(name) if is_source(name) else bootstrap.known_manifest(context.home, name)


def _described(made: Invitation) -> dict[str, Any]:
    return {
        "project": made.project,
        "peer": made.peer,
        "role": made.role,
        "issued": made.issued.isoformat(),
        "expires": made.expires.isoformat(),
    }


def _accept(context: Context, arguments: argparse.Namespace) -> int:
    raw = files.read_file(arguments.file)
    wanted = invitation.read(raw, files.verify).project
    try:
        project = bootstrap.catalogue(context.home).find(wanted)
    except BadInput:
        raise InvitationError(
            f'The invitation is to a project that is not known here, "{wanted}".',
            "Add it first: skep project add FILE|URL.",
        ) from None
    kept = bootstrap.kept_invitations(context.home)
    manifest = parse(project.manifest.encode())
    made = consent.kept(context, arguments, lambda *, in_file: kept.accept(raw, manifest, in_file=in_file))
    lines = [
        f"This computer is invited to {project.title} as {made.role} until {made.expires:%Y-%m-%d}.",
        f"Join it with: skep join {project.id}",
    ]
    context.terminal.show(_described(made), lines)
    return 0


def _list(context: Context, _arguments: argparse.Namespace) -> int:
    projects = bootstrap.catalogue(context.home).projects()
    found = bootstrap.kept_invitations(context.home).among(projects)
    now = datetime.now(UTC)
    rows = [
        (project.id, project.title, made.role, f"{made.expires:%Y-%m-%d}", "" if made.expires > now else "expired")
        for project, made in found
    ]
    context.terminal.show(
        {"invitations": [_described(made) for _, made in found]},
        [table(("Project", "Title", "Role", "Until", ""), rows)] if rows else [_NONE],
    )
    return 0


def _decline(context: Context, arguments: argparse.Namespace) -> int:
    project = bootstrap.catalogue(context.home).find(arguments.project)
    bootstrap.kept_invitations(context.home).drop(project)
    context.terminal.show({"project": project.id}, [f"Forgotten: the invitation to {project.title}."])
    return 0
