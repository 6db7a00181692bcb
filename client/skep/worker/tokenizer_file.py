"""Reads a tokenizer.json, with the library it is made for. It must not download one, nor turn text into shards."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tokenizers import Tokenizer

from skep.core.errors import DataError

MASK_TOKENS: Final = ("[MASK]", "<mask>")
_PUBLISHER: Final = "Tell the project's publisher."


def open_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in the file. Raises DataError."""
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 - the library raises plain Exception for whatever it does not understand
        why = str(error).partition("\n")[0][:120]
        raise DataError(f"The tokenizer cannot be read: {why}.", "It must be a tokenizer.json.") from None


def mask_token(path: Path, vocabulary: int) -> int:
    """The id of the token that hides another. Raises DataError when there is none, or the model has too few tokens."""
    tokenizer = open_tokenizer(path)
    size = tokenizer.get_vocab_size()
    if size > vocabulary:
        raise DataError(f"The project's tokenizer has {size} tokens where the model has {vocabulary}.", _PUBLISHER)
    for name in MASK_TOKENS:
        found: int | None = tokenizer.token_to_id(name)
        if found is not None:
            return found
    raise DataError(
        f"The project's tokenizer has no token {' or '.join(MASK_TOKENS)}, which masked-lm needs.", _PUBLISHER
    )
