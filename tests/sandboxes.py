"""Which parts of the worker's sandbox this system has."""

import os
import subprocess

from skep.core.sandbox import Guard
from skep.worker.sandbox import landlock

BY_LANDLOCK = {Guard.PROGRAMS, Guard.PROCESSES}
"""What Landlock alone refuses."""
BY_SYSTEMD = {Guard.MEMORY}
"""What systemd sets where skep starts the process, and no test does."""


def has_landlock():
    try:
        return landlock.abi() >= landlock.SCOPES_ABI
    except OSError:
        return False


def has_namespaces(as_nobody):
    who = ["--user", "--map-current-user"] if as_nobody or os.geteuid() else []
    return not subprocess.run(["unshare", *who, "--mount", "true"], check=False, capture_output=True).returncode
