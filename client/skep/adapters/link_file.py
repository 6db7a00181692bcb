"""A `.skep` file: one join link as text, so that a project can be handed over as a file that the desktop opens.

It must not follow the link.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from skep.core.errors import BadInput
from skep.core.links import EXAMPLE, LENGTH_LIMIT, is_link

SUFFIX: Final = ".skep"


def resolved(source: str) -> str:
    """The link in the file that `source` names; a path when it names another file; else `source`. Raises BadInput.

    Desktops name files by path or as file: addresses.
    """
    if source.startswith("file:"):
        source = url2pathname(urlsplit(source).path)
    if "://" in source or not source.lower().endswith(SUFFIX):
        return source
    path = Path(source)
    try:
        with path.open("rb") as file:
            raw = file.read(LENGTH_LIMIT + 1)
        text = raw.decode("utf-8").strip()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}.", "Check the path.") from None
    except UnicodeDecodeError:
        text = ""
    if len(raw) > LENGTH_LIMIT or not is_link(text):
        raise BadInput(f"{path} holds no join link.", f"It would be one line such as {EXAMPLE}.")
    return text
