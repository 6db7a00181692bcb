"""The verb `project shards`: converts text or images to shards and an index for a web server."""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any, Final

from skep.adapters.storage.paths import expanded
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import numbers, tr
from skep.core.errors import BadInput
from skep.core.project.data import ImageLayout, Layout
from skep.core.project.manifest import BYTES
from skep.core.text import Text

_LENGTHS: Final = (8, 32768)
_SIZES: Final = (8, 1024)
_HERE: Final = "https://YOUR-SERVER/"


def add(group: Verbs) -> None:
    """Add the verb to the group `project`."""
    option = group.verb("shards", _shards, tr("turn text or images into training data for a project")).add_argument
    option("sources", metavar=tr("SOURCE"), type=Path, nargs="+", help=tr("files, or folders of files"))
    option("--out", metavar=tr("FOLDER"), type=Path, required=True, help=tr("a new folder for shards and index"))
    option("--tokenizer", metavar=tr("bytes|FILE"), default=BYTES, help=tr("bytes, or a tokenizer.json"))
    option("--sequence-length", metavar="N", default="256", help=tr("tokens in a sample (256)"))
    option("--images", metavar=tr("SIZE"), help=tr("SOURCE has a folder of images for each class; SIZE in pixels"))
    option("--channels", metavar="N", default="3", help=tr("with --images: 3 for colour, 1 for grey (3)"))
    option("--samples-per-shard", metavar="N", help=tr("chosen by the size of a sample where left out"))
    option("--held-out", metavar="N", default="512", help=tr("samples to hold out at most, 0 for none (512)"))
    option("--address", metavar="URL", default=_HERE, help=tr("where you will serve the folder"))


def _shards(context: Context, arguments: argparse.Namespace) -> None:
    try:
        # numpy and its kind take a second to import, and not every installation has them
        from skep.host.shards.prepare import Cut, prepare_images, prepare_text  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        raise BadInput(
            Text("shards.preparing_data_needs_not_installed", name=str(error.name)),
            Text("shards.install_skep_extra_train"),
        ) from None
    shard = arguments.samples_per_shard
    cut = Cut(
        None if shard is None else _whole("--samples-per-shard", shard, (1, 2**31)),
        _whole("--held-out", arguments.held_out, (0, 100_000)),
    )
    out = expanded(str(arguments.out))
    if arguments.images is None:
        length = _whole("--sequence-length", arguments.sequence_length, _LENGTHS)
        made = prepare_text(arguments.sources, out, arguments.tokenizer, length, cut)
        more = _tokenizer(arguments.tokenizer, arguments.address)
    else:
        if len(arguments.sources) > 1:
            raise BadInput(Text("shards.images_there_one_source"), Text("shards.name_folder_has_folder_each"))
        size, channels = _whole("--images", arguments.images, _SIZES), _whole("--channels", arguments.channels, (1, 4))
        made, names = prepare_images(arguments.sources[0], out, size, channels, cut)
        more = {"class_names": list(names)}
    shards = (*made.index.shards, *made.index.held_out)
    address = f"{arguments.address.rstrip('/')}/index.json"
    body = {
        "folder": str(made.folder),
        "data": {"index": address, "sha256": made.sha256},
        "recipe": _fields(made.index.layout) | more,
        "shards": len(made.index.shards),
        "samples": sum(each.samples for each in made.index.shards),
        "held_out_samples": sum(each.samples for each in made.index.held_out),
        "bytes": sum(each.bytes for each in shards),
    }
    context.terminal.show(body, _lines(body))


def _whole(option: str, text: str, bounds: tuple[int, int]) -> int:
    least, most = bounds
    if not (text.isascii() and text.isdecimal() and len(text) < len("9999999999") and least <= int(text) <= most):
        raise BadInput(
            Text("shards.must_whole_number_from", option=option, least=least, most=most),
            Text("shards.you_gave", text=text),
        )
    return int(text)


def _tokenizer(name: str, address: str) -> dict[str, Any]:
    if name == BYTES:
        return {"tokenizer": BYTES}
    sha256 = hashlib.sha256(Path(name).read_bytes()).hexdigest()
    return {"tokenizer": {"url": f"{address.rstrip('/')}/tokenizer.json", "sha256": sha256}}


def _fields(layout: Layout) -> dict[str, Any]:
    """The layout by the names that a manifest's recipe has for it."""
    if isinstance(layout, ImageLayout):
        return {"image_size": layout.size, "channels": layout.channels, "classes": layout.classes}
    return {"sequence_length": layout.sequence_length, "vocabulary": layout.vocabulary}


def _lines(body: dict[str, Any]) -> list[str]:
    data, recipe = json.dumps(body["data"]), json.dumps(body["recipe"])
    return [
        tr(
            "{samples:number} samples in {shards:number} shards, and {held_out:number} held out: {size} in {folder}",
            samples=body["samples"],
            shards=body["shards"],
            held_out=body["held_out_samples"],
            size=numbers().size(body["bytes"]),
            folder=body["folder"],
        ),
        tr("Serve that folder over https, and put this into the manifest:"),
        f'  "data": {data}',
        tr("The recipe must have: {fields}", fields=recipe),
    ]
