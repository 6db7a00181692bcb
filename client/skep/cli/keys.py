"""The verbs about a publisher's keys: `key new`, `key show`, `key list` and `key delete`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from skep import bootstrap
from skep.adapters.publisher_keys import DEFAULT_NAME, StoredKey
from skep.adapters.signing import key_text
from skep.cli import consent
from skep.cli.parser import Context, Verbs
from skep.cli.terminal import table
from skep.core.errors import BadInput
from skep.core.manifest import fingerprint

_NONE = "No keys yet. skep key new makes one."


def add(verbs: Verbs) -> None:
    group = verbs.group("key", "make and look after a publisher's keys")
    new = group.verb("new", _new, "make a key that signs your projects' manifests and invitations")
    place = new.add_mutually_exclusive_group()
    place.add_argument("--name", default=DEFAULT_NAME, help="what to call it in the keyring (publisher)")
    place.add_argument("--out", metavar="FILE", type=Path, help="make a key file there instead, unencrypted")
    consent.add_option(new)
    group.verb("list", _list, "list the keys kept here")
    for verb, act, words in (("show", _show, "show a key's public part"), ("delete", _delete, "forget a key for ever")):
        parser = group.verb(verb, act, words)
        parser.add_argument("name", metavar="NAME", nargs="?", default=DEFAULT_NAME, help="its name (publisher)")
        if verb == "delete":
            parser.add_argument("--yes", action="store_true", help="you know that nothing can bring it back")


def _new(context: Context, arguments: argparse.Namespace) -> int:
    if arguments.out:
        public, text = bootstrap.make_key(arguments.out)
        body, place = {"path": str(arguments.out)}, f"at {arguments.out}"
    else:
        keys = bootstrap.publisher_keys(context.home)
        made = consent.kept(context, arguments, lambda *, in_file: keys.new(arguments.name, in_file=in_file))
        public, text = made.public, key_text(made.public)
        body, place = _described(made, in_file=keys.is_in_file(made)), _place(in_file=keys.is_in_file(made))
    context.terminal.show(
        body | {"key": text, "fingerprint": fingerprint(public)},
        [
            f"The key is {place}. Keep it safe: only it can sign the projects you publish with it.",
            f"Its fingerprint is {fingerprint(public)}; a manifest names it as:",
            text,
        ],
    )
    return 0


def _place(*, in_file: bool) -> str:
    return "in an unencrypted file in skep's folder" if in_file else "in the keyring"


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
        [table(("Key", "Fingerprint", "Kept"), rows)] if rows else [_NONE],
    )
    return 0


def _show(context: Context, arguments: argparse.Namespace) -> int:
    keys = bootstrap.publisher_keys(context.home)
    key = keys.find(arguments.name)
    in_file = keys.is_in_file(key)
    words = f"{key.name}, kept {_place(in_file=in_file)}. Its fingerprint is {fingerprint(key.public)}."
    context.terminal.show(_described(key, in_file=in_file), [words, key_text(key.public)])
    return 0


def _delete(context: Context, arguments: argparse.Namespace) -> int:
    keys = bootstrap.publisher_keys(context.home)
    key = keys.find(arguments.name)
    if not arguments.yes:
        raise BadInput(
            f"Without the key {key.name} nobody can ever sign for its projects again.",
            f"If that is what you want: skep key delete {key.name} --yes.",
        )
    keys.delete(key.name)
    context.terminal.show({"deleted": key.name}, [f"Forgotten: {key.name}."])
    return 0
