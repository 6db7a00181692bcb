"""The seed peer's process, `python -m skep.host.server.seed`: a DHT node with a stable identity.

It does not train. With `--checkpoints` it also keeps the state of one run: both are one peer, so that a server needs
one open port. Failures of the keeper are reported as a problem, and the seed continues. It prints JSON lines, its
addresses first, and ends when its stdin closes, or when a part of it has ended or hangs: then it has to be started again.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from skep.core.errors import SkepError
from skep.core.text import Problem, Text
from skep.host.server.peer_process import problem_event
from skep.host.server.project_files import find_files
from skep.recipes.registry import parse_manifest
from skep.worker.process import processes

LOOK_SECONDS: Final = 2.0
UNKEPT_SECONDS: Final = 300.0
"""How long a seed goes on after an unexpected error of its keeper or helper, before it ends to be started again: an error
that always comes back must not keep newcomers from finding the swarm."""
EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - all interfaces, as the host chooses


def main() -> None:
    """Run the peer process. In every case its child processes are ended."""
    arguments = _arguments(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C and closes our stdin
    processes.tie_to_this_process()
    processes.raise_file_limit()
    processes.use_fork()
    try:
        serve(arguments)
    except Exception:  # noqa: BLE001 - stderr is the seed's log, and may be gone with the parent process
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        _end(1)


def _end(code: int) -> None:
    processes.kill_descendants()
    os._exit(code)


def serve(arguments: argparse.Namespace) -> None:
    """Run the seed, and the state keeper if requested, until stdin ends. Raises SkepError for a wrong invitation."""
    os.environ.setdefault("HIVEMIND_MEMORY_SHARING_STRATEGY", "file_descriptor")  # no torch_shm_manager
    # in a thread, since a state download may take minutes
    threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
    dht = start_dht(arguments)
    if arguments.checkpoints:
        try:
            _run_or_end(partial(_keep, arguments, dht), Text("keeper.unexpected"))
        except SkepError as error:
            tell(problem_event(error.title, error.hint))
    threading.Event().wait()


def _run_or_end(job: Callable[[], object], problem: Text) -> None:
    """Call `job`. After an error that is no SkepError, say the problem, and end the seed UNKEPT_SECONDS later."""
    try:
        job()
    except SkepError:
        raise
    except Exception:  # noqa: BLE001 - the log has the details
        with contextlib.suppress(OSError):
            traceback.print_exc()
            tell(problem_event(problem, Text("keeper.starts_afresh", seconds=UNKEPT_SECONDS)))
        time.sleep(UNKEPT_SECONDS)
        _end(1)


def _watch(parts: Iterable[Any]) -> None:
    """End the seed when one of its parts has ended or hangs."""
    from skep.worker.connection.watch import Watch  # noqa: PLC0415 - as below

    Watch(parts, _end_without).start()


def _end_without(lost: Problem) -> None:
    with contextlib.suppress(OSError):
        tell(problem_event(lost.title, Text("hosting.starts_again")))
        faulthandler.dump_traceback()
    _end(1)


def _end_with_stdin() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    _end(0)


def start_dht(arguments: argparse.Namespace) -> Any:
    """The running hivemind.DHT of a seed; prints its addresses on stdout. Raises SkepError for a wrong invitation."""
    import hivemind  # noqa: PLC0415 - after the arguments were checked: it takes seconds

    import skep.worker.connection.attendance  # noqa: F401, PLC0415 - before the DHT's process is forked, which runs it
    from skep.worker import self_test  # noqa: PLC0415 - as above
    from skep.worker.connection import futures, reachability, relays, versions  # noqa: PLC0415 - as above
    from skep.worker.connection.auth import guarded  # noqa: PLC0415 - as above
    from skep.worker.connection.network import put_sockets_in  # noqa: PLC0415 - as above
    from skep.worker.connection.watch import parts_of  # noqa: PLC0415 - as above

    self_test.run()
    put_sockets_in(arguments.run_folder)
    futures.install()
    membership = membership_of(arguments)

    def make(relaying: dict[str, Any]) -> Any:
        with guarded(membership) as guard:
            return hivemind.DHT(
                start=True,
                host_maddrs=[f"/ip4/{arguments.host}/tcp/{arguments.port}"],
                announce_maddrs=arguments.announce or None,
                identity_path=str(arguments.identity),
                startup_timeout=60.0,
                **relaying,
                **guard,
            )

    if arguments.announce or not ip_address(arguments.host).is_loopback:
        # what is announced may not be reachable from here
        here = f"/ip4/{_dialled(arguments.host)}/tcp/{arguments.port}" if arguments.announce else ""
        dht = relays.start_relaying(make, partial(relays.data_limit, address=here))
    else:
        dht = make({})  # on one computer all can be dialled, and a relay takes two starts on average
    _watch(parts_of(dht))
    if membership:
        membership.publish(dht)
    reachability.answer_others(dht)
    versions.answer_others(dht)
    tell({"addresses": [str(address) for address in dht.get_visible_maddrs()]})
    return dht


def _dialled(host: str) -> str:
    """Where this computer reaches what listens at `host`."""
    return "127.0.0.1" if host == EVERYWHERE else host


def membership_of(arguments: argparse.Namespace) -> Any:
    """The Membership of the seed's invitation, or None without one. Raises SkepError."""
    from skep.worker.connection.auth import Membership  # noqa: PLC0415 - as above
    from skep.worker.connection.revoked import RevokedPeers  # noqa: PLC0415 - as above

    if not arguments.invitation:
        return None
    manifest = parse_manifest(arguments.manifest.read_bytes())
    listed = RevokedPeers(manifest, arguments.revoked) if arguments.revoked else None
    return Membership(manifest, arguments.invitation.read_text(), arguments.identity, listed)


def _keep(arguments: argparse.Namespace, dht: Any) -> None:
    from skep.host.server.round_helper import RoundHelper  # noqa: PLC0415 - as above
    from skep.host.server.state_keeper import JUMP, StateKeeper  # noqa: PLC0415 - as above
    from skep.worker.swarm.state.checkpoints import CheckpointFolder  # noqa: PLC0415 - torch, after the DHT was forked

    text = arguments.manifest.read_text()
    manifest = parse_manifest(text.encode())
    keeper = StateKeeper(
        manifest,
        text,
        dht,
        CheckpointFolder(arguments.checkpoints, arguments.keep, JUMP * arguments.every),
        every=arguments.every,
        tell=tell,
        membership=membership_of(arguments),
        files=find_files(manifest.recipe, arguments.files),
    )
    _watch(keeper.parts())
    if arguments.help_rounds:
        helper = RoundHelper(manifest, dht, keeper.parameters, membership_of(arguments))
        _watch(helper.parts())
        helping = partial(_run_or_end, helper.run, Text("helper.unexpected"))
        threading.Thread(target=helping, name="helper", daemon=True).start()
    keeper.restore()
    tell({"event": "keeping"})
    while True:
        keeper.tend()
        time.sleep(LOOK_SECONDS)


def tell(line: dict[str, Any]) -> None:
    """Print one JSON line for the parent process."""
    print(json.dumps(line), flush=True)  # noqa: T201 - the protocol


def _arguments(given: Sequence[str]) -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--identity", type=Path, required=True)
    made.add_argument("--run-folder", type=Path, required=True)
    made.add_argument("--host", default="127.0.0.1")
    made.add_argument("--port", type=int, default=0)
    made.add_argument("--announce", action="append", default=[], help="a multiaddress, as others reach us")
    made.add_argument("--manifest", type=Path, help="the project's; --invitation and --checkpoints need it")
    made.add_argument("--invitation", type=Path, help="this peer's")
    made.add_argument("--revoked", type=Path, help="the list of revoked invitations, which may come later")
    made.add_argument("--checkpoints", type=Path, help="keep the run's state in this folder")
    made.add_argument("--every", type=int, default=10, help="epochs between checkpoints")
    made.add_argument("--keep", type=int, default=5, help="checkpoints that stay")
    made.add_argument("--help-rounds", action="store_true", help="average for clients; needs --checkpoints")
    made.add_argument("--files", type=Path, help="the folder of what the recipe needs beside samples")
    return made.parse_args(given)


if __name__ == "__main__":
    main()
