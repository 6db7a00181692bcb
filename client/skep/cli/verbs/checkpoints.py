"""The verb `project checkpoint`, for publishers of projects whose newcomers begin with a signed checkpoint."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from skep import bootstrap
from skep.adapters.storage import signed_checkpoints as files
from skep.adapters.storage.paths import expanded
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import tr
from skep.cli.verbs.join import is_source
from skep.cli.verbs.keys import private_key
from skep.core.project import signed_checkpoint
from skep.core.project.manifest import Manifest
from skep.services import joining


def add(group: Verbs) -> None:
    option = group.verb("checkpoint", _sign, tr("sign the checkpoint with which newcomers begin")).add_argument
    option("project", metavar="NAME|MANIFEST", help=tr("a known project, or the path of its signed manifest"))
    option("checkpoint", metavar=tr("FILE"), help=tr("the checkpoint, of the manifest's run"))
    option("--key", metavar=tr("NAME|FILE"), help=tr("the key (the one that the manifest names)"))
    option("--to", metavar=tr("FOLDER"), default=".", help=tr("where the note and the checkpoint go (this folder)"))


def _manifest(context: Context, name: str) -> Manifest:
    return joining.read_manifest(name) if is_source(name) else bootstrap.catalogue(context.home).find(name).manifest


def _sign(context: Context, arguments: argparse.Namespace) -> None:
    manifest = _manifest(context, arguments.project)
    checkpoint, folder = expanded(arguments.checkpoint), expanded(arguments.to)
    earlier = files.read_note(folder / signed_checkpoint.file_name(manifest.id), manifest)
    draft = signed_checkpoint.draft(manifest, earlier, files.describe(checkpoint), datetime.now(UTC))
    made = files.sign(draft, private_key(context.home, arguments.key, manifest.publisher.key))
    note, copied = files.publish(made, checkpoint, folder)
    where, file = signed_checkpoint.address(manifest), signed_checkpoint.file_of(made, manifest)
    lines = [
        tr("Signed: the checkpoint of epoch {epoch} of {title}.", epoch=made.epoch, title=manifest.title),
        tr(
            "Put {path} at {where}, and then {note} at {note_where}.",
            path=copied,
            where=file.address,
            note=note,
            note_where=where,
        ),
        tr(
            "skep host serves both where {folder} is its data folder. Keep the earlier checkpoint for a few days.",
            folder=folder,
        ),
    ]
    if not manifest.begins_signed:
        lines.append(tr('Newcomers begin with it once a revision of the manifest says "initial_state": "signed".'))
    body = {
        "note": str(note),
        "checkpoint": str(copied),
        "address": where,
        "checkpoint_address": file.address,
        "run_id": made.run_id,
        "epoch": made.epoch,
        "sha256": made.sha256,
        "size": made.size,
        "issued": made.issued.isoformat(),
    }
    context.terminal.show(body, lines)
