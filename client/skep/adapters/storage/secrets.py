"""Storage of secrets: the system's keyring or, only with the user's consent, a file that only this user can read.

The keyring is accessed with the `keyring` library (Secret Service, KWallet, macOS, Windows), which is imported at the
first use, since that takes a large part of a second. Every call has a time limit, because a keyring may ask the user
for a password and wait without limit. There is no automatic fallback to a file, and no secret appears in a message.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from skep.adapters.storage.files import atomic_write, os_errors
from skep.core.errors import SecretsError
from skep.core.plain_text import first_line
from skep.core.text import Text
from skep.ports import SecretStore

SERVICE: Final = "skep"
PATIENCE_SECONDS: Final = 60.0
"""Time limit of a call: long enough to type a password if the keyring asks for one."""
FILE_LIMIT: Final = 16 * 1024

OTHERWISE: Final = Text("secrets.let_skep_keep_unencrypted_file")
_IN_PLAIN_SIGHT: Final = ("keyring.backends.null", "keyrings.alt")
"""Backends that store nothing, or that store secrets in unencrypted files."""

Found = TypeVar("Found")


class KeyringSecrets:
    """Implements ports.SecretStore with the keyring; `scope` distinguishes the secrets of different homes."""

    def __init__(
        self,
        scope: str,
        *,
        patience: float = PATIENCE_SECONDS,
        find: Callable[[], Any] | None = None,
    ) -> None:
        self._scope, self._patience, self._find = scope, patience, find or system_keyring

    def get(self, name: str) -> str | None:
        """Raises SecretsError."""
        secret: str | None = self._ask(lambda ring: ring.get_password(SERVICE, self._account(name)))
        return secret

    def put(self, name: str, secret: str) -> None:
        """Raises SecretsError, also if the keyring accepted the secret but does not return it."""

        def put_and_look(ring: Any) -> bool:
            ring.set_password(SERVICE, self._account(name), secret)
            return bool(ring.get_password(SERVICE, self._account(name)) == secret)

        if not self._ask(put_and_look):
            raise SecretsError(Text("secrets.keyring_took_secret_does_not"), Text("secrets.check", otherwise=OTHERWISE))

    def delete(self, name: str) -> None:
        """Raises SecretsError."""

        def delete(ring: Any) -> None:
            if ring.get_password(SERVICE, self._account(name)) is not None:
                ring.delete_password(SERVICE, self._account(name))

        self._ask(delete)

    def _account(self, name: str) -> str:
        return f"{name} in {self._scope}"

    def _ask(self, question: Callable[[Any], Found]) -> Found:
        answers: list[Found] = []
        errors: list[Exception] = []

        def ask() -> None:
            try:
                answers.append(question(self._find()))
            except Exception as error:  # noqa: BLE001 - a backend raises whatever its own libraries raise
                errors.append(error)

        # a thread that may be abandoned: a call to a keyring that waits for the user cannot be aborted
        asking = threading.Thread(target=ask, name="keyring", daemon=True)
        asking.start()
        asking.join(self._patience)
        if errors:
            raise _translated(errors[0]) from None
        if not answers:
            raise SecretsError(
                Text("secrets.keyring_did_not_answer_within", patience=self._patience),
                Text("secrets.may_asking_password_where_you", otherwise=OTHERWISE),
            )
        return answers[0]


def system_keyring() -> Any:
    """The backend that the keyring library selects. Raises SecretsError if it does not protect secrets."""
    import keyring  # noqa: PLC0415 - see the module's docstring
    from keyring.backends.fail import Keyring as NoKeyring  # noqa: PLC0415 - as above

    found = keyring.get_keyring()
    if isinstance(found, NoKeyring):
        # the library searches once per process, but the user may have started a keyring since, as the hint advises
        with suppress(KeyError):
            keyring.backend.get_all_keyring.reset()
        keyring.core.init_backend()
        found = keyring.get_keyring()
    first = next(iter(getattr(found, "backends", [])), found)
    module = type(first).__module__
    if module.startswith(_IN_PLAIN_SIGHT):
        raise SecretsError(
            Text("secrets.keyring_chosen_computer_keeps_no", module=module),
            Text("secrets.choose_another_one", otherwise=OTHERWISE),
        )
    return first


def _translated(error: Exception) -> SecretsError:
    if isinstance(error, SecretsError):
        return error
    # by name: the classes would need the library's import, and these are its public names
    match type(error).__name__:
        case "NoKeyringError":
            return SecretsError(
                Text("secrets.there_no_keyring_computer_skep"),
                Text("secrets.start_one_such_gnome_keyring", otherwise=OTHERWISE),
            )
        case "KeyringLocked" | "LockedException" | "PromptDismissedException":
            return SecretsError(Text("secrets.keyring_locked"), Text("secrets.unlock_try_again", otherwise=OTHERWISE))
        case _:
            return SecretsError(
                Text("secrets.keyring_refuses", words=first_line(error)),
                Text("secrets.check_try_again", otherwise=OTHERWISE),
            )


class FileSecrets:
    """Implements ports.SecretStore with files of mode 0600 in a folder for this user only. Not encrypted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str) -> str | None:
        """Raises StorageError."""
        with self._errors(Text("file.read")):
            try:
                with (self._folder / name).open("rb") as file:
                    return file.read(FILE_LIMIT).decode(errors="replace")
            except FileNotFoundError:
                return None

    def put(self, name: str, secret: str) -> None:
        """Raises StorageError."""
        with self._errors(Text("file.written")):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic_write(self._folder / name, secret.encode(), mode=0o600)

    def delete(self, name: str) -> None:
        """Raises StorageError."""
        with self._errors(Text("file.removed")):
            (self._folder / name).unlink(missing_ok=True)

    def _errors(self, done: Text) -> AbstractContextManager[None]:
        return os_errors(
            Text("secrets.secret_cannot", folder=str(self._folder), done=done),
            Text("secrets.check_folder_permissions_free_disk"),
        )


class HomeSecrets:
    """A home's secrets: in the keyring, except those that were written to a file with the user's consent.

    `in_file` is that consent. Secrets in a file are found without accessing the keyring.
    """

    def __init__(self, keyring: SecretStore, files: SecretStore) -> None:
        self._keyring, self._files = keyring, files

    def get(self, name: str) -> str | None:
        """Raises SecretsError, StorageError."""
        kept = self._files.get(name)
        return kept if kept is not None else self._keyring.get(name)

    def put(self, name: str, secret: str, *, in_file: bool) -> None:
        """Raises SecretsError, StorageError; then nothing is stored."""
        if in_file:
            self._files.put(name, secret)
        else:
            self._keyring.put(name, secret)
            self._files.delete(name)

    def delete(self, name: str) -> None:
        """Raises SecretsError, StorageError."""
        if self.is_in_file(name):
            self._files.delete(name)
        else:
            self._keyring.delete(name)

    def is_in_file(self, name: str) -> bool:
        """Raises StorageError."""
        return self._files.get(name) is not None
