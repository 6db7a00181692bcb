"""The verbs about a publisher's keys: `key new`, `key show`, `key list` and `key delete`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from skep import bootstrap
from skep.adapters.storage.publisher_keys import DEFAULT_NAME, StoredKey
from skep.adapters.storage.signing import key_text
from skep.cli import consent
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import tr
from skep.cli.show.terminal import table
from skep.core.errors import BadInput
from skep.core.project.manifest import fingerprint
from skep.core.text import Text
from skep.services.keys import make_key


def add(verbs: Verbs) -> None:
    group = verbs.group("key", tr("make and look after a publisher's keys"))
    new = group.verb("new", _new, tr("make a key that signs your projects' manifests and invitations"))
    place = new.add_mutually_exclusive_group()
    place.add_argument(
        "--name", metavar="NAME", default=DEFAULT_NAME, help=tr("what to call it in the keyring (publisher)")
    )
    place.add_argument("--out", metavar=tr("FILE"), type=Path, help=tr("make a key file there instead, unencrypted"))
    consent.add_option(new)
    group.verb("list", _list, tr("list the keys kept here"))
    show = group.verb("show", _show, tr("show a key's public part"))
    delete = group.verb("delete", _delete, tr("forget a key for ever"))
    for parser in (show, delete):
        parser.add_argument("name", metavar="NAME", nargs="?", default=DEFAULT_NAME, help=tr("its name (publisher)"))
    delete.add_argument("--yes", action="store_true", help=tr("you know that nothing can bring it back"))


def _new(context: Context, arguments: argparse.Namespace) -> int:
    if arguments.out:
        public, text = make_key(arguments.out)
        body, place = {"path": str(arguments.out)}, tr("at {path}", path=arguments.out)
    else:
        keys = bootstrap.publisher_keys(context.home)
        made = consent.kept(context, arguments, lambda *, in_file: keys.new(arguments.name, in_file=in_file))
        public, text = made.public, key_text(made.public)
        body, place = _described(made, in_file=keys.is_in_file(made)), _place(in_file=keys.is_in_file(made))
    context.terminal.show(
        body | {"key": text, "fingerprint": fingerprint(public)},
        [
            tr("The key is {place}. Keep it safe: only it can sign the projects you publish with it.", place=place),
            tr("Its fingerprint is {fingerprint}; a manifest names it as:", fingerprint=fingerprint(public)),
            text,
        ],
    )
    return 0


def _place(*, in_file: bool) -> str:
    return tr("in an unencrypted file in skep's folder") if in_file else tr("in the keyring")


def _described(key: StoredKey, *, in_file: bool) -> dict[str, Any]:
    return {
        "name": key.name,
        "key": key_text(key.public),
        "fingerprint": fingerprint(key.public),
        "kept": "file" if in_file else "keyring",
    }


def _list(context: Context, _arguments: argparse.Namespace) -> int:
    keys = bootstrap.publisher_keys(context.home)
    found = [(key, keys.is_in_file(key)) for key in keys.all()]
    rows = [(key.name, fingerprint(key.public), _place(in_file=in_file)) for key, in_file in found]
    context.terminal.show(
        {"keys": [_described(key, in_file=in_file) for key, in_file in found]},
        [table((tr("Key"), tr("Fingerprint"), tr("Kept")), rows)]
        if rows
        else [tr("No keys yet. skep key new makes one.")],
    )
    return 0


def _show(context: Context, arguments: argparse.Namespace) -> int:
    keys = bootstrap.publisher_keys(context.home)
    key = keys.find(arguments.name)
    in_file = keys.is_in_file(key)
    words = tr(
        "{name}, kept {place}. Its fingerprint is {fingerprint}.",
        name=key.name,
        place=_place(in_file=in_file),
        fingerprint=fingerprint(key.public),
    )
    context.terminal.show(_described(key, in_file=in_file), [words, key_text(key.public)])
    return 0


def _delete(context: Context, arguments: argparse.Namespace) -> int:
    keys = bootstrap.publisher_keys(context.home)
    key = keys.find(arguments.name)
    if not arguments.yes:
        raise BadInput(
            Text("key.without_key_nobody_can_ever", name=key.name),
            Text("key.if_what_you_want_skep", name=key.name),
        )
    keys.delete(key.name)
    context.terminal.show({"deleted": key.name}, [tr("Forgotten: {name}.", name=key.name)])
    return 0
