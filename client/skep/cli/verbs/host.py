"""The verbs that run a swarm in the foreground until Ctrl-C.

`practice` runs a swarm on this computer alone, to try skep, and holds neither lock nor control socket; `host` runs the
server processes of a project.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import threading
from pathlib import Path
from typing import Any, Final

from skep.adapters.storage import signing
from skep.cli import arguments as spelled
from skep.cli.interrupt import Interrupts
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import tr
from skep.cli.verbs.packs import got
from skep.core.errors import BadInput
from skep.core.project.addresses import is_web_address
from skep.core.text import Problem, Text, from_data
from skep.host.server.folder import HostFolder, seed_addresses
from skep.host.server.hosting import Hosting, run

_WEB: Final = re.compile(r"(?:(\d{1,3}(?:\.\d{1,3}){3}):)?(\d{1,5})", re.ASCII)


def add(verbs: Verbs) -> None:
    option = verbs.verb(
        "practice", _practice, tr("run a small swarm on this computer until Ctrl-C, to try skep with")
    ).add_argument
    option("--peers", metavar="N", type=spelled.count, default=1, help=tr("training peers beside the seed (1)"))
    option("--port", metavar="P", type=spelled.port, default=0, help=tr("TCP port of the seed (a free one)"))
    # for `skep demo`, which holds the other end: the practice swarm ends when that process ends
    option("--until-eof", action="store_true", help=argparse.SUPPRESS)
    words = tr("run a project's seed peer, shard server and state keeper until Ctrl-C")
    more = tr(
        "First run it with --address alone: what it prints goes into the manifest's peers, before the manifest is "
        "signed. Address and port are kept in the home, and given again only to change them."
    )
    option = verbs.verb("host", _host, words, more).add_argument
    option("manifest", metavar="MANIFEST", nargs="?", help=tr("the signed manifest's path"))
    option("--address", action="store_true", help=tr("print what the manifest's peers must name, and end"))
    option("--port", metavar="P", type=spelled.port, help=tr("TCP port of the seed (31337)"))
    option("--announce", metavar="HOST[:PORT]", help=tr("how others reach this server, where they see another"))
    option("--data", metavar=tr("FOLDER"), type=Path, help=tr("serve this folder of shards, and the manifest"))
    option("--web", metavar="[IP:]PORT", type=_web, default="8080", help=tr("where to serve it (127.0.0.1:8080)"))
    option("--url", metavar="URL", default="", help=tr("the manifest's public address, for the join link"))
    option("--invitation", metavar=tr("FILE"), type=Path, help=tr("the seed's own, for a project of invited peers"))
    option("--help-rounds", action="store_true", help=tr("average for computers of which none can be reached"))
    option("--every", metavar="N", type=spelled.count, default=10, help=tr("epochs between checkpoints (10)"))
    option("--keep", metavar="K", type=spelled.count, default=5, help=tr("checkpoints that stay (5)"))


def _web(text: str) -> tuple[str, int]:
    found = _WEB.fullmatch(text)
    if not found:
        raise BadInput(Text("host.not_place_listen", text=text[:60]), Text("host.give_port_ipv4_address_port"))
    return found[1] or "127.0.0.1", spelled.port(found[2])


def _host(context: Context, arguments: argparse.Namespace) -> None:
    context.home.create()
    folder = HostFolder(context.home.host_folder)
    folder.create()
    if arguments.port == 0:
        raise BadInput(Text("host.seed_port_must_stay_same"), Text("host.give_port_from_1_65535"))
    address = folder.address(arguments.port, arguments.announce)
    if arguments.address:
        peer_id = folder.identity.peer_id
        addresses = seed_addresses(address, peer_id)
        context.terminal.show({"peer_id": peer_id, "addresses": addresses}, addresses)
        return
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
        help_rounds=arguments.help_rounds,
        pack=got(context),
    )
    with Interrupts() as interrupts:
        run(asked, folder, lambda event: _show(context, event), interrupts.wait)


def _show(context: Context, event: dict[str, Any]) -> None:
    terminal = context.terminal
    if event["event"] == "problem":
        terminal.problem(Problem(from_data(event["title"]), from_data(event["hint"])))
        return
    terminal.show(event, [line] if (line := _sentence(event)) else [])
    if event["event"] == "started":
        _show_link(context, event["link"])
        terminal.note(tr("Ctrl-C ends it."))


def _sentence(event: dict[str, Any]) -> str:
    match event["event"]:
        case "started":
            sentence = tr("The seed listens at {addresses}.", addresses=tuple(event["addresses"]))
            return " ".join((sentence, tr("The data is at {web}.", web=event["web"]))) if event["web"] else sentence
        case "restored":
            return tr("Restored epoch {epoch} from {path}.", epoch=event["epoch"], path=event["path"])
        case "finished":
            words = tr(
                "The run is finished after {epoch:number} epochs. Its last state: {path}",
                epoch=event["epoch"],
                path=event["path"],
            )
            return " ".join((words, tr("skep project export writes it as a model.")))
        case "swarm":
            return tr("{count:number} peers · epoch {epoch}", count=event["peers"], epoch=event["epoch"])
        case "checkpoint":
            return tr("Checkpoint of epoch {epoch}: {path}", epoch=event["epoch"], path=event["path"])
        case _:
            return ""


# --- practice


def _practice(context: Context, arguments: argparse.Namespace) -> None:
    from skep.host.practice import swarm  # noqa: PLC0415 - it brings numpy, which no other verb needs

    def announce(manifest: Path, link: str) -> None:
        context.terminal.show({"event": "practice", "manifest": str(manifest), "link": link}, [str(manifest)])
        context.terminal.note(tr("The practice swarm runs. Join it with: skep join {path}", path=manifest))
        _show_link(context, link)
        context.terminal.note(tr("Ctrl-C ends it."))

    context.home.create()
    with Interrupts() as interrupts:
        if arguments.until_eof:
            threading.Thread(target=_ask_at_eof, args=(interrupts,), name="parent", daemon=True).start()
        swarm.run(
            context.home.practice_folder,
            peers=arguments.peers,
            port=arguments.port,
            announce=announce,
            wait=interrupts.wait,
            pack=got(context),
        )


def _ask_at_eof(interrupts: Interrupts) -> None:
    # os.read, since closing a buffered stdin at exit would wait for this thread's lock
    while os.read(sys.stdin.fileno(), 4096):
        pass
    interrupts.ask()


# --- the join link


def _show_link(context: Context, link: str) -> None:
    """A note with the link and its QR code; nothing for programs, which have the link in their JSON."""
    if not link or context.terminal.json:
        return
    context.terminal.note(tr("Others join with: skep join '{link}'", link=link))
    if context.terminal.error.is_terminal:
        # no-wrap printing of half blocks; a reader that cannot draw them still has the line above
        context.terminal.error.print(qr_code(link), soft_wrap=True, markup=False)


def qr_code(text: str) -> str:
    """`text` as a QR code of half blocks, dark on light, for a terminal."""
    import segno  # noqa: PLC0415 - only when one is printed

    drawn = io.StringIO()
    segno.make(text, error="l", micro=False).terminal(drawn, compact=True)
    return drawn.getvalue()
