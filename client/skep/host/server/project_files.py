"""The files of a project in the operator's folder: those that its recipe needs besides samples, and those to serve.

All files are checked in advance, so that missing ones are reported before they are needed.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from skep.adapters.storage.files import os_errors
from skep.adapters.storage.signed_checkpoints import read_note
from skep.adapters.storage.signing import SIGNATURE_SUFFIX
from skep.core.errors import BadInput, CheckpointError, DataError
from skep.core.project import revocation, signed_checkpoint
from skep.core.project.data import FileRef, Recipe, ShardIndex
from skep.core.project.manifest import Manifest
from skep.core.project.shards import INDEX_BYTES_LIMIT, parse_index, shard_name
from skep.core.text import Text


def find_files(recipe: Recipe, folder: Path | None) -> dict[str, Path]:
    """Paths of the recipe's files in `folder`, named as in their addresses, by the recipe's names.

    Raises BadInput for the first file that is missing or has another hash.
    """
    return {wanted.name: _found(wanted, folder) for wanted in recipe.files}


def _found(wanted: FileRef, folder: Path | None) -> Path:
    name = _name(wanted.address) or wanted.sha256
    if folder is None:
        raise BadInput(
            Text("recipe_files.project_needed_build_model", name=wanted.name),
            Text("recipe_files.give_folder_holds", name=name),
        )
    path = folder / name
    said = os_errors(
        Text("recipe_files.project_cannot_read_from", name=wanted.name, path=str(path)),
        Text("recipe_files.download_from_address_manifest_into"),
        BadInput,
    )
    with said, path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != wanted.sha256:
        raise BadInput(
            Text("recipe_files.not_file_manifest_names", path=str(path)),
            Text("recipe_files.download_again_from_address_manifest"),
        )
    return path


def _name(address: str) -> str:
    return urlsplit(address).path.rpartition("/")[2]


def served_files(manifest: Manifest, data: Path, name: str, text: Path, signature: Path) -> Mapping[str, Path]:
    """Each file by its name in requests. `name` is the manifest's, `text` and `signature` are its files here.

    The recipe's files, which `find_files` has checked, are served where the manifest names them beside the index.
    Raises BadInput, DataError if the folder `data` does not contain the data that the manifest names.
    """
    place, _, _ = manifest.data.index.rpartition("/")
    index_name = _name(manifest.data.index)
    index = _index(manifest, data / index_name)
    files = {name: text, f"{name}{SIGNATURE_SUFFIX}": signature, index_name: data / index_name}
    for shard in (*index.shards, *index.held_out):
        path = data / shard_name(shard.sha256)
        if not path.is_file() or path.stat().st_size != shard.bytes:
            raise BadInput(
                Text("served_files.shard_missing_another_size_than", name=path.name, data=str(data)),
                Text("served_files.make_folder_shards_again_copy"),
            )
        files[path.name] = path
    beside = [_name(each.address) for each in manifest.recipe.files if each.address.rpartition("/")[0] == place]
    files |= {file: data / file for file in beside}
    if manifest.by_invitation:  # which may be put there later, and is read for each request
        listed = revocation.file_name(manifest)
        files[listed] = data / listed
    return WithCheckpoint(files, manifest, data) if manifest.begins_signed else files


class WithCheckpoint(Mapping[str, Path]):
    """`files`, the note of the signed checkpoint in the folder `data`, and each checkpoint that it has named.

    The publisher may put them there at any time.
    """

    def __init__(self, files: Mapping[str, Path], manifest: Manifest, data: Path) -> None:
        self._note = signed_checkpoint.file_name(manifest.id)
        self._files = {**files, self._note: data / self._note}
        self._manifest, self._data = manifest, data
        self._named: dict[str, Path] = {}
        """Earlier ones too, whose download may be under way."""

    def __getitem__(self, name: str) -> Path:
        if name == self._note or name not in self._files:
            self._look()
        return (self._named | self._files)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named | self._files)

    def __len__(self) -> int:
        return len(self._named | self._files)

    def _look(self) -> None:
        with contextlib.suppress(CheckpointError):  # the volunteers, who read the note too, say what is wrong with it
            if found := read_note(self._files[self._note], self._manifest):
                name = shard_name(found.sha256)
                self._named = {**self._named, name: self._data / name}


def _index(manifest: Manifest, path: Path) -> ShardIndex:
    said = os_errors(
        Text("served_files.index_cannot_read", path=str(path)),
        Text("served_files.give_data_folder_index_manifest"),
        BadInput,
    )
    with said, path.open("rb") as file:
        raw = file.read(INDEX_BYTES_LIMIT + 1)
    if hashlib.sha256(raw).hexdigest() != manifest.data.sha256:
        raise BadInput(
            Text("served_files.index_not_one_manifest_names", path=str(path)),
            Text("served_files.put_index_sha_256_into"),
        )
    try:
        return parse_index(raw, manifest.recipe.layout)
    except DataError as error:
        raise BadInput(error.title, Text("served_files.make_folder_shards_again")) from None
