"""The description of the machine on which a benchmark ran."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil


def machine() -> str:
    """Processor, cores, memory, system and its version, without what the builder of a kernel appends to it."""
    processor = platform.processor() or platform.machine()
    listed = Path("/proc/cpuinfo")
    for line in listed.read_text().splitlines() if listed.exists() else []:
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
            break
    memory_gb = psutil.virtual_memory().total / 1e9
    system = f"{platform.system()} {platform.release().split('-')[0]}"
    return f"{processor}, {os.cpu_count()} cores, {memory_gb:.0f} GB, {system}"
