"""The process that tries a compute pack on a device, `python -m skep.worker.trial DEVICE`, DEVICE as in torch.

It does what a worker does first: it forks a node of the DHT and an averager, on loopback, and then computes forward,
backward and a step of an optimizer. It prints one JSON line, {"failed": …}, which holds the reason as the data of a Text,
or nothing if the pack works.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

from skep.core.plain_text import first_line
from skep.core.text import NOTHING, Text, packed
from skep.worker.process import processes

FORK_SECONDS: Final = 60.0
_WIDTH: Final = 64


def main() -> None:
    """Try the pack, say the result on stdout, and end all processes that were started; also when stdin ends before."""
    processes.tie_to_this_process()
    processes.use_fork()
    threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
    device = sys.argv[1] if sys.argv[1:] else "cpu"
    said = os.dup(1)
    os.dup2(2, 1)  # what libraries print goes to stderr
    why = NOTHING
    try:
        attempt(device)
    except Exception as error:  # noqa: BLE001 - whatever a pack lacks is what is looked for
        traceback.print_exc()
        why = reason(error)
    os.write(said, json.dumps({"failed": packed(why)}).encode() + b"\n")
    _end(1 if why else 0)


def _end(code: int) -> NoReturn:
    processes.kill_descendants()
    os._exit(code)


def _end_with_stdin() -> None:
    # it is that of the program which waits for the result, and which may have been killed
    while os.read(sys.stdin.fileno(), 4096):
        pass
    _end(1)


def attempt(device: str) -> None:
    """Raises whatever does not work."""
    with tempfile.TemporaryDirectory() as folder, _forked(Path(folder)) as averager:
        # the device is touched only after the last fork, as in a worker
        _step(device)
        if not averager.is_alive():
            raise RuntimeError("the averager's process has ended")


def reason(error: Exception) -> Text:
    """What an error of torch says, in words where they are known."""
    line = first_line(error)
    if "no NVIDIA driver" in line:
        return Text("packs.no_nvidia_driver")
    if "driver on your system is too old" in line or "driver version is insufficient" in line:
        return Text("packs.driver_refused")
    if "no kernel image" in line:
        return Text("packs.no_kernels")
    if isinstance(error, ImportError | OSError):
        return Text("packs.part_missing", reason=line)
    return Text("packs.trial_failed", reason=line)


@contextlib.contextmanager
def _forked(folder: Path) -> Iterator[Any]:
    """A hivemind averager in a process of its own."""
    import hivemind  # noqa: PLC0415 - seconds, and after the start method is set
    import torch  # noqa: PLC0415 - as above

    from skep.worker.connection import network  # noqa: PLC0415 - as above

    network.put_sockets_in(folder)
    dht = hivemind.DHT(start=True, host_maddrs=["/ip4/127.0.0.1/tcp/0"], startup_timeout=FORK_SECONDS)
    try:
        averager = hivemind.averaging.DecentralizedAverager(
            [torch.zeros(_WIDTH)], dht, prefix="trial", start=True, min_group_size=2, target_group_size=2
        )
        try:
            yield averager
        finally:
            averager.shutdown()
    finally:
        dht.shutdown()


def _step(device: str) -> None:
    """Forward, backward and a step of an optimizer. Raises if the parameters are not finite or do not move."""
    import torch  # noqa: PLC0415 - as above

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.GELU(), torch.nn.Linear(_WIDTH, 1)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    loss = model(torch.randn(8, _WIDTH, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    for old, new in zip(before, model.parameters(), strict=True):
        if not torch.isfinite(new).all() or torch.equal(old, new):
            raise RuntimeError("a step of the optimizer gave wrong numbers")


if __name__ == "__main__":
    main()
