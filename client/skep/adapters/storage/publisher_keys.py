"""A publisher's named Ed25519 keys: the private parts among the home's secrets, the public ones in files.

`signing` and `invitations` sign with them.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from skep.adapters.storage.files import atomic_write, os_errors
from skep.adapters.storage.secrets import HomeSecrets
from skep.adapters.storage.signing import KEY_FILE_LIMIT, PUBLIC_SUFFIX, public_text
from skep.core.errors import BadInput, SecretsError, StorageError
from skep.core.project.fields import FieldError, Pattern, PublicKey
from skep.core.text import Text

DEFAULT_NAME: Final = "publisher"
NAME: Final = Pattern("[a-z0-9-]{1,40}", Text("key.1_40_lower_case_letters"))


@dataclass(frozen=True)
class StoredKey:
    """`public` is raw, 32 bytes."""

    name: str
    public: bytes


class PublisherKeys:
    """The keys of one home. `folder` holds the public parts."""

    def __init__(self, folder: Path, secrets: HomeSecrets) -> None:
        self._folder, self._secrets = folder, secrets

    def new(self, name: str, *, in_file: bool) -> StoredKey:
        """Create a key. Raises BadInput if there is one of that name, SecretsError, StorageError."""
        self._check_free(name, in_file=in_file)
        private = Ed25519PrivateKey.generate()
        public = private.public_key().public_bytes_raw()
        self._secrets.put(_secret(name), base64.b64encode(private.private_bytes_raw()).decode(), in_file=in_file)
        with os_errors(
            Text("key.public_key_cannot_written", folder=str(self._folder)), Text("key.free_some_space_check_folder")
        ):
            try:
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                atomic_write(self._public(name), public_text(public), mode=0o644)
            except OSError:
                self._secrets.delete(_secret(name))
                raise
        return StoredKey(name, public)

    def _check_free(self, name: str, *, in_file: bool) -> None:
        try:
            NAME.read(name, "")
        except FieldError as error:
            raise BadInput(Text("key.name", phrase=error.phrase), Text("key.choose_another_name")) from None
        # without consent to use the keyring, the user is not asked to unlock it
        taken = self._secrets.is_in_file(_secret(name)) if in_file else self._secrets.get(_secret(name)) is not None
        if taken or self._public(name).exists():
            raise BadInput(
                Text("key.there_key_called_already", name=name),
                Text("key.lost_key_can_never_sign"),
            )

    def all(self) -> list[StoredKey]:
        """By name. Raises StorageError."""
        with os_errors(Text("key.keys_cannot_read", folder=str(self._folder)), Text("key.check_folder_permissions")):
            names = sorted(path.name.removesuffix(PUBLIC_SUFFIX) for path in self._folder.glob(f"*{PUBLIC_SUFFIX}"))
            named = [name for name in names if re.fullmatch(NAME.expression, name)]
            found = [(name, self._public(name).read_text(errors="replace")) for name in named]
        return [StoredKey(name, _read_public(name, text)) for name, text in found]

    def find(self, name: str) -> StoredKey:
        """Raises BadInput with the known names."""
        known = {key.name: key for key in self.all()}
        if name in known:
            return known[name]
        hint = Text("key.known_ones", names=tuple(known)) if known else Text("key.skep_key_new_makes_one")
        raise BadInput(Text("key.there_no_key_called_here", name=name), hint)

    def is_in_file(self, key: StoredKey) -> bool:
        """Whether the private key is stored unencrypted in a file. Raises StorageError."""
        return self._secrets.is_in_file(_secret(key.name))

    def private(self, key: StoredKey) -> Ed25519PrivateKey:
        """Raises SecretsError if it is missing or belongs to another key."""
        try:
            raw = base64.b64decode(self._secrets.get(_secret(key.name)) or "", validate=True)
            private = Ed25519PrivateKey.from_private_bytes(raw)
            fits = private.public_key().public_bytes_raw() == key.public
        except ValueError:
            fits = False
        if not fits:
            raise SecretsError(
                Text("key.private_part_key_not_keyring", name=key.name),
                Text("key.restore_keyring_from_backup_nothing"),
            )
        return private

    def delete(self, name: str) -> None:
        """Raises BadInput, SecretsError, StorageError."""
        self.find(name)
        self._secrets.delete(_secret(name))
        with os_errors(
            Text("key.cannot_removed", public=str(self._public(name))), Text("key.check_folder_permissions")
        ):
            self._public(name).unlink(missing_ok=True)

    def _public(self, name: str) -> Path:
        return self._folder / (name + PUBLIC_SUFFIX)


def _secret(name: str) -> str:
    return f"key {name}"


def _read_public(name: str, text: str) -> bytes:
    line = (text[:KEY_FILE_LIMIT].splitlines() or [""])[0]
    try:
        return PublicKey().read(line, "")
    except FieldError:
        raise StorageError(
            Text("key.file_keys_folder_damaged", name=name, suffix=PUBLIC_SUFFIX),
            Text("key.restore_from_backup"),
        ) from None
