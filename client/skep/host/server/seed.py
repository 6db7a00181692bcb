"""A seed peer: a DHT node with a stable identity that newcomers ask for the others. It trains nothing.

Run as `python -m skep.host.server.seed`; prints one JSON line with its addresses, and ends when its stdin closes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skep.recipes.registry import parse_manifest
from skep.worker.process import processes


def main() -> None:
    arguments = parser(__doc__).parse_args()
    live(lambda: serve(arguments))


def live(serving: Callable[[], None]) -> None:
    """A peer process from here to its end. Whatever happens, no child of it is left behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us; we see our stdin close
    processes.tie_to_this_process()
    processes.raise_file_limit()
    processes.use_fork()
    code = 1
    try:
        serving()
        code = 0
    except Exception:  # noqa: BLE001 - stderr is the seed's log, and may be gone with whoever started us
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        processes.kill_descendants()
        os._exit(code)


def serve(arguments: argparse.Namespace) -> None:
    """Start the DHT node, tell its addresses, and return when stdin ends. Raises SkepError for a wrong invitation."""
    start_dht(arguments)
    sys.stdin.read()


def start_dht(arguments: argparse.Namespace) -> Any:
    """The running hivemind.DHT of a seed; its addresses are told on stdout. Raises SkepError for a wrong invitation."""
    import hivemind  # noqa: PLC0415 - after the arguments were checked: it takes seconds
    from hivemind.p2p import P2P  # noqa: PLC0415

    from skep.worker.swarm import reachability  # noqa: PLC0415 - before the DHT's process is forked, which runs it
    from skep.worker.swarm.dht_auth import guarded  # noqa: PLC0415

    P2P._UNIX_SOCKET_PREFIX = f"/unix{arguments.run_folder / 'h-'}"  # noqa: SLF001 - hivemind has no other way
    membership = membership_of(arguments)
    with guarded(membership) as guard:
        dht = hivemind.DHT(
            start=True,
            host_maddrs=[f"/ip4/{arguments.host}/tcp/{arguments.port}"],
            announce_maddrs=arguments.announce or None,
            identity_path=str(arguments.identity),
            startup_timeout=60.0,
            **guard,
        )
    if membership:
        membership.publish(dht)
    reachability.answer_others(dht)
    tell({"addresses": [str(address) for address in dht.get_visible_maddrs()]})
    return dht


def membership_of(arguments: argparse.Namespace) -> Any:
    """The Membership that the seed's invitation gives, or None without one. Raises SkepError."""
    from skep.worker.swarm.dht_auth import Membership  # noqa: PLC0415 - as above

    if not arguments.invitation:
        return None
    manifest = parse_manifest(arguments.manifest.read_bytes())
    return Membership(manifest, arguments.invitation.read_text(), arguments.identity)


def tell(line: dict[str, Any]) -> None:
    """One JSON line to whoever started us."""
    print(json.dumps(line), flush=True)  # noqa: T201 - the protocol


def parser(description: str | None, *, of_a_project: bool = False) -> argparse.ArgumentParser:
    """The arguments every seed takes; one that is `of_a_project` must be told its manifest."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--identity", type=Path, required=True)
    made.add_argument("--run-folder", type=Path, required=True)
    made.add_argument("--host", default="127.0.0.1")
    made.add_argument("--port", type=int, default=0)
    made.add_argument("--announce", action="append", default=[], help="a multiaddress, as others reach us")
    made.add_argument("--manifest", type=Path, required=of_a_project, help="the project's")
    made.add_argument("--invitation", type=Path, help="this peer's, of the role seed; needs --manifest")
    return made


if __name__ == "__main__":
    main()
