"""The verbs about projects: `projects`; `project add`, `show`, `verify`, `sign`, `export`; and those about invitations."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.table import Table

from skep import bootstrap
from skep.cli.parser import Context, Verbs
from skep.cli.show import permission
from skep.cli.show.speech import say, tr
from skep.cli.show.terminal import table
from skep.cli.verbs import invitations, shards
from skep.cli.verbs.join import is_source
from skep.core.project.data import Project
from skep.core.project.fit import warnings
from skep.core.project.manifest import Manifest
from skep.host.export.command import SUFFIX, export, newest_checkpoint
from skep.host.server.folder import HostFolder
from skep.services import joining, keys

_NAME = "NAME|MANIFEST"


def add(verbs: Verbs) -> None:
    verbs.verb("projects", _list, tr("list the projects known here"))
    group = verbs.group("project", tr("add, show, verify or sign a project's manifest, prepare its data"))
    adding = group.verb("add", _add, tr("verify a manifest and keep it, with its publisher's key"))
    adding.add_argument("source", metavar=tr("FILE|URL|LINK"), help=tr("the manifest; its signature lies beside it"))
    adding.add_argument("--consent", action="store_true", help=tr("also when a new revision asks for more than before"))
    show = group.verb("show", _show, tr("show what a project downloads, sends and uses, and whether it fits"))
    show.add_argument("project", metavar=_NAME, help=tr("a known project, or the path of a manifest"))
    verify = group.verb("verify", _verify, tr("check a manifest, its signature and its date"))
    verify.add_argument("project", metavar=_NAME, help=tr("the path of a manifest, or a known project"))
    sign = group.verb("sign", _sign, tr("sign a manifest with a publisher's key"))
    sign.add_argument("file", metavar=tr("FILE"), type=Path, help=tr("the manifest"))
    sign.add_argument("--key", metavar=tr("NAME|FILE"), help=tr("the key (the one that the manifest names)"))
    shards.add(group)
    exporting = group.verb("export", _export, tr("write the newest checkpoint as a model that transformers loads"))
    exporting.add_argument(
        "source", metavar="NAME|MANIFEST|CHECKPOINT", help=tr("a project hosted here, or a checkpoint")
    )
    exporting.add_argument("folder", metavar=tr("DIR"), type=Path, help=tr("the new folder"))
    exporting.add_argument(
        "--files", metavar=tr("FOLDER"), type=Path, help=tr("where the base weights lie, for adapters")
    )
    invitations.add_to(group)


def _list(context: Context, _arguments: argparse.Namespace) -> int:
    catalogue = bootstrap.catalogue(context.home)
    projects, damaged = catalogue.projects(), catalogue.damaged()
    rows = [(each.id, each.title, each.fingerprint, str(each.revision), each.source) for each in projects]
    headings = (tr("Project"), tr("Title"), tr("Publisher"), tr("Revision"), tr("Source"))
    lines: list[str | Table] = [table(headings, rows)] if rows else []
    if not rows and not damaged:
        lines = [
            tr("No projects yet. Add one with skep project add FILE, or start a practice swarm with skep practice.")
        ]
    problems = [{"title": each.title, "hint": each.hint} for each in damaged]
    context.terminal.show({"projects": [described(each) for each in projects], "damaged": problems}, lines)
    if not context.terminal.json:
        for each in damaged:
            context.terminal.sentence(each)
    return 0


def described(project: Project) -> dict[str, Any]:
    """A known project as JSON, without its manifest."""
    return {
        "id": project.id,
        "title": project.title,
        "run_id": project.run_id,
        "fingerprint": project.fingerprint,
        "revision": project.revision,
        "source": project.source,
    }


def _add(context: Context, arguments: argparse.Namespace) -> int:
    project = bootstrap.add_project(context.home, arguments.source, consent=arguments.consent)
    lines = [
        tr("Added {title}, published by {fingerprint}.", title=project.title, fingerprint=project.fingerprint),
        tr("Join it with: skep join {name}", name=project.id),
    ]
    context.terminal.show(described(project), lines)
    return 0


def _show(context: Context, arguments: argparse.Namespace) -> int:
    manifest = _manifest(context, arguments.project)
    fit = joining.fit(context.home, manifest)
    context.terminal.show(permission.body(manifest, fit), permission.lines(manifest, fit))
    return 0


def _verify(context: Context, arguments: argparse.Namespace) -> int:
    manifest = _manifest(context, arguments.project)
    joining.check_expiry(manifest)
    sentence = tr(
        "The signature fits: {title}, revision {revision}, published by {fingerprint}, valid until {date}.",
        title=manifest.title,
        revision=manifest.revision,
        fingerprint=manifest.fingerprint,
        date=permission.until(manifest),
    )
    doubts = warnings(manifest)
    body = {"valid": True, "warnings": list(doubts)} | permission.outline(manifest)
    context.terminal.show(body, [sentence, *map(say, doubts)])
    return 0


def _manifest(context: Context, name: str) -> Manifest:
    """The manifest, its signature checked. Raises ManifestError, BadInput."""
    return joining.read_manifest(name) if is_source(name) else joining.known_manifest(context.home, name)


def _sign(context: Context, arguments: argparse.Namespace) -> int:
    signature = keys.sign(context.home, arguments.file, arguments.key)
    context.terminal.show({"signature": str(signature)}, [tr("Signed: {path}", path=signature)])
    return 0


def _export(context: Context, arguments: argparse.Namespace) -> int:
    source, folder = arguments.source, HostFolder(context.home.root / "host")
    if source.endswith(SUFFIX):
        checkpoint = Path(source).expanduser().absolute()
    else:
        checkpoint = newest_checkpoint(folder, _manifest(context, source))
    written = export(checkpoint, arguments.folder.expanduser().absolute(), arguments.files)
    sentence = tr("The model of epoch {epoch} is in {folder}.", epoch=written["epoch"], folder=written["folder"])
    context.terminal.show(written, [sentence])
    return 0
