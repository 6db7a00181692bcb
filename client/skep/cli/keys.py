"""The verb `key new`: a publisher's key, for signing manifests."""

from __future__ import annotations

import argparse
from pathlib import Path

from skep import bootstrap
from skep.cli.parser import Context, Verbs
from skep.core.manifest import fingerprint


def add(verbs: Verbs) -> None:
    group = verbs.group("key", "make a publisher's key")
    new = group.verb("new", _new, "make a key that signs your projects' manifests")
    new.add_argument("--out", metavar="FILE", type=Path, help="where the private key goes (the home's keys folder)")


def _new(context: Context, arguments: argparse.Namespace) -> int:
    path = arguments.out or bootstrap.publisher_key(context.home)
    public, text = bootstrap.make_key(path)
    context.terminal.show(
        {"path": str(path), "key": text, "fingerprint": fingerprint(public)},
        [
            f"The key is at {path}. Keep it safe: only it can sign the projects you publish with it.",
            f"Its fingerprint is {fingerprint(public)}; a manifest names it as:",
            text,
        ],
    )
    return 0
