"""The verbs about a publisher's keys: `key new`, `key show`, `key list` and `key delete`; and which key signs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from skep import bootstrap
from skep.adapters.storage import signing
from skep.adapters.storage.paths import Home
from skep.adapters.storage.publisher_keys import DEFAULT_NAME, StoredKey
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import tr
from skep.cli.show.terminal import table
from skep.core.errors import BadInput, SecretsError
from skep.core.project.fields import key_text
from skep.core.project.manifest import fingerprint
from skep.core.text import Text

Kept_co = TypeVar("Kept_co", covariant=True)

_YES: Final = {"y", "yes", "j", "ja"}
"""In every language that the question is asked in."""


def add(verbs: Verbs) -> None:
    group = verbs.group("key", tr("make, list, show and delete a publisher's keys"))
    new = group.verb("new", _new, tr("make a key that signs your projects' manifests and invitations"))
    place = new.add_mutually_exclusive_group()
    place.add_argument(
        "--name", metavar="NAME", default=DEFAULT_NAME, help=tr("what to call it in the keyring (publisher)")
    )
    place.add_argument("--out", metavar=tr("FILE"), type=Path, help=tr("make a key file there instead, unencrypted"))
    add_consent(new)
    group.verb("list", _list, tr("list the keys kept here"))
    show = group.verb("show", _show, tr("show a key's public part"))
    delete = group.verb("delete", _delete, tr("delete a key"))
    for parser in (show, delete):
        parser.add_argument("name", metavar="NAME", nargs="?", default=DEFAULT_NAME, help=tr("its name (publisher)"))
    delete.add_argument("--yes", action="store_true", help=tr("confirm that it cannot be restored"))


def _new(context: Context, arguments: argparse.Namespace) -> None:
    if arguments.out:
        public = signing.make_key(arguments.out)
        body, place = {"path": str(arguments.out)}, tr("at {path}", path=arguments.out)
    else:
        keys = bootstrap.publisher_keys(context.home)
        made = kept(context, arguments, lambda *, in_file: keys.new(arguments.name, in_file=in_file))
        public, in_file = made.public, keys.is_in_file(made)
        body, place = _described(made, in_file=in_file), _place(in_file=in_file)
    text = key_text(public)
    context.terminal.show(
        body | {"key": text, "fingerprint": fingerprint(public)},
        [
            tr("The key is {place}. Keep it safe: only it can sign the projects you publish with it.", place=place),
            tr("Its fingerprint is {fingerprint}; a manifest names it as:", fingerprint=fingerprint(public)),
            text,
        ],
    )


def _place(*, in_file: bool) -> str:
    return tr("in an unencrypted file in skep's folder") if in_file else tr("in the keyring")


def _described(key: StoredKey, *, in_file: bool) -> dict[str, Any]:
    return {
        "name": key.name,
        "key": key_text(key.public),
        "fingerprint": fingerprint(key.public),
        "kept": "file" if in_file else "keyring",
    }


def _list(context: Context, _arguments: argparse.Namespace) -> None:
    keys = bootstrap.publisher_keys(context.home)
    found = [(key, keys.is_in_file(key)) for key in keys.all()]
    rows = [(key.name, fingerprint(key.public), _place(in_file=in_file)) for key, in_file in found]
    headings = (tr("Key"), tr("Fingerprint"), tr("Kept"))
    lines = [table(headings, rows)] if rows else [tr("No keys yet. skep key new makes one.")]
    context.terminal.show({"keys": [_described(key, in_file=in_file) for key, in_file in found]}, lines)


def _show(context: Context, arguments: argparse.Namespace) -> None:
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


def _delete(context: Context, arguments: argparse.Namespace) -> None:
    keys = bootstrap.publisher_keys(context.home)
    key = keys.find(arguments.name)
    if not arguments.yes:
        name = key.name
        raise BadInput(Text("key.without_key_nobody_can_ever", name=name), Text("key.if_what_you_want_skep", name=name))
    keys.delete(key.name)
    context.terminal.show({"deleted": key.name}, [tr("Deleted: {name}.", name=key.name)])


def private_key(home: Home, chosen: str | None, public: bytes) -> Ed25519PrivateKey:
    """The private key called `chosen`, or in that file; where none is chosen, the one that belongs to `public`.

    Raises BadInput, SecretsError.
    """
    keys = bootstrap.publisher_keys(home)
    known = {key.name: key for key in keys.all()}
    if chosen is not None:
        return keys.private(known[chosen]) if chosen in known else signing.load_private(Path(chosen))
    fitting = [key for key in known.values() if key.public == public]
    if fitting:
        return keys.private(fitting[0])
    earlier = home.keys_folder / "publisher.key"  # where skep kept a key before it used the keyring
    return signing.load_private(earlier) if earlier.exists() else keys.private(keys.find(DEFAULT_NAME))


# --- consent to store a secret unencrypted: by an option, or by a yes in the terminal; never by default


class Keep(Protocol[Kept_co]):
    def __call__(self, *, in_file: bool) -> Kept_co:
        """Keeps the secret. Raises SecretsError when the keyring does not take it."""


def add_consent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--unencrypted-file",
        action="store_true",
        help=tr("do without a keyring: keep it in skep's folder, in a file of mode 0600 that is not encrypted"),
    )


def kept(
    context: Context, arguments: argparse.Namespace, keep: Keep[Kept_co], ask: Callable[[], str] = input
) -> Kept_co:
    """What `keep` returns: into the keyring, or into a file with consent. Raises SecretsError."""
    if arguments.unencrypted_file:
        return keep(in_file=True)
    try:
        return keep(in_file=False)
    except SecretsError as error:
        if context.terminal.json or not sys.stdin.isatty():
            raise
        context.terminal.sentence(error.problem)
        question = tr("Keep it in an unencrypted file that only you can read instead? [y/N]")
        context.terminal.error.print(f"{question} ", end="")
        if not _is_yes(ask):
            raise SecretsError(Text("consent.nothing_was_kept"), error.hint) from None
        return keep(in_file=True)


def _is_yes(ask: Callable[[], str]) -> bool:
    try:
        return ask().strip().casefold() in _YES
    except EOFError:
        return False
