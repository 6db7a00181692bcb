"""What a project asks for, as a person reads it before joining: downloads, sends, uses at most. Pure."""

from __future__ import annotations

import base64
from dataclasses import asdict
from typing import Any

from skep.cli import words
from skep.cli.present import Line, Span
from skep.cli.theme import Tone
from skep.core.fit import GB, Fit, Verdict, parameters_of, traffic_per_epoch
from skep.core.manifest import Manifest
from skep.core.manifest_warnings import warnings

_BADGE = {Verdict.FITS: "Fits.", Verdict.FITS_GENTLY: "Fits gently.", Verdict.TOO_BIG: ""}
_MEMBERS = {"open": "everybody", "invited": "invited computers only; skep project accept keeps your invitation"}
_TONES = {Verdict.FITS: Tone.LEAF, Verdict.FITS_GENTLY: Tone.HONEY, Verdict.TOO_BIG: Tone.EMBER}


def outline(manifest: Manifest) -> dict[str, Any]:
    """What names the project and its publisher, as JSON."""
    return {
        "id": manifest.id,
        "title": manifest.title,
        "run_id": manifest.run_id,
        "revision": manifest.revision,
        "fingerprint": manifest.fingerprint,
        "publisher": manifest.publisher.name,
        "expires": manifest.expires.isoformat(),
    }


def body(manifest: Manifest, fit: Fit) -> dict[str, Any]:
    """The whole manifest and the fit, as JSON."""
    publisher = {"name": manifest.publisher.name, "key": f"ed25519:{base64.b64encode(manifest.publisher.key).decode()}"}
    whole = asdict(manifest) | {"publisher": publisher, "expires": manifest.expires.isoformat()}
    return {
        "manifest": whole,
        "run_id": manifest.run_id,
        "fingerprint": manifest.fingerprint,
        "parameters": parameters_of(manifest),
        "traffic_per_epoch": asdict(traffic_per_epoch(manifest)),
        "fit": {"verdict": str(fit.verdict), "reasons": list(fit.reasons)},
        "warnings": list(warnings(manifest)),
    }


def lines(manifest: Manifest, fit: Fit) -> list[Line]:
    """The permission page, top to bottom."""
    traffic = traffic_per_epoch(manifest)
    needs = manifest.needs
    rows = [
        ("Published by", f"{manifest.publisher.name}, {manifest.fingerprint}"),
        ("Revision", f"{manifest.revision}, valid until {manifest.expires:%Y-%m-%d}"),
        ("Open to", _MEMBERS[manifest.membership]),
        ("Licence", manifest.license),
        ("Homepage", manifest.homepage),
        ("Model", f"{manifest.recipe.model.type}, {words.number(parameters_of(manifest))} parameters"),
        ("Downloads", _downloads(manifest)),
        ("Sends", f"what training found, not your files: up to {words.size(traffic.up)} each epoch, to other peers"),
        ("Uses at most", f"{_gb(needs.memory_gb)} of memory, {_gb(needs.disk_gb)} of disk"),
        ("", f"and on a GPU {_gb(needs.vram_gb)} of its memory; {needs.upload_mbit:g}{words.THIN}Mbit/s upload"),
    ]
    shown: list[Line] = [(Span(manifest.title, Tone.STRONG),), (Span(manifest.summary),), (Span(""),)]
    shown += [(Span(f"{label:<14}", Tone.SOFT), Span(text)) for label, text in rows]
    shown += [(Span(""),), *((Span(sentence, _TONES[fit.verdict]),) for sentence in verdict(fit))]
    return shown + [(Span(sentence, Tone.HONEY),) for sentence in warnings(manifest)]


def verdict(fit: Fit) -> list[str]:
    """The fit in sentences."""
    return [sentence for sentence in (_BADGE[fit.verdict], *fit.reasons) if sentence]


def _downloads(manifest: Manifest) -> str:
    files = (
        f"{file.name}{f' of {words.size(file.bytes)}' if file.bytes else ''} from {file.address}"
        for file in manifest.recipe.files
    )
    return ", ".join((f"training data listed at {manifest.data.index}", *files, "and the swarm's model"))


def _gb(count: float) -> str:
    return words.size(round(count * GB))
