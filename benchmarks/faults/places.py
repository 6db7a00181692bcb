"""Where a part runs: a temporary folder for all its processes, a practice swarm, a volunteer that trains."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from families import kill
from faults.volunteer import Volunteer, volunteer
from skep.adapters.storage import signing
from skep.adapters.storage.files import atomic_write
from skep.core.project import links
from skep.core.project.fields import key_text
from skep.host.practice.swarm import PracticeFolder, practice_manifest
from terminals import practice_swarm


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """A temporary folder, in which every process started meanwhile puts its temporary files too; it ends with them."""
    with tempfile.TemporaryDirectory(prefix="sf-", ignore_cleanup_errors=True) as folder:
        os.environ.pop("XDG_RUNTIME_DIR", None)
        earlier, os.environ["TMPDIR"] = os.environ.get("TMPDIR"), folder
        try:
            yield Path(folder)
        finally:
            kill(each for each in psutil.process_iter() if _uses(each, folder))
            del os.environ["TMPDIR"]
            os.environ |= {"TMPDIR": earlier} if earlier else {}


def _uses(process: psutil.Process, folder: str) -> bool:
    """Whether its temporary files are there; this process has set that for its children only."""
    with contextlib.suppress(psutil.Error, OSError):
        return process.environ().get("TMPDIR", "").startswith(folder)
    return False


@contextlib.contextmanager
def trained_volunteer() -> Iterator[Volunteer]:
    """A volunteer in a practice swarm of three, with its first confirmed contribution."""
    with own_folder() as folder, practice_swarm(folder / "swarm") as link, volunteer(folder / "home", link) as made:
        made.wait_until_training()
        yield made


def publish(
    folder: PracticeFolder, addresses: list[str], served: str, sha256: str, changes: dict[str, dict[str, Any]]
) -> tuple[str, dict[str, Any]]:
    """Sign the practice manifest with changes of the model and of `sync`; the link that joins, and the manifest.

    `served` is the address at which peers find the folder's files.
    """
    key = signing.ensure_key(folder.key)
    manifest = practice_manifest(
        revision=1,
        publisher_key=key_text(key),
        peers=addresses,
        index_address=f"{served}/index.json",
        index_sha256=sha256,
        now=datetime.now(UTC),
    )
    manifest["recipe"]["model"] |= changes.get("model", {})
    manifest["sync"] |= changes.get("sync", {})
    manifest["schedule"]["total_epochs"] = 1_000_000
    atomic_write(folder.manifest, json.dumps(manifest).encode(), mode=0o600)
    signing.sign_manifest(folder.manifest, folder.key)
    return links.link_to(f"{served}/{folder.manifest.name}", key), manifest
