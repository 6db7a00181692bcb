"""Files of devices that a driver makes when it is first used, which the worker's sandbox forbids.

NVIDIA's libraries start nvidia-modprobe, a program with root's rights, if /dev/nvidia-uvm does not exist; in the sandbox no
program gains rights. So it is started before the worker.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
from pathlib import Path
from typing import Final

DEVICES: Final = Path("/dev")
MAKER: Final = "nvidia-modprobe"
SECONDS: Final = 20.0

log = logging.getLogger(__name__)


def make_device_nodes(devices: Path = DEVICES) -> None:
    """Have NVIDIA's driver make what CUDA needs, if there is one and it has not. A failure is only logged."""
    if not (devices / "nvidiactl").exists() or (devices / "nvidia-uvm").exists():
        return
    if (program := shutil.which(MAKER)) is None:
        return
    try:
        # -u loads the module for CUDA and makes its files, -c=0 the first card's
        subprocess.run([program, "-u", "-c=0"], timeout=SECONDS, check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("the files of the NVIDIA driver could not be made: %s", error)
