"""How the training process, and programs that look at a device for it, are started: command, environment, pipes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from skep.adapters.process.programs import module_command

COMMAND: Final = module_command("skep.worker.main")

_PASSED_ON: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
    "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH",
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION",
)  # fmt: skip
"""Environment variables passed to the worker, to find programs, libraries and devices. No tokens, no proxies."""


def spawn(command: Sequence[str], run_folder: Path, threads: int) -> subprocess.Popen[bytes]:
    """Start the process, in `run_folder` and its own session, with three unbuffered pipes. Raises OSError.

    With `threads` 0 the libraries choose the number of threads.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd=run_folder,
        env=_environment(os.environ, run_folder, threads),
        start_new_session=True,
        umask=0o077,
    )


def _environment(ours: Mapping[str, str], run_folder: Path, threads: int) -> dict[str, str]:
    environment = {name: ours[name] for name in _PASSED_ON if name in ours} | {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HIVEMIND_MEMORY_SHARING_STRATEGY": "file_descriptor",
        # huge pages for the tensors of a step, if the system permits: about 3,000 fewer page faults per micro-batch
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONSAFEPATH": "1",
        "TMPDIR": str(run_folder),
    }
    return environment | ({"OMP_NUM_THREADS": str(threads)} if threads > 0 else {})
