"""Rows that are measured elsewhere or cannot be measured here."""

from __future__ import annotations

import os
import subprocess
import tempfile
import venv
from pathlib import Path

from against_stock.rows import Row


def measure_lightning(_repeats: int) -> list[Row]:
    """Whether what lightning-hivemind 0.1.0 needs installs here, in a separate environment.

    It wants hivemind 1.1.10.post2 or older, which has no wheel and downloads p2pd while it is built.
    """
    with tempfile.TemporaryDirectory(prefix="skep-bench-") as folder:
        venv.create(folder, with_pip=True)
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text("setuptools<70\n")  # its build needs pkg_resources
        done = subprocess.run(
            [Path(folder) / "bin" / "python", "-m", "pip", "install", "--no-deps", "hivemind==1.1.10.post2"],
            env=os.environ | {"PIP_CONSTRAINT": str(constraints)},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    reasons = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip().startswith("error:")]
    note = (
        "its hivemind installs here, but is not measured"
        if done.returncode == 0
        else f"cannot be installed here ({reasons[-1]})"
    )
    return [Row("lightning-hivemind 0.1.0", "", [], note=note)]


def measure_gpu(_repeats: int) -> list[Row]:
    import torch  # noqa: PLC0415 - only this row needs it in this process

    note = torch.cuda.get_device_name() if torch.cuda.is_available() else "no CUDA device on this machine"
    return [Row("rows that need a CUDA device", "", [], note=note)]
