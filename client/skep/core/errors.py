"""The one tree of errors; each carries the words for the user.

It must not know where an error came from: adapters translate foreign exceptions into this tree.

::

    SkepError                 something failed; exit code 1
    ├── BadInput              what the user or a project handed us is wrong; exit code 2
    │   ├── ManifestError     a manifest is missing, unsigned, tampered, expired or asks for the impossible
    │   ├── SettingsError     a setting or the settings file is wrong
    │   └── InvitationError   an invitation is missing, expired, tampered, or somebody else's
    ├── DoesNotFit            this computer cannot carry the project
    ├── DeviceError           the device ran out of memory, or is gone; another try may help
    └── SwarmError, DataError, StorageError, SecretsError,
        UpdateError, AlreadyRunning, NotRunning
"""

from __future__ import annotations

from skep.core.text import NOTHING, Problem, Remedy, Text


class SkepError(Exception):
    """Base of all our errors.

    `title` is one sentence that says what happened and where; `hint` says what to do.
    """

    exit_code = 1
    remedy: str = Remedy.DIAGNOSTICS.value

    def __init__(self, title: Text, hint: Text = NOTHING, *, remedy: str = "") -> None:
        """`remedy` where another one fits than that of the kind of error."""
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


class DoesNotFit(SkepError):
    remedy = Remedy.PROJECTS.value


class DeviceError(SkepError):
    remedy = "setting:compute.device"


class SwarmError(SkepError):
    """The swarm cannot be reached, or does not give us its state."""


class DataError(SkepError):
    """Training data cannot be fetched or is not what was promised."""


class StorageError(SkepError):
    """The disk is full, or a file of ours cannot be read or written."""


class SecretsError(SkepError):
    """The system's keyring is locked, absent, or refuses."""


class UpdateError(SkepError):
    """A new version of skep cannot be found, fetched or installed."""


class AlreadyRunning(SkepError):
    """Another skep holds this home."""


class NotRunning(SkepError):
    """No skep is running in this home."""
