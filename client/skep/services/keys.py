"""A publisher's keys: made, found by name or by what a manifest carries, and signed with."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from skep import bootstrap
from skep.adapters.storage import signing
from skep.adapters.storage.paths import Home
from skep.adapters.storage.publisher_keys import DEFAULT_NAME
from skep.core.text import Text, verbatim


def private_key(home: Home, chosen: str | None, public: bytes) -> Ed25519PrivateKey:
    """The private key called `chosen`, or in that file; where none is chosen, the one that belongs to `public`.

    Raises BadInput, SecretsError.
    """
    keys = bootstrap.publisher_keys(home)
    known = {key.name: key for key in keys.all()}
    if chosen is not None:
        return keys.private(known[chosen]) if chosen in known else signing.load_private(Path(chosen))
    fitting = [key for key in known.values() if key.public == public]
    if fitting:
        return keys.private(fitting[0])
    earlier = home.keys_folder / "publisher.key"  # where skep kept a key before it used the keyring
    return signing.load_private(earlier) if earlier.exists() else keys.private(keys.find(DEFAULT_NAME))


def make_key(path: Path) -> tuple[bytes, str]:
    """A new publisher's key at `path`: the public key, raw and as a manifest names it. Raises BadInput."""
    public = signing.make_key(path)
    return public, signing.key_text(public)


def sign(home: Home, path: Path, chosen: str | None) -> Path:
    """Sign a manifest with the key called `chosen`, or in that file; the signature file. Raises BadInput, SecretsError."""
    private = private_key(home, chosen, signing.publisher_of(path))
    return signing.sign_with(path, private, verbatim(chosen) if chosen else Text("key.key_kept_here"))
