"""The hierarchy of skep's errors, each with the text shown to the user.

Adapters translate exceptions of other libraries into these errors.

::

    SkepError                 something failed; exit code 1
    ├── BadInput              input from the user or a project is wrong; exit code 2
    │   ├── ManifestError     a manifest is missing, unsigned, tampered, expired or impossible to satisfy
    │   ├── SettingsError     a setting or the settings file is wrong
    │   ├── InvitationError   an invitation is missing, expired, tampered, or issued to another peer
    │   └── CheckpointError   a signed checkpoint is missing, tampered, of another run, or older than a known one
    ├── DoesNotFit            this computer cannot train the project
    ├── DeviceError           the device ran out of memory, or is gone; a retry may help
    ├── StorageError          the disk is full, or a file of skep cannot be read or written
    │   └── DamagedFile       what skep reads from its file cannot be what skep wrote; exit code 2
    └── SwarmError, DataError, SecretsError, UpdateError,
        AlreadyRunning, NotRunning
"""

from __future__ import annotations

from skep.core.text import NOTHING, Problem, Remedy, Text


class SkepError(Exception):
    """Base of all errors of skep.

    `title` is one sentence that says what happened and where; `hint` says what to do.
    """

    exit_code = 1
    remedy: str = Remedy.DIAGNOSTICS.value

    def __init__(self, title: Text, hint: Text = NOTHING, *, remedy: str = "") -> None:
        """`remedy` replaces the default remedy of this class of errors."""
        super().__init__(str(title))
        self.title = title
        self.hint = hint
        self.remedy = remedy or self.remedy

    @property
    def problem(self) -> Problem:
        return Problem(self.title, self.hint, self.remedy)


class BadInput(SkepError):
    exit_code = 2


class ManifestError(BadInput):
    remedy = Remedy.PROJECTS.value


class SettingsError(BadInput):
    remedy = Remedy.SETTINGS.value


class InvitationError(BadInput):
    remedy = Remedy.PROJECTS.value


class CheckpointError(BadInput):
    remedy = Remedy.PROJECTS.value


class DoesNotFit(SkepError):
    remedy = Remedy.PROJECTS.value


class DeviceError(SkepError):
    remedy = "setting:compute.device"


class SwarmError(SkepError):
    """The swarm cannot be reached, or does not send its state."""

    remedy = Remedy.CONNECTION.value


class DataError(SkepError):
    """Training data cannot be fetched, or differs from what the index declares."""

    remedy = Remedy.CONNECTION.value


class StorageError(SkepError):
    """The disk is full, or a file of skep cannot be read or written."""


class DamagedFile(StorageError):
    """What a file of skep holds cannot be what skep wrote."""

    exit_code = 2


class SecretsError(SkepError):
    """The system's keyring is locked, absent, or refuses the request."""


class UpdateError(SkepError):
    """A new version of skep cannot be found, fetched or installed."""


class AlreadyRunning(SkepError):
    """Another skep process holds the lock of this home."""


class NotRunning(SkepError):
    """No skep process is running in this home."""
