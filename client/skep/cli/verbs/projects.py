"""The verbs about projects: `projects`, and those of the group `project`.

For all users `add`, `show`, `verify`; for publishers `sign`, `shards`, `export`, `checkpoint`, `invite` and `revoke`; for invited users
`accept`, `invitations` and `decline`.
"""

from __future__ import annotations

import argparse
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from skep import bootstrap
from skep.adapters.storage import invitations as files
from skep.adapters.storage import signing
from skep.adapters.storage.paths import expanded
from skep.cli import arguments as spelled
from skep.cli.parser import Context, Verbs
from skep.cli.show import permission, result
from skep.cli.show.speech import numbers, say, tr
from skep.cli.show.terminal import table
from skep.cli.verbs import checkpoints, revocations, shards
from skep.cli.verbs.join import is_source
from skep.cli.verbs.keys import add_consent, kept, private_key
from skep.cli.verbs.packs import got
from skep.core.project import invitation
from skep.core.project.data import Project
from skep.core.project.fit import warnings
from skep.core.project.invitation import ROLES, TRAINER, Invitation
from skep.core.project.manifest import Manifest
from skep.core.text import Text, verbatim
from skep.host.export import SUFFIX, export, newest_checkpoint
from skep.host.server.folder import HostFolder
from skep.services import joining, results
from skep.services.protection import protection

_NAME = "NAME|MANIFEST"


def add(verbs: Verbs) -> None:
    verbs.verb("projects", _list, tr("list the projects known here"))
    group = verbs.group("project", tr("add, show, verify or sign a project's manifest, prepare its data"))
    option = group.verb("add", _add, tr("verify a manifest and keep it, with its publisher's key")).add_argument
    option("source", metavar=tr("FILE|URL|LINK"), help=tr("the manifest; its signature lies beside it"))
    option("--consent", action="store_true", help=tr("also when a new revision asks for more than before"))
    show = group.verb("show", _show, tr("show what a project downloads, sends and uses, and whether it fits"))
    show.add_argument("project", metavar=_NAME, help=tr("a known project, or the path of a manifest"))
    option = group.verb("verify", _verify, tr("check a manifest, its signature and its date")).add_argument
    option("project", metavar=_NAME, help=tr("the path of a manifest, or a known project"))
    option = group.verb("sign", _sign, tr("sign a manifest with a publisher's key")).add_argument
    option("file", metavar=tr("FILE"), type=Path, help=tr("the manifest"))
    option("--key", metavar=tr("NAME|FILE"), help=tr("the key (the one that the manifest names)"))
    shards.add(group)
    exporting = group.verb("export", _export, tr("write the newest checkpoint as a model that transformers loads"))
    option = exporting.add_argument
    option("source", metavar="NAME|MANIFEST|CHECKPOINT", help=tr("a project hosted here, or joined, or a checkpoint"))
    option("folder", metavar=tr("DIR"), type=Path, help=tr("the new folder"))
    option("--files", metavar=tr("FOLDER"), type=Path, help=tr("where the base weights lie, for adapters"))
    invite = group.verb("invite", _invite, tr("let one computer take part in a project of yours, until a date"))
    option = invite.add_argument
    option("project", metavar=_NAME, help=tr("a known project, or the path of its signed manifest"))
    option("--peer", metavar="ID", required=True, help=tr("what skep identity prints on that computer"))
    option("--days", metavar="N", type=spelled.count, required=True, help=tr("how long it lasts"))
    option(
        "--role",
        choices=ROLES,
        default=TRAINER,
        help=tr("host: averages and gives the state; donor: gives it; seed: neither (trainer)"),
    )
    option("--key", metavar=tr("NAME|FILE"), help=tr("the key (the one that the manifest names)"))
    option("--out", metavar=tr("FILE"), type=Path, help=tr("where the invitation goes (this folder)"))
    revocations.add(group)
    checkpoints.add(group)
    accept = group.verb("accept", _accept, tr("check an invitation to a project and keep it"))
    accept.add_argument("file", metavar=tr("FILE"), type=Path, help=tr("what the publisher sent"))
    add_consent(accept)
    group.verb("invitations", _invitations, tr("list the invitations kept here"))
    decline = group.verb("decline", _decline, tr("delete the invitation to a project"))
    decline.add_argument("project", metavar="NAME", help=tr("a known project"))


def _list(context: Context, _arguments: argparse.Namespace) -> None:
    catalogue = bootstrap.catalogue(context.home)
    projects, damaged = catalogue.projects(), catalogue.damaged()
    rows = [(each.id, each.title, each.fingerprint, str(each.revision), each.source) for each in projects]
    headings = (tr("Project"), tr("Title"), tr("Publisher"), tr("Revision"), tr("Source"))
    lines: list[str | Table] = [table(headings, rows)] if rows else []
    if not rows and not damaged:
        empty = tr("No projects yet. Add one with skep project add FILE, or start a practice swarm with skep practice.")
        lines = [empty]
    problems = [{"title": each.title, "hint": each.hint} for each in damaged]
    context.terminal.show({"projects": [_described(each) for each in projects], "damaged": problems}, lines)
    if not context.terminal.json:
        for each in damaged:
            context.terminal.sentence(each)


def _described(project: Project) -> dict[str, Any]:
    """A known project as JSON, without its manifest."""
    return {each.name: getattr(project, each.name) for each in fields(Project)}


def _add(context: Context, arguments: argparse.Namespace) -> None:
    project = bootstrap.catalogue(context.home).add(arguments.source, consent=arguments.consent)
    lines = [
        tr("Added {title}, published by {fingerprint}.", title=project.title, fingerprint=project.fingerprint),
        tr("Join it with: skep join {name}", name=project.id),
    ]
    context.terminal.show(_described(project), lines)


def _show(context: Context, arguments: argparse.Namespace) -> None:
    manifest = _manifest(context, arguments.project)
    fit = joining.fit(context.home, manifest)
    sandbox, kept = protection(), results.kept(context.home, manifest)
    finished = kept is not None and kept.last
    body = permission.body(manifest, fit, sandbox) | {"finished": finished}
    over = [tr("The run is finished."), result.sentence(kept, arguments.project)] if kept and finished else []
    context.terminal.show(body, [*permission.lines(manifest, fit, sandbox), *over])


def _verify(context: Context, arguments: argparse.Namespace) -> None:
    manifest = _manifest(context, arguments.project)
    joining.check_expiry(manifest)
    sentence = tr(
        "The signature fits: {title}, revision {revision}, published by {fingerprint}, valid until {date}.",
        title=manifest.title,
        revision=manifest.revision,
        fingerprint=manifest.fingerprint,
        date=numbers().date(manifest.expires),
    )
    doubts = warnings(manifest)
    body = {"valid": True, "warnings": list(doubts)} | permission.outline(manifest)
    context.terminal.show(body, [sentence, *map(say, doubts)])


def _manifest(context: Context, name: str) -> Manifest:
    """The manifest, its signature checked. Raises ManifestError, BadInput."""
    return joining.read_manifest(name) if is_source(name) else bootstrap.catalogue(context.home).find(name).manifest


def _sign(context: Context, arguments: argparse.Namespace) -> None:
    private = private_key(context.home, arguments.key, signing.publisher_of(arguments.file))
    named = verbatim(arguments.key) if arguments.key else Text("key.key_kept_here")
    signature = signing.sign_with(arguments.file, private, named)
    context.terminal.show({"signature": str(signature)}, [tr("Signed: {path}", path=signature)])


def _export(context: Context, arguments: argparse.Namespace) -> None:
    source, folder = arguments.source, HostFolder(context.home.host_folder)
    if source.endswith(SUFFIX):
        checkpoint = expanded(source)
    else:
        manifest = _manifest(context, source)
        checkpoint = newest_checkpoint(folder, manifest, results.kept(context.home, manifest))
    written = export(checkpoint, expanded(str(arguments.folder)), arguments.files, got(context))
    sentence = tr("The model of epoch {epoch} is in {folder}.", epoch=written["epoch"], folder=written["folder"])
    context.terminal.show(written, [sentence])


# --- invitations


def _invite(context: Context, arguments: argparse.Namespace) -> None:
    manifest = _manifest(context, arguments.project)
    draft = invitation.draft(manifest, arguments.peer, arguments.role, datetime.now(UTC), arguments.days)
    made = files.sign(draft, private_key(context.home, arguments.key, manifest.publisher.key))
    path = arguments.out or Path(f"{manifest.id}-{made.peer[-8:]}.invitation")
    files.write(made, path)
    invited = {"peer": made.peer, "title": manifest.title, "role": made.role, "date": numbers().date(made.expires)}
    lines = [
        tr("{peer} is invited to {title} as {role} until {date}.", **invited),
        tr(
            "Send {path} to its owner. Only that computer can use it. skep project revoke ends it before its date.",
            path=path,
        ),
    ]
    context.terminal.show({"path": str(path)} | _invitation(made), lines)


def _invitation(made: Invitation) -> dict[str, Any]:
    return {
        "project": made.project,
        "peer": made.peer,
        "role": made.role,
        "issued": made.issued.isoformat(),
        "expires": made.expires.isoformat(),
    }


def _accept(context: Context, arguments: argparse.Namespace) -> None:
    hint = Text("invitations.add_first_skep_project_add")
    accept = partial(joining.accept_invitation, context.home, arguments.file, hint)
    project, made = kept(context, arguments, accept)
    title, until = project.title, numbers().date(made.expires)
    lines = [
        tr("This computer is invited to {title} as {role} until {date}.", title=title, role=made.role, date=until),
        tr("Join it with: skep join {name}", name=project.id),
    ]
    context.terminal.show(_invitation(made), lines)


def _invitations(context: Context, _arguments: argparse.Namespace) -> None:
    projects = bootstrap.catalogue(context.home).projects()
    found = bootstrap.kept_invitations(context.home).among(projects)
    now = datetime.now(UTC)
    rows = [
        (each.id, each.title, made.role, numbers().date(made.expires), "" if made.expires > now else tr("expired"))
        for each, made in found
    ]
    headings = (tr("Project"), tr("Title"), tr("Role"), tr("Until"), "")
    lines = [table(headings, rows)] if rows else [tr("No invitations here. skep project accept FILE keeps one.")]
    context.terminal.show({"invitations": [_invitation(made) for _, made in found]}, lines)


def _decline(context: Context, arguments: argparse.Namespace) -> None:
    project = bootstrap.catalogue(context.home).find(arguments.project)
    bootstrap.kept_invitations(context.home).drop(project)
    context.terminal.show({"project": project.id}, [tr("Deleted: the invitation to {title}.", title=project.title)])
