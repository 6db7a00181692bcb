"""The verb `practice`: a swarm of this computer's own, to try skep with. It holds neither lock nor control socket."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from pathlib import Path

from skep.cli import arguments as spelled
from skep.cli.interrupt import Interrupts
from skep.cli.parser import Context, Verbs
from skep.cli.share_link import show_link
from skep.cli.show.speech import tr


def add(verbs: Verbs) -> None:
    parser = verbs.verb("practice", _practice, tr("run a small swarm on this computer until Ctrl-C, to try skep with"))
    parser.add_argument(
        "--peers", metavar="N", type=spelled.count, default=1, help=tr("training peers beside the seed (1)")
    )
    parser.add_argument(
        "--port", metavar="P", type=spelled.port, default=0, help=tr("TCP port of the seed (a free one)")
    )
    # for `skep demo`, which holds the other end: however it ends, the practice swarm ends with it
    parser.add_argument("--until-eof", action="store_true", help=argparse.SUPPRESS)


def _practice(context: Context, arguments: argparse.Namespace) -> int:
    from skep.host.practice import swarm  # noqa: PLC0415 - it brings numpy, which no other verb needs

    stop = threading.Event()

    def announce(manifest: Path, link: str) -> None:
        context.terminal.show({"event": "practice", "manifest": str(manifest), "link": link}, [str(manifest)])
        context.terminal.note(tr("The practice swarm runs. Join it with: skep join {path}", path=manifest))
        show_link(context, link)
        context.terminal.note(tr("Ctrl-C ends it."))

    context.home.create()
    if arguments.until_eof:
        threading.Thread(target=_stop_at_eof, args=(stop,), name="parent", daemon=True).start()
    with Interrupts(stop.set):
        swarm.run(context.home.root, peers=arguments.peers, port=arguments.port, announce=announce, stop=stop)
    return 0


def _stop_at_eof(stop: threading.Event) -> None:
    # os.read, since closing a buffered stdin at exit would wait for this thread's lock
    while os.read(sys.stdin.fileno(), 4096):
        pass
    stop.set()
