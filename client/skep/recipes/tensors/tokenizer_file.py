"""Reading of a tokenizer.json with the tokenizers library."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tokenizers import Tokenizer

from skep.core.errors import DataError
from skep.core.text import Text

MASK_TOKENS: Final = ("[MASK]", "<mask>")
_PUBLISHER: Final = Text("web.tell_project_publisher")


def open_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in the file. Raises DataError."""
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 - the library raises plain Exception for whatever it does not understand
        why = str(error).partition("\n")[0][:120]
        raise DataError(
            Text("tokenizer_file.tokenizer_cannot_read", why=why), Text("tokenizer_file.must_tokenizer_json")
        ) from None


def mask_token(path: Path, vocabulary: int) -> int:
    """The id of the token that hides another. Raises DataError when there is none, or the model has too few tokens."""
    tokenizer = open_tokenizer(path)
    size = tokenizer.get_vocab_size()
    if size > vocabulary:
        raise DataError(
            Text("tokenizer_file.project_tokenizer_has_tokens_where", size=size, vocabulary=vocabulary), _PUBLISHER
        )
    for name in MASK_TOKENS:
        found: int | None = tokenizer.token_to_id(name)
        if found is not None:
            return found
    one, other = MASK_TOKENS
    raise DataError(Text("tokenizer_file.project_tokenizer_has_no_token", one=one, other=other), _PUBLISHER)
