"""The verb `host`: everything a project needs on one small server, in the foreground until Ctrl-C."""

from __future__ import annotations

import argparse
import re
import threading
from pathlib import Path
from typing import Any, Final

from skep.adapters.storage import signing
from skep.cli import arguments as spelled
from skep.cli.interrupt import Interrupts
from skep.cli.parser import Context, Verbs
from skep.cli.share_link import show_link
from skep.cli.show.speech import tr
from skep.core.errors import BadInput
from skep.core.project.addresses import is_web_address
from skep.core.text import Problem, Text, from_data
from skep.host.server.address import seed_addresses
from skep.host.server.folder import HostAddress, HostFolder
from skep.host.server.hosting import Hosting, run

_WEB: Final = re.compile(r"(?:(\d{1,3}(?:\.\d{1,3}){3}):)?(\d{1,5})", re.ASCII)


def add(verbs: Verbs) -> None:
    parser = verbs.verb("host", _host, tr("run a project's seed peer, shard server and state keeper until Ctrl-C"))
    more = tr(
        "First run it with --address alone: what it prints goes into the manifest's peers, before the manifest is "
        "signed. Address and port are kept in the home, and given again only to change them."
    )
    parser.description = f"{parser.description} {more}"
    parser.add_argument("manifest", metavar="MANIFEST", nargs="?", help=tr("the signed manifest's path"))
    parser.add_argument("--address", action="store_true", help=tr("print what the manifest's peers must name, and end"))
    parser.add_argument("--port", metavar="P", type=spelled.port, help=tr("TCP port of the seed (31337)"))
    parser.add_argument(
        "--announce", metavar="HOST[:PORT]", help=tr("how others reach this server, where they see another")
    )
    parser.add_argument(
        "--data", metavar=tr("FOLDER"), type=Path, help=tr("serve this folder of shards, and the manifest")
    )
    parser.add_argument(
        "--web", metavar="[IP:]PORT", type=_web, default="8080", help=tr("where to serve it (127.0.0.1:8080)")
    )
    parser.add_argument("--url", metavar="URL", default="", help=tr("the manifest's public address, for the join link"))
    parser.add_argument(
        "--invitation", metavar=tr("FILE"), type=Path, help=tr("the seed's own, for a project of invited peers")
    )
    parser.add_argument(
        "--every", metavar="N", type=spelled.count, default=10, help=tr("epochs between checkpoints (10)")
    )
    parser.add_argument("--keep", metavar="K", type=spelled.count, default=5, help=tr("checkpoints that stay (5)"))


def _web(text: str) -> tuple[str, int]:
    found = _WEB.fullmatch(text)
    if not found:
        raise BadInput(Text("host.not_place_listen", text=text[:60]), Text("host.give_port_ipv4_address_port"))
    return found[1] or "127.0.0.1", spelled.port(found[2])


def _host(context: Context, arguments: argparse.Namespace) -> int:
    context.home.create()
    folder = HostFolder(context.home.root / "host")
    folder.create()
    if arguments.port == 0:
        raise BadInput(Text("host.seed_port_must_stay_same"), Text("host.give_port_from_1_65535"))
    address = folder.address(arguments.port, arguments.announce)
    if arguments.address:
        return _show_address(context, folder, address)
    if arguments.manifest is None:
        raise BadInput(Text("host.manifest_missing"), Text("host.give_path_signed_manifest_address"))
    if arguments.url and not is_web_address(arguments.url):
        raise BadInput(Text("host.not_web_address", url=arguments.url), Text("host.give_url_https_example_org"))
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
        terminal.problem(Problem(from_data(event["title"]), from_data(event["hint"])))
        return
    terminal.show(event, [line] if (line := _sentence(event)) else [])
    if event["event"] == "started":
        show_link(context, event["link"])
        terminal.note(tr("Ctrl-C ends it."))


def _sentence(event: dict[str, Any]) -> str:
    match event["event"]:
        case "started":
            sentence = tr("The seed listens at {addresses}.", addresses=tuple(event["addresses"]))
            return " ".join((sentence, tr("The data is at {web}.", web=event["web"]))) if event["web"] else sentence
        case "restored":
            return tr("Restored epoch {epoch} from {path}.", epoch=event["epoch"], path=event["path"])
        case "swarm":
            return tr("{count:number} peers · epoch {epoch}", count=event["peers"], epoch=event["epoch"])
        case "checkpoint":
            return tr("Checkpoint of epoch {epoch}: {path}", epoch=event["epoch"], path=event["path"])
        case _:
            return ""
