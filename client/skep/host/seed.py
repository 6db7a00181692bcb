"""A seed peer: a DHT node with a stable identity that newcomers ask for the others. It trains nothing.

Run as `python -m skep.host.seed`; prints one JSON line with its addresses, and ends when its stdin closes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import signal
import sys
import traceback
from pathlib import Path

from skep.core.manifest import parse
from skep.worker import processes


def main() -> None:
    """Serve until stdin ends. Whatever happens, no child of it is left behind."""
    arguments = _arguments()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us; we see our stdin close
    processes.keep_family_together()
    multiprocessing.set_start_method("fork", force=True)  # hivemind's processes cannot be pickled
    code = 1
    try:
        serve(arguments)
        code = 0
    except Exception:  # noqa: BLE001 - stderr is the seed's log, and may be gone with whoever started us
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        processes.end_family()
        os._exit(code)


def serve(arguments: argparse.Namespace) -> None:
    """Start the DHT node, tell its addresses, and return when stdin ends. Raises SkepError for a wrong invitation."""
    import hivemind  # noqa: PLC0415 - after the arguments were checked: it takes seconds
    from hivemind.p2p import P2P  # noqa: PLC0415

    from skep.worker.membership import Membership, guarded  # noqa: PLC0415

    P2P._UNIX_SOCKET_PREFIX = f"/unix{arguments.run_folder / 'h-'}"  # noqa: SLF001 - hivemind has no other way
    membership = None
    if arguments.invitation:
        manifest = parse(arguments.manifest.read_bytes())
        membership = Membership(manifest, arguments.invitation.read_text(), arguments.identity)
    with guarded(membership) as guard:
        dht = hivemind.DHT(
            start=True,
            host_maddrs=[f"/ip4/{arguments.host}/tcp/{arguments.port}"],
            identity_path=str(arguments.identity),
            startup_timeout=60.0,
            **guard,
        )
    if membership:
        membership.publish(dht)
    print(json.dumps({"addresses": [str(address) for address in dht.get_visible_maddrs()]}), flush=True)  # noqa: T201 - the protocol
    sys.stdin.read()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--identity", type=Path, required=True)
    parser.add_argument("--run-folder", type=Path, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--manifest", type=Path, help="of the project, when it is for invited peers")
    parser.add_argument("--invitation", type=Path, help="this peer's, of the role seed; needs --manifest")
    arguments = parser.parse_args()
    if arguments.invitation and not arguments.manifest:
        parser.error("--invitation needs --manifest")
    return arguments


if __name__ == "__main__":
    main()
