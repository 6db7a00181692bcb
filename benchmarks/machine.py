"""The description of the machine on which a benchmark ran."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil


def machine() -> str:
    """Processor, cores, memory, system."""
    processor = platform.processor() or platform.machine()
    listed = Path("/proc/cpuinfo")
    for line in listed.read_text().splitlines() if listed.exists() else []:
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
            break
    memory_gb = psutil.virtual_memory().total / 1e9
    return f"{processor}, {os.cpu_count()} cores, {memory_gb:.0f} GB, {platform.system()} {platform.release()}"
