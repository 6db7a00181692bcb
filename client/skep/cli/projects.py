"""The verbs about projects: `projects`; `project add`, `show`, `verify`, `sign`, `export`; and those about invitations."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from skep import bootstrap
from skep.cli import invitations, permission, shards
from skep.cli.join import is_source
from skep.cli.parser import Context, Verbs
from skep.cli.terminal import table
from skep.core.manifest import Manifest
from skep.core.manifest_warnings import warnings
from skep.core.model import Project
from skep.host.exporting import SUFFIX, export, newest_checkpoint
from skep.host.host_folder import HostFolder

_NONE = "No projects yet. Add one with skep project add FILE, or start a practice swarm with skep practice."
_NAME = "NAME|MANIFEST"


def add(verbs: Verbs) -> None:
    verbs.verb("projects", _list, "list the projects known here")
    group = verbs.group("project", "add, show, verify or sign a project's manifest, prepare its data")
    adding = group.verb("add", _add, "verify a manifest and keep it, with its publisher's key")
    adding.add_argument("source", metavar="FILE|URL|LINK", help="the manifest; its signature lies beside it")
    adding.add_argument("--consent", action="store_true", help="also when a new revision asks for more than before")
    show = group.verb("show", _show, "show what a project downloads, sends and uses, and whether it fits")
    show.add_argument("project", metavar=_NAME, help="a known project, or the path of a manifest")
    verify = group.verb("verify", _verify, "check a manifest, its signature and its date")
    verify.add_argument("project", metavar=_NAME, help="the path of a manifest, or a known project")
    sign = group.verb("sign", _sign, "sign a manifest with a publisher's key")
    sign.add_argument("file", metavar="FILE", type=Path, help="the manifest")
    sign.add_argument("--key", metavar="NAME|FILE", help="the key (the one that the manifest names)")
    shards.add(group)
    exporting = group.verb("export", _export, "write the newest checkpoint as a model that transformers loads")
    exporting.add_argument("source", metavar="NAME|MANIFEST|CHECKPOINT", help="a project hosted here, or a checkpoint")
    exporting.add_argument("folder", metavar="DIR", type=Path, help="the new folder")
    exporting.add_argument("--files", metavar="FOLDER", type=Path, help="where the base weights lie, for adapters")
    invitations.add_to(group)


def _list(context: Context, _arguments: argparse.Namespace) -> int:
    catalogue = bootstrap.catalogue(context.home)
    projects, damaged = catalogue.projects(), catalogue.damaged()
    rows = [(each.id, each.title, each.fingerprint, str(each.revision), each.source) for each in projects]
    lines = [table(("Project", "Title", "Publisher", "Revision", "From"), rows)] if rows else []
    problems = [{"title": each.title, "hint": each.hint} for each in damaged]
    context.terminal.show(
        {"projects": [described(each) for each in projects], "damaged": problems}, lines if rows or damaged else [_NONE]
    )
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
    lines = [f"Added {project.title}, published by {project.fingerprint}.", f"Join it with: skep join {project.id}"]
    context.terminal.show(described(project), lines)
    return 0


def _show(context: Context, arguments: argparse.Namespace) -> int:
    manifest = _manifest(context, arguments.project)
    fit = bootstrap.fit(context.home, manifest)
    context.terminal.show(permission.body(manifest, fit), permission.lines(manifest, fit))
    return 0


def _verify(context: Context, arguments: argparse.Namespace) -> int:
    manifest = _manifest(context, arguments.project)
    bootstrap.check_expiry(manifest)
    sentence = (
        f"The signature fits: {manifest.title}, revision {manifest.revision}, published by {manifest.fingerprint}, "
        f"valid until {manifest.expires:%Y-%m-%d}."
    )
    doubts = warnings(manifest)
    body = {"valid": True, "warnings": list(doubts)} | permission.outline(manifest)
    context.terminal.show(body, [sentence, *doubts])
    return 0


def _manifest(context: Context, name: str) -> Manifest:
    """The manifest, its signature checked. Raises ManifestError, BadInput."""
    return bootstrap.read_manifest(name) if is_source(name) else bootstrap.known_manifest(context.home, name)


def _sign(context: Context, arguments: argparse.Namespace) -> int:
    signature = bootstrap.sign(context.home, arguments.file, arguments.key)
    context.terminal.show({"signature": str(signature)}, [f"Signed: {signature}"])
    return 0


def _export(context: Context, arguments: argparse.Namespace) -> int:
    source, folder = arguments.source, HostFolder(context.home.root / "host")
    if source.endswith(SUFFIX):
        checkpoint = Path(source).expanduser().absolute()
    else:
        checkpoint = newest_checkpoint(folder, _manifest(context, source))
    written = export(checkpoint, arguments.folder.expanduser().absolute(), arguments.files)
    sentence = f"The model of epoch {written['epoch']} is in {written['folder']}."
    context.terminal.show(written, [sentence])
    return 0
