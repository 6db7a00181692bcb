"""The verb `host`: everything a project needs on one small server, in the foreground until Ctrl-C."""

from __future__ import annotations

import argparse
import re
import threading
from pathlib import Path
from typing import Any, Final

from skep.adapters import signing
from skep.cli import arguments as spelled
from skep.cli import words
from skep.cli.interrupt import Interrupts
from skep.cli.parser import Context, Verbs
from skep.cli.share_link import show_link
from skep.core.addresses import is_web_address
from skep.core.errors import BadInput
from skep.core.model import Problem
from skep.host.host_address import seed_addresses
from skep.host.host_folder import HostAddress, HostFolder
from skep.host.hosting import Hosting, run

_MORE: Final = (
    "First run it with --address alone: what it prints goes into the manifest's peers, before the manifest is signed. "
    "Address and port are kept in the home, and given again only to change them."
)
_WEB: Final = re.compile(r"(?:(\d{1,3}(?:\.\d{1,3}){3}):)?(\d{1,5})", re.ASCII)


def add(verbs: Verbs) -> None:
    parser = verbs.verb("host", _host, "run a project's seed peer, shard server and state keeper until Ctrl-C")
    parser.description = f"{parser.description} {_MORE}"
    parser.add_argument("manifest", metavar="MANIFEST", nargs="?", help="the signed manifest's path")
    parser.add_argument("--address", action="store_true", help="print what the manifest's peers must name, and end")
    parser.add_argument("--port", metavar="P", type=spelled.port, help="TCP port of the seed (31337)")
    parser.add_argument(
        "--announce", metavar="HOST[:PORT]", help="how others reach this server, where they see another"
    )
    parser.add_argument("--data", metavar="FOLDER", type=Path, help="serve this folder of shards, and the manifest")
    parser.add_argument(
        "--web", metavar="[IP:]PORT", type=_web, default="8080", help="where to serve it (127.0.0.1:8080)"
    )
    parser.add_argument("--url", metavar="URL", default="", help="the manifest's public address, for the join link")
    parser.add_argument(
        "--invitation", metavar="FILE", type=Path, help="the seed's own, for a project of invited peers"
    )
    parser.add_argument("--every", metavar="N", type=spelled.count, default=10, help="epochs between checkpoints (10)")
    parser.add_argument("--keep", metavar="K", type=spelled.count, default=5, help="checkpoints that stay (5)")


def _web(text: str) -> tuple[str, int]:
    found = _WEB.fullmatch(text)
    if not found:
        raise BadInput(
            f"“{text[:60]}” is not a place to listen.", "Give a port, or an IPv4 address and port: 0.0.0.0:8080."
        )
    return found[1] or "127.0.0.1", spelled.port(found[2])


def _host(context: Context, arguments: argparse.Namespace) -> int:
    context.home.create()
    folder = HostFolder(context.home.root / "host")
    folder.create()
    if arguments.port == 0:
        raise BadInput(
            "A seed's port must stay the same, so it cannot be any free one.", "Give --port from 1 to 65535."
        )
    address = folder.address(arguments.port, arguments.announce)
    if arguments.address:
        return _show_address(context, folder, address)
    if arguments.manifest is None:
        raise BadInput("MANIFEST is missing.", "Give the path of a signed manifest, or --address.")
    if arguments.url and not is_web_address(arguments.url):
        raise BadInput(f"“{arguments.url}” is not a web address.", "Give --url as https://example.org/project.json.")
    asked = Hosting(
        manifest=signing.given_path(arguments.manifest),
        address=address,
        data=arguments.data,
        web=arguments.web,
        url=arguments.url,
        every=arguments.every,
        keep=arguments.keep,
        invitation=arguments.invitation,
    )
    stop = threading.Event()
    with Interrupts(stop.set):
        run(asked, folder, lambda event: _show(context, event), stop)
    return 0


def _show_address(context: Context, folder: HostFolder, address: HostAddress) -> int:
    peer_id = folder.identity.peer_id
    addresses = seed_addresses(address, peer_id)
    context.terminal.show({"peer_id": peer_id, "addresses": addresses}, addresses)
    return 0


def _show(context: Context, event: dict[str, Any]) -> None:
    terminal = context.terminal
    if event["event"] == "problem":
        terminal.problem(Problem(event["title"], event["hint"]))
        return
    terminal.show(event, [line] if (line := _sentence(event)) else [])
    if event["event"] == "started":
        show_link(context, event["link"])
        terminal.note("Ctrl-C ends it.")


def _sentence(event: dict[str, Any]) -> str:
    match event["event"]:
        case "started":
            web = f" The data is at {event['web']}." if event["web"] else ""
            return f"The seed listens at {', '.join(event['addresses'])}.{web}"
        case "restored":
            return f"Restored epoch {event['epoch']} from {event['path']}."
        case "swarm":
            return f"{words.plural(event['peers'], 'peer')} · epoch {event['epoch']}"
        case "checkpoint":
            return f"Checkpoint of epoch {event['epoch']}: {event['path']}"
        case _:
            return ""
