"""Redaction of logs and reports: masks the user's name and folder, the addresses of peers, and secrets. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

ADDRESS: Final = "[address]"
KEY: Final = "[key]"
SECRET: Final = "[secret]"  # noqa: S105 - the mask, not a secret
HOME: Final = "~"

_PEM: Final = re.compile(r"-----BEGIN [^-\n]{1,40}-----.*?(-----END [^-\n]{1,40}-----|\Z)", re.DOTALL)
_USERINFO: Final = re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://)[^\s/@?#]+@", re.IGNORECASE)
_PARAMETER: Final = re.compile(
    r"([?&;](?:[a-z0-9]+[_-])*(?:token|secret|password|passwd|passphrase|signature|sig|auth|apikey|key)=)"
    r"[^&;#\s\"'<>]+",
    re.IGNORECASE,
)
_AUTHORIZATION: Final = re.compile(r"(\bauthorization\W{1,4}(?:\w+\s+)?)[^\s\"',;]+", re.IGNORECASE)
_PREFIXED_KEY: Final = re.compile(r"\b(ed25519|rsa|secp256k1):[A-Za-z0-9+/_=-]{8,}")
_LONG_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{40,}={0,2}")
# a whole part of a path, so that a key that contains such letters is still masked
_PEER_ID: Final = re.compile(
    r"(?<![A-Za-z0-9+])(?:Qm[1-9A-HJ-NP-Za-km-z]{44}|12D3Koo[1-9A-HJ-NP-Za-km-z]{45})(?![A-Za-z0-9+=])"
)
_IPV4: Final = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
_IPV6: Final = re.compile(r"(?<![\w:.])(?=[0-9a-f.]*:[0-9a-f.]*:)[0-9a-f:.]{3,}(%\w{1,16})?", re.IGNORECASE)


def redact(text: str, home: str = "") -> str:
    """`text` without secrets, keys, foreign IP addresses and the path of the user's folder `home` (absolute)."""
    text = _PEM.sub(KEY, text)
    text = _USERINFO.sub(rf"\1{SECRET}@", text)
    text = _PARAMETER.sub(rf"\1{SECRET}", text)
    text = _AUTHORIZATION.sub(rf"\1{SECRET}", text)
    text = _without_home(text, home)
    text = _PREFIXED_KEY.sub(rf"\1:{KEY}", text)
    text = _LONG_BASE64.sub(_key, text)
    text = _IPV6.sub(_address, text)
    return _IPV4.sub(_address, text)


def _without_home(text: str, home: str) -> str:
    trimmed = home.rstrip("/\\")
    return re.sub(rf"(?<![\w.]){re.escape(trimmed)}(?![\w.-])", HOME, text) if trimmed else text


def _key(found: re.Match[str]) -> str:
    """Random base64 of this length has upper-case and lower-case letters and digits; hashes in hex and words do not."""
    run = found.group()
    if _PEER_ID.search(run):
        return run
    looks_random = all(re.search(kind, run) for kind in ("[A-Z]", "[a-z]", "[0-9]"))
    return KEY if looks_random else run


def _address(found: re.Match[str]) -> str:
    run = found.group()
    # a port may follow without brackets, and an address may be followed by the end of a sentence
    for bare in (run, run.rstrip(".:"), run.rstrip(".:").rpartition(":")[0]):
        try:
            address = ipaddress.ip_address(bare)
        except ValueError:
            continue
        return run if _harmless(address) else ADDRESS + run[len(bare) :]
    return run


def _harmless(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback or address.is_unspecified)


SHORTEST_NAME: Final = 3
"""Characters; shorter names occur in too many other words."""


@dataclass(frozen=True)
class Section:
    title: str
    lines: Sequence[str] = ()


def redacted_report(sections: Sequence[Section], home: str, names: Mapping[str, str]) -> str:
    """All sections, redacted. `home` is the user's folder; `names` maps further texts to their replacements.

    A path is masked wherever it occurs, a name only as a whole word.
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
