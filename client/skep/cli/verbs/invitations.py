"""The verbs about invitations: `project invite` for publishers; `accept`, `invitations` and `decline` for the invited."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skep import bootstrap
from skep.adapters.storage import invitations as files
from skep.cli import arguments as spelled
from skep.cli import consent
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import numbers, tr
from skep.cli.show.terminal import table
from skep.cli.verbs.join import is_source
from skep.core.errors import BadInput, InvitationError
from skep.core.project import invitation
from skep.core.project.invitation import ROLES, TRAINER, Invitation
from skep.core.project.manifest import Manifest
from skep.core.text import Text
from skep.services import joining, keys


def add_to(group: Verbs) -> None:
    """Add the verbs to the group `project`."""
    invite = group.verb("invite", _invite, tr("let one computer take part in a project of yours, until a date"))
    invite.add_argument(
        "project", metavar="NAME|MANIFEST", help=tr("a known project, or the path of its signed manifest")
    )
    invite.add_argument("--peer", metavar="ID", required=True, help=tr("what skep identity prints on that computer"))
    invite.add_argument("--days", metavar="N", type=spelled.count, required=True, help=tr("how long it lasts"))
    invite.add_argument("--role", choices=ROLES, default=TRAINER, help=tr("a seed does not average (trainer)"))
    invite.add_argument("--key", metavar=tr("NAME|FILE"), help=tr("the key (the one that the manifest names)"))
    invite.add_argument("--out", metavar=tr("FILE"), type=Path, help=tr("where the invitation goes (this folder)"))
    accept = group.verb("accept", _accept, tr("check an invitation to a project and keep it"))
    accept.add_argument("file", metavar=tr("FILE"), type=Path, help=tr("what the publisher sent"))
    consent.add_option(accept)
    group.verb("invitations", _list, tr("list the invitations kept here"))
    decline = group.verb("decline", _decline, tr("forget the invitation to a project"))
    decline.add_argument("project", metavar="NAME", help=tr("a known project"))


def _invite(context: Context, arguments: argparse.Namespace) -> int:
    manifest = _manifest(context, arguments.project)
    draft = invitation.draft(manifest, arguments.peer, arguments.role, datetime.now(UTC), arguments.days)
    made = files.sign(draft, keys.private_key(context.home, arguments.key, manifest.publisher.key))
    path = arguments.out or Path(f"{manifest.id}-{made.peer[-8:]}.invitation")
    files.write(made, path)
    lines = [
        tr(
            "{peer} is invited to {title} as {role} until {date}.",
            peer=made.peer,
            title=manifest.title,
            role=made.role,
            date=_until(made),
        ),
        tr(
            "Send it {path}; it is of use to that computer only, and cannot be taken back before it expires.",
            path=path,
        ),
    ]
    context.terminal.show({"path": str(path)} | _described(made), lines)
    return 0


def _until(made: Invitation) -> str:
    return numbers().date(made.expires)


def _manifest(context: Context, name: str) -> Manifest:
    return joining.read_manifest(name) if is_source(name) else joining.known_manifest(context.home, name)


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
            Text("joining.invitation_project_not_known_here", wanted=wanted),
            Text("invitations.add_first_skep_project_add"),
        ) from None
    kept = bootstrap.kept_invitations(context.home)
    made = consent.kept(context, arguments, lambda *, in_file: kept.accept(raw, project.manifest, in_file=in_file))
    lines = [
        tr(
            "This computer is invited to {title} as {role} until {date}.",
            title=project.title,
            role=made.role,
            date=_until(made),
        ),
        tr("Join it with: skep join {name}", name=project.id),
    ]
    context.terminal.show(_described(made), lines)
    return 0


def _list(context: Context, _arguments: argparse.Namespace) -> int:
    projects = bootstrap.catalogue(context.home).projects()
    found = bootstrap.kept_invitations(context.home).among(projects)
    now = datetime.now(UTC)
    rows = [
        (project.id, project.title, made.role, _until(made), "" if made.expires > now else tr("expired"))
        for project, made in found
    ]
    context.terminal.show(
        {"invitations": [_described(made) for _, made in found]},
        [table((tr("Project"), tr("Title"), tr("Role"), tr("Until"), ""), rows)]
        if rows
        else [tr("No invitations here. skep project accept FILE keeps one.")],
    )
    return 0


def _decline(context: Context, arguments: argparse.Namespace) -> int:
    project = bootstrap.catalogue(context.home).find(arguments.project)
    bootstrap.kept_invitations(context.home).drop(project)
    context.terminal.show({"project": project.id}, [tr("Forgotten: the invitation to {title}.", title=project.title)])
    return 0
