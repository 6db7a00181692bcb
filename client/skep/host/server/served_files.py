"""Which files a project's web server hands out: the manifest, its signature, the index and the shards it lists.

It must not serve anything; it looks at the files once, so that what is missing is said before anybody asks for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from skep.adapters.storage.signing import SIGNATURE_SUFFIX
from skep.core.errors import BadInput, DataError
from skep.core.project.data import ShardIndex
from skep.core.project.manifest import Manifest
from skep.core.project.shards import INDEX_BYTES_LIMIT, parse_index, shard_name
from skep.core.text import Text


def served_files(manifest: Manifest, data: Path, name: str, text: Path, signature: Path) -> Mapping[str, Path]:
    """Each file by the name it is asked for. `name` is the manifest's own, `text` and `signature` lie here.

    Raises BadInput, DataError when the folder `data` does not hold the data that the manifest names.
    """
    index_name = urlsplit(manifest.data.index).path.rpartition("/")[2]
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
    return files


def _index(manifest: Manifest, path: Path) -> ShardIndex:
    try:
        with path.open("rb") as file:
            raw = file.read(INDEX_BYTES_LIMIT + 1)
    except OSError as error:
        raise BadInput(
            Text("served_files.index_cannot_read", path=str(path), reason=str(error.strerror or error)),
            Text("served_files.give_data_folder_index_manifest"),
        ) from None
    if hashlib.sha256(raw).hexdigest() != manifest.data.sha256:
        raise BadInput(
            Text("served_files.index_not_one_manifest_names", path=str(path)),
            Text("served_files.put_index_sha_256_into"),
        )
    try:
        return parse_index(raw, manifest.recipe.layout)
    except DataError as error:
        raise BadInput(error.title, Text("served_files.make_folder_shards_again")) from None
