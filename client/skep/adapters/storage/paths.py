"""Paths of skep's files: the home, and run folders that exist as long as a process."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import platformdirs

from skep.adapters.storage.files import os_errors
from skep.core.errors import BadInput, StorageError
from skep.core.text import Text

RUN_PREFIX: Final = "skep-"

LONGEST_RUN_PARENT: Final = 60
"""Bytes. A unix socket's path is limited to 104 (macOS) or 108 (Linux), and skep adds up to 45 to a run folder's parent."""

_ANOTHER: Final = Text("paths.choose_another_folder_home_skep")


@dataclass(frozen=True)
class Below:
    """An attribute that is the path of this name below its owner's `root`."""

    name: str

    def __get__(self, owner: Any, kind: type) -> Path:
        return Path(owner.root, self.name)


@dataclass(frozen=True)
class Home:
    """The folder of one installation, an absolute path. Two homes share nothing."""

    root: Path

    settings_file = Below("settings.toml")
    settings_copy_file = Below("settings.last.toml")
    """The settings as skep used them last, for when the file above is damaged."""
    ledger_file = Below("ledger.sqlite")
    identity_file = Below("identity.key")
    """The identity in projects by invitation."""
    peer_id_file = Below("identity.id")
    """The peer id of the key above, to notice when that is lost."""
    identities_folder = Below("identities")
    """The identity in each open project, by its id and its publisher."""
    projects_folder = Below("projects")
    keys_folder = Below("keys")
    secrets_folder = Below("secrets")
    cache_folder = Below("cache")
    logs_folder = Below("logs")
    lock_file = Below("lock")
    pause_file = Below("pause.json")
    power_limit_file = Below("power_limit.json")
    practice_folder = Below("practice")
    snapshots_folder = Below("snapshots")
    """The newest state of each run in which this computer trained lately, by run id."""
    known_peers_folder = Below("peers")
    """Addresses of peers with which it trained lately, by run id."""
    revocations_folder = Below("revoked")
    """The newest list of revoked invitations of each project that has one."""
    checkpoint_notes_folder = Below("checkpoints")
    """The newest note of each project's signed checkpoint."""
    updates_folder = Below("updates")
    packs_folder = Below("packs")
    """Compute packs: the training stack, in an app that comes without it."""
    control_file = Below("control.json")
    worker_file = Below("worker.json")
    """The worker processes that run, for the next start to end those left over."""
    host_folder = Below("host")

    def check(self) -> None:
        """Raise BadInput if a file has the folder's name, or its path is too long for this system."""
        try:
            free = stat.S_ISDIR(self.root.stat().st_mode)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise BadInput(Text("paths.path_skep_folder_too_long"), _ANOTHER) from None
            free = error.errno != errno.ENOTDIR  # other errors are reported when the folder is used
        if not free:
            raise BadInput(Text("paths.cannot_skep_folder_since_there", root=str(self.root)), _ANOTHER)

    def create(self) -> None:
        """Create the folder for this user only; permissions of an existing one are restricted. Raises StorageError."""
        with os_errors(
            Text("paths.folder_cannot_used", root=str(self.root)), Text("paths.choose_another_one_home_skep")
        ):
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if stat.S_IMODE(self.root.stat().st_mode) & 0o077:
                self.root.chmod(0o700)


def default_home(environ: Mapping[str, str]) -> Path:
    """SKEP_HOME, or the system's folder for user data. Absolute. Raises BadInput."""
    chosen = environ.get("SKEP_HOME")
    if not chosen:
        return platformdirs.user_data_path("skep", appauthor=False)
    return expanded(chosen)


def expanded(text: str) -> Path:
    """A path that the user entered as an absolute one, with ~ expanded. Raises BadInput for an unknown user."""
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError:
        raise BadInput(Text("paths.no_such_user", path=text), Text("signing.check_path")) from None


def make_run_folder() -> Path:
    """A new private folder with a path short enough for unix sockets; the caller removes it.

    Raises StorageError.
    """
    problems = []
    for parent in _run_parents():
        try:
            return Path(tempfile.mkdtemp(prefix=RUN_PREFIX, dir=parent))
        except OSError as error:
            problems.append(f"{parent}: {error.strerror}")
    raise StorageError(
        Text("paths.no_folder_sockets_can_made", names=tuple(problems)), Text("paths.free_some_space_temporary_folder")
    )


def _run_parents() -> list[str]:
    """Best first. Environment variables are read here, since child processes get different ones."""
    wanted = [os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir()]
    short = [parent for parent in wanted if os.path.isabs(parent) and len(os.fsencode(parent)) <= LONGEST_RUN_PARENT]  # noqa: PTH117
    return [*short, "/tmp"]  # noqa: S108 - the last resort where everything else is too long; mkdtemp makes it private
