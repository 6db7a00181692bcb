"""Entry of the host's peer process, `python -m skep.host.server.keeper`: the seed peer, and the keeper of one run's state.

Both are one peer, so that a server needs one open port. A keeper that cannot work is told as a problem, and the seed
goes on. It ends when its stdin closes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, Final

from skep.core.errors import SkepError
from skep.core.text import Text, as_data
from skep.host.recipe_files import find_files
from skep.host.server.seed import live, membership_of, parser, start_dht, tell
from skep.recipes.registry import parse_manifest
from skep.worker.process import processes

LOOK_SECONDS: Final = 2.0
UNEXPECTED: Final = Text("keeper.unexpected")


def main() -> None:
    arguments = _arguments()
    live(lambda: serve(arguments))


def serve(arguments: argparse.Namespace) -> None:
    """Seed and keep until stdin ends, which another thread waits for: a state download may take minutes."""
    os.environ.setdefault("HIVEMIND_MEMORY_SHARING_STRATEGY", "file_descriptor")  # no torch_shm_manager
    threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
    dht = start_dht(arguments)
    try:
        _keep(arguments, dht)
    except SkepError as error:
        tell({"event": "problem", "title": as_data(error.title), "hint": as_data(error.hint)})
    except Exception:  # noqa: BLE001 - without a seed the swarm would lose its door; the log has the details
        with contextlib.suppress(OSError):
            traceback.print_exc()
        tell({"event": "problem", "title": as_data(UNEXPECTED), "hint": as_data(Text("keeper.its_log"))})
    threading.Event().wait()


def _keep(arguments: argparse.Namespace, dht: Any) -> None:
    from skep.host.server.checkpoints import CheckpointFolder  # noqa: PLC0415 - torch, after the DHT was forked
    from skep.host.server.state_keeper import StateKeeper  # noqa: PLC0415 - as above

    text = arguments.manifest.read_text()
    folder = CheckpointFolder(arguments.checkpoints, arguments.keep)
    manifest = parse_manifest(text.encode())
    keeper = StateKeeper(
        manifest,
        text,
        dht,
        folder,
        every=arguments.every,
        tell=tell,
        membership=membership_of(arguments),
        files=find_files(manifest.recipe, arguments.files),
    )
    keeper.restore()
    tell({"event": "keeping"})
    while True:
        keeper.tend()
        time.sleep(LOOK_SECONDS)


def _end_with_stdin() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    processes.kill_descendants()
    os._exit(0)


def _arguments() -> argparse.Namespace:
    made = parser(__doc__, of_a_project=True)
    made.add_argument("--files", type=Path, help="the folder of what the recipe needs beside samples")
    made.add_argument("--checkpoints", type=Path, required=True)
    made.add_argument("--every", type=int, required=True)
    made.add_argument("--keep", type=int, required=True)
    return made.parse_args()


if __name__ == "__main__":
    main()
