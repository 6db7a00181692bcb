"""The file of diagnostics as text: sections with a title each, and nothing in it that says who or where the person is. Pure.

It must not know how anything was found out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skep.core.redact import redact

SHORTEST_NAME: Final = 3
"""Characters; a shorter name would be masked inside half of all words."""


@dataclass(frozen=True)
class Section:
    title: str
    lines: Sequence[str] = ()


def written(sections: Sequence[Section], home: str, names: Mapping[str, str]) -> str:
    """All sections, redacted. `home` is the user's folder; `names` are further texts and what stands in their place.

    A path is masked wherever it stands, a bare name only where it is a word of its own.
    """
    text = "\n".join(f"== {each.title}\n{_lines(each)}\n" for each in sections)
    for path in sorted(filter(_is_path, names), key=len, reverse=True):
        text = text.replace(path, names[path])
    text = redact(text, home)
    for name in sorted((each for each in names if not _is_path(each)), key=len, reverse=True):
        text = _without_name(text, name, names[name])
    return text


def _lines(section: Section) -> str:
    return "\n".join(section.lines) or "nothing"


def _is_path(name: str) -> bool:
    return "/" in name or "\\" in name


def _without_name(text: str, name: str, mask: str) -> str:
    if len(name) < SHORTEST_NAME:
        return text
    return re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", lambda _: mask, text)
