"""Versions of skep, and the notice of an update repository about the newest release. Pure.

Versions are three numbers, as in `skep.__version__`. The text of a release is untrusted and is shown as plain text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from skep.core.errors import UpdateError
from skep.core.plain_text import plain
from skep.core.strict_json import read_object
from skep.core.text import Text

NOTICE_LIMIT: Final = 16 * 1024
NOTES_LONGEST: Final = 2000
LARGEST_BYTES: Final = 50_000_000_000
PERIOD: Final = timedelta(days=1)
"""The interval between checks for updates while skep runs; there is also one at each start."""
APP_ALONE: Final = "app-"
"""Before the system's name where skep comes without a training stack, which compute packs replace."""
_VERSION: Final = re.compile(r"(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})")
_ARCHIVE: Final = re.compile(r"skep-[0-9.]{5,30}-[a-z0-9_-]{3,40}\.tar\.xz")


@dataclass(frozen=True)
class Release:
    """One published version for one kind of computer. `unpacked` is in bytes on disk."""

    version: str
    archive: str
    unpacked: int
    notes: str = ""


def notice_name(system: str, machine: str) -> str:
    """The name of the repository's file about the newest release for a system and machine, such as linux and x86_64."""
    return f"skep-{system}-{machine}.json"


def archive_name(version: str, system: str, machine: str) -> str:
    return f"skep-{version}-{system}-{machine}.tar.xz"


def read_notice(raw: bytes) -> Release:
    """The release in a notice; unknown fields of later versions are ignored. Raises UpdateError."""
    body = read_object(raw, NOTICE_LIMIT, _refused)
    version, archive = body.get("version"), body.get("archive")
    unpacked, notes = body.get("unpacked_bytes"), body.get("notes", "")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise _refused(Text("update.version_not_three_numbers"))
    if not isinstance(archive, str) or not _ARCHIVE.fullmatch(archive):
        raise _refused(Text("update.names_no_archive"))
    if isinstance(unpacked, bool) or not isinstance(unpacked, int) or not 0 < unpacked <= LARGEST_BYTES:
        raise _refused(Text("update.does_not_say_how_much"))
    if not isinstance(notes, str):
        raise _refused(Text("update.notes_not_text"))
    return Release(version, archive, unpacked, "\n".join(plain(line) for line in notes[:NOTES_LONGEST].splitlines()))


def notice(release: Release) -> dict[str, Any]:
    """The notice for a release, as `read_notice` reads it."""
    return {
        "version": release.version,
        "archive": release.archive,
        "unpacked_bytes": release.unpacked,
        "notes": release.notes,
    }


def is_version(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


def is_newer(version: str, than: str) -> bool:
    """Whether `version` is newer than `than`."""
    return _numbers(version) > _numbers(than)


def is_due(last: datetime | None, now: datetime) -> bool:
    """Whether to check again. A last time in the future was written with a wrong clock and is ignored."""
    return last is None or not timedelta() <= now - last < PERIOD


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def _refused(why: Text) -> UpdateError:
    return UpdateError(Text("update.description_unreadable", why=why), TRY_LATER)


TRY_LATER: Final = Text("update.skep_goes_looks_again_tomorrow")
