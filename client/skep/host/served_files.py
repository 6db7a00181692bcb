"""Which files a project's web server hands out: the manifest, its signature, the index and the shards it lists.

It must not serve anything; it looks at the files once, so that what is missing is said before anybody asks for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from skep.adapters.signing import SIGNATURE_SUFFIX
from skep.core.errors import BadInput, DataError
from skep.core.manifest import Manifest
from skep.core.model import ShardIndex
from skep.core.shards import INDEX_BYTES_LIMIT, parse_index, shard_name


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
                f"The shard {path.name} in {data} is missing or of another size than the index says.",
                "Make the folder of shards again, or copy it whole.",
            )
        files[path.name] = path
    return files


def _index(manifest: Manifest, path: Path) -> ShardIndex:
    try:
        with path.open("rb") as file:
            raw = file.read(INDEX_BYTES_LIMIT + 1)
    except OSError as error:
        raise BadInput(
            f"The index {path} cannot be read: {error.strerror or error}.",
            "Give --data the folder of the index that the manifest names.",
        ) from None
    if hashlib.sha256(raw).hexdigest() != manifest.data.sha256:
        raise BadInput(
            f"The index {path} is not the one that the manifest names.",
            "Put the index's SHA-256 into data.sha256 of the manifest and sign it again, or give the right folder.",
        )
    try:
        return parse_index(raw, manifest.recipe.layout)
    except DataError as error:
        raise BadInput(error.title, "Make the folder of shards again.") from None
