"""Trying a laid pack on a device in a process of its own, `skep.worker.trial`, and remembering the result.

The result holds for the card and driver that it was found with: another driver needs another trial.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Final

import msgspec

from skep.adapters.process.helper import helper
from skep.adapters.process.programs import module_command
from skep.adapters.storage.files import atomic_write
from skep.core.device import Device
from skep.core.text import NOTHING, Text, packed, unpacked

TRIAL_SECONDS: Final = 300.0
"""How long a trial may take: importing torch from a slow disk for the first time takes minutes."""
_END_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 0.1

log = logging.getLogger(__name__)


def try_out(
    folder: Path, device: Device, check: Callable[[], None] = lambda: None, within: float = TRIAL_SECONDS
) -> Text:
    """The reason why the pack in `folder` does not work on the device, "" if it does.

    `check` is called several times a second; an exception from it ends the trial. Raises StorageError.
    """
    command = (*module_command("skep.worker.trial", folder), device.choice)
    try:
        with helper(command, log, _END_SECONDS) as (_, _, stdout, _):
            said: list[bytes] = []
            reading = threading.Thread(target=lambda: said.append(_line(stdout)), name="trial", daemon=True)
            reading.start()
            deadline = time.monotonic() + within
            while reading.is_alive() and time.monotonic() < deadline:
                reading.join(_STOP_SECONDS)
                check()
            return Text("packs.trial_too_long", seconds=within) if reading.is_alive() else _result(said[0])
    except OSError as error:
        return Text("packs.trial_not_started", reason=str(error.strerror or error))


def _line(stdout: IO[bytes]) -> bytes:
    try:
        return stdout.readline()
    except (OSError, ValueError):
        return b""  # closed, since the process was ended


def _result(line: bytes) -> Text:
    try:
        return unpacked(json.loads(line)["failed"])
    except (ValueError, KeyError, TypeError):
        return Text("packs.trial_ended")


class _Trial(msgspec.Struct, frozen=True):
    device: str
    failed: str = ""


LASTING: Final = frozenset({"packs.no_nvidia_driver", "packs.driver_refused", "packs.no_kernels", "packs.part_missing"})
"""Reasons that hold until the driver or the card changes. Others may be over: memory that was full, a slow disk."""


class Trials:
    """The results, in a small file; one that cannot be read only causes another trial."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def passed(self, digest: str, device: Device) -> bool:
        found = self._load().get(digest)
        return found is not None and found.device == _told(device) and not found.failed

    def failed(self, devices: tuple[Device, ...]) -> Mapping[str, Text]:
        """By digest, why packs do not work with these cards and drivers."""
        present = {_told(device) for device in devices}
        reasons = {}
        for digest, trial in self._load().items():
            if trial.failed and trial.device in present:
                with contextlib.suppress(ValueError):
                    reasons[digest] = unpacked(trial.failed)
        return reasons

    def note(self, digest: str, device: Device, failed: Text = NOTHING) -> None:
        """Keep a result; of failures only those that last. Raises OSError."""
        if failed and failed.id not in LASTING:
            return
        results = {**self._load(), digest: _Trial(_told(device), packed(failed))}
        atomic_write(self._file, msgspec.json.encode(results))

    def forget(self) -> None:
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)

    def _load(self) -> dict[str, _Trial]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, _Trial])
        except (OSError, ValueError, RecursionError):  # also what msgspec raises
            return {}


def _told(device: Device) -> str:
    return f"{device.choice} {device.name} {device.driver or ''}".rstrip()
