"""Builds the repository that skep's updates and compute packs come from: a folder which any static web server can hold.

    python packaging/release_repo.py --keys KEYS --to FOLDER ARCHIVE [--notes FILE]     publish an archive
    python packaging/release_repo.py --keys KEYS --to FOLDER --packs PACKS              publish compute packs
    python packaging/release_repo.py --keys KEYS --to FOLDER --renew                    sign anew before it runs out

The first call makes the keys, each encrypted with the passphrase in SKEP_RELEASE_PASSPHRASE, and the root that builds
take in (SKEP_UPDATES, SKEP_UPDATES_ROOT; see docs/packaging.md). KEYS must stay off the web server; `root.pem` in it
may be kept elsewhere until the root must be signed again, which is announced a year before. Protocol: The Update
Framework, specification 1.0, by python-tuf.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import sys
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.signer import CryptoSigner
from tuf.api.metadata import Metadata, MetaFile, Root, Snapshot, TargetFile, Targets, Timestamp
from tuf.api.serialization.json import JSONSerializer

from skep.core.errors import SkepError
from skep.core.packs import Wheel, read_packs, wheel_target
from skep.core.releases import Release, notice, notice_name, read_notice

ROLES: Final = (Root.type, Targets.type, Snapshot.type, Timestamp.type)
VALID: Final = {
    Root.type: timedelta(days=3 * 365),
    Targets.type: timedelta(days=365),
    Snapshot.type: timedelta(days=60),
    Timestamp.type: timedelta(days=60),
}
"""Validity of each signature; run `--renew` as a scheduled task well before the shortest ends."""
RENEW_ROOT: Final = timedelta(days=365)
ARCHIVE: Final = re.compile(r"skep-(\d+\.\d+\.\d+)-([a-z0-9]+)-(.+)\.tar\.xz")


def main() -> int:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("archive", type=Path, nargs="?", help="a portable archive that `make package` built")
    made.add_argument("--keys", type=Path, required=True, help="folder of the private keys")
    made.add_argument("--to", type=Path, required=True, help="the repository's folder")
    made.add_argument("--notes", type=Path, help="a text that says what is new")
    made.add_argument("--packs", type=Path, help="the folder that `make packs` wrote")
    made.add_argument("--renew", action="store_true", help="sign what is published anew")
    chosen = made.parse_args()
    if (chosen.archive is None and chosen.packs is None) != chosen.renew:
        made.error("name an archive, --packs, or --renew")
    try:
        repository = Repository(chosen.to, Keys(chosen.keys, os.environ.get("SKEP_RELEASE_PASSPHRASE", "")))
        if chosen.archive is not None:
            repository.add(chosen.archive, chosen.notes.read_text(encoding="utf-8") if chosen.notes else "")
        if chosen.packs is not None:
            repository.add_packs(chosen.packs)
        repository.sign()
    except (OSError, ValueError, SkepError) as error:
        sys.stderr.write(f"Nothing was published: {error}\n")
        return 2
    sys.stdout.write(f"{chosen.to}: put it on a web server. Builds take {repository.root_file} in.\n")
    return 0


class Keys:
    """One Ed25519 key for each role, made when it is missing."""

    def __init__(self, folder: Path, passphrase: str) -> None:
        if not passphrase:
            raise ValueError("set SKEP_RELEASE_PASSPHRASE, with which the private keys are encrypted")
        self._folder, self._secret = folder, passphrase.encode()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def signer(self, role: str) -> CryptoSigner:
        """Raises ValueError if the passphrase is wrong."""
        file = self._folder / f"{role}.pem"
        if not file.exists():
            self._make(file)
        try:
            private = serialization.load_pem_private_key(file.read_bytes(), self._secret)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise ValueError(f"{file} cannot be opened with the passphrase in SKEP_RELEASE_PASSPHRASE") from None
        if not isinstance(private, Ed25519PrivateKey):
            raise ValueError(f"{file} is no Ed25519 key")  # noqa: TRY004 - said to a person
        return CryptoSigner(private)

    def _make(self, file: Path) -> None:
        pem = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(self._secret),
        )
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as opened:
            opened.write(pem)


class Repository:
    """`metadata` and `targets` below a folder; every list gets its next version when it is signed."""

    def __init__(self, folder: Path, keys: Keys) -> None:
        self._metadata, self._files, self._keys = folder / "metadata", folder / "targets", keys
        for made in (self._metadata, self._files):
            made.mkdir(parents=True, exist_ok=True)
        self._now = datetime.now(UTC).replace(microsecond=0)
        self._targets = self._latest(Targets.type, Targets())

    @property
    def root_file(self) -> Path:
        """The newest root's file."""
        return self._metadata / f"{self._version(Root.type)}.root.json"

    def add(self, archive: Path, notes: str) -> None:
        """Add an archive as the newest for its kind of computer. Raises ValueError, UpdateError."""
        found = ARCHIVE.fullmatch(archive.name)
        if found is None:
            raise ValueError(f"{archive.name} is not named as `make package` names its archives")
        version, system, machine = found.groups()
        shutil.copyfile(archive, self._files / archive.name)
        said = json.dumps(notice(Release(version, archive.name, unpacked_bytes(archive), notes)), indent=1)
        read_notice(said.encode())  # a notice that skep would refuse is not published
        named = self._files / notice_name(system, machine)
        named.write_text(said + "\n", encoding="utf-8")
        for file in (self._files / archive.name, named):
            self._targets.signed.targets[file.name] = TargetFile.from_file(file.name, str(file))

    def add_packs(self, folder: Path) -> None:
        """Publish the lists in a folder and their wheels, instead of earlier lists of the same names.

        Wheels that no published list names any more are no longer vouched for. Raises ValueError, UpdateError.
        """
        lists = sorted(folder.glob("packs-*.json"))
        if not lists:
            raise ValueError(f"{folder} has no list of packs: `make packs` writes it")
        wheels = {wheel.sha256: wheel for file in lists for wheel in _wheels(file)}
        for wheel in wheels.values():
            source = folder / wheel_target(wheel)
            if source.stat().st_size != wheel.size or _sha256(source) != wheel.sha256:
                raise ValueError(f"{source} is not the {wheel.file} of its list")
        (self._files / "wheels").mkdir(exist_ok=True)
        for wheel in wheels.values():
            target = self._files / wheel_target(wheel)
            if not target.is_file() or target.stat().st_size != wheel.size or _sha256(target) != wheel.sha256:
                shutil.copyfile(folder / wheel_target(wheel), target)
            self._targets.signed.targets[wheel_target(wheel)] = TargetFile(
                wheel.size, {"sha256": wheel.sha256}, wheel_target(wheel)
            )
        for file in lists:
            shutil.copyfile(file, self._files / file.name)
            self._targets.signed.targets[file.name] = TargetFile.from_file(file.name, str(file))
        self._forget_wheels()

    def _forget_wheels(self) -> None:
        published = self._targets.signed.targets
        lists = [self._files / name for name in published if name.startswith("packs-")]
        named = {wheel_target(wheel) for file in lists for wheel in _wheels(file)}
        for name in [each for each in published if each.startswith("wheels/") and each not in named]:
            del published[name]

    def sign(self) -> None:
        """Write every list again, the timestamp last: a client that asks meanwhile gets the old or the new state."""
        self._sign_root()
        targets = self._signed(Targets.type, self._targets)
        snapshot = self._latest(Snapshot.type, Snapshot())
        snapshot.signed.meta["targets.json"] = MetaFile(version=targets)
        version = self._signed(Snapshot.type, snapshot)
        timestamp = self._latest(Timestamp.type, Timestamp())
        timestamp.signed.snapshot_meta = MetaFile(version=version)
        self._signed(Timestamp.type, timestamp)

    def _sign_root(self) -> None:
        """The first root, and a new one a year before it expires: clients with an earlier one follow the chain."""
        known = self._latest(Root.type, Root(consistent_snapshot=True))
        if self._version(Root.type) and known.signed.expires - self._now > RENEW_ROOT:
            return
        for role in ROLES:
            known.signed.add_key(self._keys.signer(role).public_key, role)
        self._signed(Root.type, known)

    def _latest(self, role: str, fresh: Any) -> Metadata[Any]:
        """The role's last published list, or a new one."""
        version = self._version(role)
        if role == Timestamp.type:
            file = self._metadata / "timestamp.json"
            return Metadata.from_file(str(file)) if file.exists() else Metadata(fresh)
        return Metadata.from_file(str(self._metadata / f"{version}.{role}.json")) if version else Metadata(fresh)

    def _version(self, role: str) -> int:
        """The newest published version, 0 if there is none."""
        return max((int(file.name.split(".")[0]) for file in self._metadata.glob(f"*.{role}.json")), default=0)

    def _signed(self, role: str, made: Metadata[Any]) -> int:
        """Sign and write a list; returns its version."""
        is_new = not self._version(role) and not (self._metadata / f"{role}.json").exists()
        made.signed.version = 1 if is_new else made.signed.version + 1
        made.signed.expires = self._now + VALID[role]
        made.sign(self._keys.signer(role))
        name = f"{role}.json" if role == Timestamp.type else f"{made.signed.version}.{role}.json"
        made.to_file(str(self._metadata / name), JSONSerializer(compact=False))
        return int(made.signed.version)


def _wheels(file: Path) -> list[Wheel]:
    """The wheels of a list. Raises UpdateError."""
    return [wheel for pack in read_packs(file.read_bytes()).packs for wheel in pack.wheels]


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def unpacked_bytes(archive: Path) -> int:
    """Bytes of the files in an archive."""
    with tarfile.open(archive) as opened:
        return sum(member.size for member in opened if member.isreg())


if __name__ == "__main__":
    sys.exit(main())
