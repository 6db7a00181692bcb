"""Runs pip install. Prints the size of each large file before it is downloaded, and the total at the end.

    python install.py ARGUMENTS-OF-PIP-INSTALL

The sizes come from pip's output. pip's --dry-run would list them before anything is installed, but it downloads every
file of an index that does not offer metadata separately. Needs only the standard library and pip: it runs before skep
is installed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Final

LARGE: Final = 50e6
"""Size in bytes from which on a file is printed."""
_UNITS: Final = {"bytes": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}
_FETCHING: Final = re.compile(r"\s*Downloading (?:\S*/)?(\S+) \(([0-9.]+) (bytes|kB|MB|GB)\)")


def announced(line: str) -> tuple[str, float] | None:
    """The file that pip is about to download, and its bytes; None for any other line."""
    match = _FETCHING.match(line)
    return (match[1], float(match[2]) * _UNITS[match[3]]) if match else None


def main() -> int:
    command = [sys.executable, "-u", "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
    fetched = 0.0
    with subprocess.Popen([*command, *sys.argv[1:]], stdout=subprocess.PIPE, text=True) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            if (found := announced(line)) is None:
                continue
            fetched += found[1]
            if found[1] >= LARGE:
                _say(f"Fetching {found[0]}, {found[1] / 1e6:.0f} MB …")
    if fetched and pip.returncode == 0:
        _say(f"Fetched {fetched / 1e6:.0f} MB of Python packages.")
    return pip.returncode


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
