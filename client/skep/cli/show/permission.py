"""The resources that a project needs, for display before joining: downloads, uploads, limits. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from skep.cli.show.speech import numbers, say, tr
from skep.cli.show.terminal import Line, Span, Tone
from skep.core.plain_text import plain
from skep.core.project.data import FileRef
from skep.core.project.fields import key_text
from skep.core.project.fit import Fit, Verdict, warnings
from skep.core.project.manifest import Manifest
from skep.core.project.needs import GB, parameters_of, traffic_per_epoch
from skep.core.sandbox import Sandbox
from skep.language import units

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


def body(manifest: Manifest, fit: Fit, sandbox: Sandbox | None) -> dict[str, Any]:
    """The whole manifest, the fit, and what the training process is kept from, as JSON; None if that is unknown."""
    traffic = traffic_per_epoch(manifest)
    publisher = {"name": manifest.publisher.name, "key": key_text(manifest.publisher.key)}
    whole = asdict(manifest) | {"publisher": publisher, "expires": manifest.expires.isoformat()}
    return {
        "manifest": whole,
        "run_id": manifest.run_id,
        "fingerprint": manifest.fingerprint,
        "parameters": parameters_of(manifest),
        "traffic_per_epoch": {"up": traffic, "down": traffic},
        "fit": {"verdict": str(fit.verdict), "reasons": list(fit.reasons)},
        "warnings": list(warnings(manifest)),
        "sandbox": None if sandbox is None else {"enforced": sandbox.enforced, "missing": sandbox.missing},
    }


def lines(manifest: Manifest, fit: Fit, sandbox: Sandbox | None) -> list[Line]:
    """The permission page, top to bottom. `sandbox` is what the training process is kept from here, None if unknown."""
    needs = manifest.needs
    parameters = units.number(parameters_of(manifest))
    memory, until = _gb(needs.memory_gb), numbers().date(manifest.expires)
    size = numbers().size(traffic_per_epoch(manifest))
    sends = tr(
        "results of training, not your files: up to {size} each epoch, and again where a round is repeated; copies of the "
        "model to peers that ask",
        size=size,
    )
    upload = f"{numbers().short(needs.upload_mbit)}{units.THIN}Mbit/s"
    rows = [
        (tr("Published by"), f"{manifest.publisher.name}, {manifest.fingerprint}"),
        (tr("Revision"), tr("{revision}, valid until {date}", revision=manifest.revision, date=until)),
        (tr("Open to"), _members(manifest)),
        (tr("Licence"), manifest.license),
        *([(tr("Homepage"), manifest.homepage)] if manifest.homepage else []),
        (tr("Model"), tr("{kind}, {parameters} parameters", kind=manifest.recipe.model_type, parameters=parameters)),
        (tr("Downloads"), _downloads(manifest)),
        (tr("Sends"), sends),
        (
            tr("Others see"),
            tr(
                "this computer's network address; peers also its identity, which is the same in all projects by invitation, "
                "how fast it trains, and which data it has used"
            )
            if manifest.by_invitation
            else tr(
                "this computer's network address; peers also its identity, which it has in this project only, how fast it "
                "trains, and which data it has used"
            ),
        ),
        (tr("Needs"), tr("{memory} of memory, {disk} of disk", memory=memory, disk=_gb(needs.disk_gb))),
        ("", tr("and on a GPU {memory} of its memory; {upload} upload", memory=_gb(needs.vram_gb), upload=upload)),
        ("", tr("as its publisher says; your limits in the settings hold, whatever it needs")),
        *_protection(sandbox),
    ]
    verdict = (_badge(fit.verdict), *map(say, fit.reasons))
    shown: list[Line] = [(Span(manifest.title, Tone.STRONG),), (Span(manifest.summary),), (Span(""),)]
    shown += [(Span(f"{label:<14}", Tone.SOFT), Span(text)) for label, text in rows]
    shown += [(Span(""),), *((Span(sentence, _TONES[fit.verdict]),) for sentence in verdict if sentence)]
    return shown + [(Span(say(sentence), Tone.HONEY),) for sentence in warnings(manifest)]


def _protection(sandbox: Sandbox | None) -> list[tuple[str, str]]:
    if sandbox is None:
        return [(tr("Kept from"), tr("unknown: skep doctor says what it found"))]
    enforced = "; ".join(say(guard.label) for guard in sandbox.enforced)
    missing = [f"{say(guard.label)} ({plain(why)})" for guard, why in sandbox.missing.items()]
    return [
        *([(tr("Kept from"), enforced)] if enforced else []),
        *([(tr("Not kept from"), "; ".join(missing))] if missing else []),
    ]


def _members(manifest: Manifest) -> str:
    if not manifest.by_invitation:
        return tr("all computers")
    return tr("invited computers only; skep project accept keeps your invitation")


def _badge(verdict: Verdict) -> str:
    match verdict:
        case Verdict.FITS:
            return tr("Fits.")
        case Verdict.FITS_GENTLY:
            return tr("Fits, with limits.")
        case Verdict.TOO_BIG:
            return ""


def _downloads(manifest: Manifest) -> str:
    index = tr("training data listed at {address}", address=manifest.data.index)
    lists = (tr("every hour the list of revoked invitations"),) if manifest.by_invitation else ()
    model = tr("and the publisher's signed checkpoint") if manifest.begins_signed else tr("and the swarm's model")
    return ", ".join((index, *map(_download, manifest.recipe.files), *lists, model))


def _download(file: FileRef) -> str:
    if not file.bytes:
        return tr("{name} from {address}", name=file.name, address=file.address)
    return tr("{name} of {size} from {address}", name=file.name, size=numbers().size(file.bytes), address=file.address)


def _gb(count: float) -> str:
    return numbers().size(round(count * GB))
