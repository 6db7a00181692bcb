"""Projects as cards, and what a project asks for as three lists: downloads, sends, maximum use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from skep.core.plain_text import plain
from skep.core.project.fit import PEERS, Estimate, Fit, Verdict, warnings
from skep.core.project.manifest import Manifest, VerifiedProject
from skep.core.project.needs import GB, parameters_of, traffic_per_epoch
from skep.core.sandbox import Sandbox
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem, Text
from skep.language import units
from skep.language.units import roughly
from skep_gui.words.speaker import Speaker, Tongue, filled

PRACTICE: Final = "practice"
"""The id of the practice swarm's project."""
PRACTICE_TITLE: Final = Text("practice.title")


class Tone(StrEnum):
    """The meaning of a coloured text; the theme defines the colours."""

    SOFT = "soft"
    WELL = "well"
    GENTLE = "gentle"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Known:
    """A project of this home; `problem` says why it cannot be joined now, such as expired.

    `kept`: this computer has a model of it; `finished`: that of the run's end.
    """

    project: VerifiedProject
    fit: Fit
    problem: Problem | None = None
    estimate: Estimate | None = None
    kept: bool = False
    finished: bool = False


@dataclass(frozen=True)
class Badge:
    text: str
    tone: Tone
    explained: str = ""


@dataclass(frozen=True)
class Card:
    id: str
    title: str
    summary: str
    publisher: str
    badge: Badge
    traffic: str
    needs: str = ""
    """Memory, disk and samples an hour, estimated."""
    state: str = ""
    active: bool = False
    joinable: bool = True
    over: str = ""
    """That the run is finished, and its model here."""


@dataclass(frozen=True)
class Permissions:
    """The permission page. Each list holds whole sentences or phrases, plain text."""

    title: str
    summary: str
    downloads: tuple[str, ...]
    sends: tuple[str, ...]
    uses: tuple[str, ...]
    """What it needs, as the publisher says, and what limits it."""
    facts: tuple[tuple[str, str], ...]
    """Label and text: publisher, licence, homepage in full."""
    remarks: tuple[str, ...] = ()
    joinable: bool = True


def title_in(tongue: Tongue, project_id: str, title: str) -> str:
    """A project's title as plain text; the practice swarm's is translated."""
    return tongue.said(PRACTICE_TITLE) if project_id == PRACTICE else plain(title)


def titled(snapshot: Snapshot, tongue: Tongue) -> Snapshot:
    """The snapshot with the practice swarm's title translated."""
    project = snapshot.project
    if project is None or project.id != PRACTICE:
        return snapshot
    return replace(snapshot, project=replace(project, title=tongue.said(PRACTICE_TITLE)))


class Projects(Speaker):
    def card(self, known: Known, snapshot: Snapshot) -> Card:
        plan = known.project.manifest
        active = snapshot.project is not None and snapshot.project.id == known.project.id
        return Card(
            id=known.project.id,
            title=plain(plan.title),
            summary=plain(plan.summary),
            publisher=f"{plain(plan.publisher.name)} · {plan.fingerprint}",
            badge=self.badge(known),
            traffic=self.traffic(plan, known.estimate),
            needs=self.needs(known.estimate),
            state=self.state(snapshot) if active else "",
            active=active,
            over=self._over(known),
            joinable=known.fit.verdict is not Verdict.TOO_BIG and known.problem is None,
        )

    def _over(self, known: Known) -> str:
        return self.tr("The run is finished. Its model is on this computer.") if known.finished else ""

    def traffic(self, plan: Manifest, estimate: Estimate | None) -> str:
        """Upload and download: per hour if estimated, otherwise per epoch."""
        if estimate is None:
            return filled(self.tr("up to %1 each way per epoch"), self.numbers.size(traffic_per_epoch(plan)))
        size = self.numbers.rough_size(estimate.traffic)
        return filled(self.tr("about %1 up and %2 down an hour"), size, size)

    def needs(self, estimate: Estimate | None) -> str:
        if estimate is None:
            return ""
        parts = [filled(self.tr("%1 of memory"), self.numbers.size(estimate.memory))]
        if estimate.device is not None:
            parts.append(filled(self.tr("%1 of GPU memory"), self.numbers.size(estimate.device)))
        parts.append(filled(self.tr("%1 of disk"), self.numbers.size(estimate.disk)))
        parts.append(self._samples(estimate))
        return " · ".join(parts)

    def _samples(self, estimate: Estimate) -> str:
        return filled(self.tr("about %1 samples an hour"), units.number(roughly(estimate.samples)))

    def practice(self, snapshot: Snapshot, *, starting: bool) -> Card:
        """The card of the practice swarm before its first start."""
        return Card(
            id=PRACTICE,
            title=self.said(PRACTICE_TITLE),
            summary=self.tr(
                "A small swarm on this computer, to try skep. A small model learns to write Python. "
                "No data leaves this computer."
            ),
            publisher=self.tr("This computer"),
            badge=Badge(self.tr("Fits"), Tone.WELL),
            traffic=self.tr("no network traffic"),
            state=self.practice_state(snapshot, starting=starting),
            active=starting or (snapshot.project is not None and snapshot.project.id == PRACTICE),
        )

    def title(self, known: Known) -> str:
        return title_in(self.tongue, known.project.id, known.project.title)

    def practice_state(self, snapshot: Snapshot, *, starting: bool) -> str:
        if snapshot.project is not None and snapshot.project.id == PRACTICE:
            return self.state(snapshot)
        return self.tr("Starting the practice swarm …") if starting else ""

    def badge(self, known: Known) -> Badge:
        if known.problem is not None:
            return Badge(self.tr("Not available"), Tone.PROBLEM, self.tongue.told(known.problem))
        reasons = " ".join(map(self.said, known.fit.reasons))
        match known.fit.verdict:
            case Verdict.FITS:
                return Badge(self.tr("Fits"), Tone.WELL, self.tr("This computer has all that the project needs."))
            case Verdict.FITS_GENTLY:
                return Badge(self.tr("Fits, with limits"), Tone.GENTLE, reasons)
            case Verdict.TOO_BIG:
                return Badge(self.tr("Too big"), Tone.PROBLEM, reasons)

    def state(self, snapshot: Snapshot) -> str:
        """The state of the active project in two or three words."""
        match snapshot.phase:
            case Phase.IDLE:
                return ""
            case Phase.JOINING:
                return self.tr("Joining")
            case Phase.TRAINING:
                return self.tr("Waiting") if snapshot.waiting else self.tr("Training")
            case Phase.PAUSED:
                return self.tr("Paused")
            case Phase.RECOVERING:
                return self.tr("Trying again")
            case Phase.LEAVING:
                return self.tr("Leaving")

    def permissions(self, known: Known) -> Permissions:
        """What the project downloads, sends and uses, from its signed manifest."""
        plan = known.project.manifest
        remarks = tuple(map(self.said, (*known.fit.reasons, *warnings(plan))))
        if known.problem is not None:
            remarks = (self.tongue.told(known.problem), *remarks)
        return Permissions(
            title=plain(plan.title),
            summary=plain(plan.summary),
            downloads=self._downloads(plan),
            sends=(*self._hourly(known.estimate), *self._sends(plan)),
            uses=self._uses(plan, known),
            facts=self._facts(plan),
            remarks=remarks,
            joinable=known.problem is None and known.fit.verdict is not Verdict.TOO_BIG,
        )

    def protection(self, found: Sandbox | None) -> tuple[str, ...]:
        """What this system keeps the training process from; None if that could not be tried."""
        if found is None:
            return (self.tr("What this system keeps it from could not be tried; the log has the details"),)
        kept = tuple(self.said(guard.label) for guard in found.enforced)
        lacking = self.tr("Not on this system: %1 (%2)")
        return (*kept, *(filled(lacking, self.said(guard.label), plain(why)) for guard, why in found.missing.items()))

    def _downloads(self, plan: Manifest) -> tuple[str, ...]:
        data = filled(self.tr("Training data listed at %1"), plain(plan.data.index))
        files = [
            filled(self.tr("%1 from %2"), self._file(file.name, file.bytes), plain(file.address))
            for file in plan.recipe.files
        ]
        lists = [self.tr("The publisher's list of revoked invitations, every hour")] if plan.by_invitation else []
        model = (
            self.tr("The publisher's signed checkpoint of the model, never one from other peers")
            if plan.begins_signed
            else self.tr("The model as the swarm has trained it so far, from other peers")
        )
        return (data, *files, *lists, model)

    def _file(self, name: str, count: int) -> str:
        return plain(name) + (f" ({self.numbers.size(count)})" if count else "")

    def _hourly(self, estimate: Estimate | None) -> tuple[str, ...]:
        """The traffic of an hour with the assumed pace: before joining, the swarm's pace is unknown."""
        if estimate is None:
            return ()
        text = self.tr(
            "About %1 up and %2 down an hour, in a swarm of %3 computers like this one; %4 each way if epochs were as "
            "short as they can be"
        )
        size = self.numbers.rough_size(estimate.traffic)
        return (filled(text, size, size, units.number(PEERS), self.numbers.size(estimate.most)),)

    def _sends(self, plan: Manifest) -> tuple[str, ...]:
        return (
            filled(
                self.tr("Results of training, up to %1 each epoch, and again where a round has to be repeated"),
                self.numbers.size(traffic_per_epoch(plan)),
            ),
            self._copies(plan),
            self._seen(plan),
            self.tr("The web servers of the project see this computer's network address"),
            self.tr("Never your files or what you type"),
        )

    def _seen(self, plan: Manifest) -> str:
        if plan.by_invitation:
            return self.tr(
                "Other peers see this computer's network address, its identity, which is the same in all projects by "
                "invitation, how fast it trains, and which parts of the data it has used"
            )
        return self.tr(
            "Other peers see this computer's network address, its identity, which it has in this project only, how fast it "
            "trains, and which parts of the data it has used"
        )

    def _copies(self, plan: Manifest) -> str:
        if plan.membership == "moderated":
            return self.tr("Copies of the model, when another peer asks and your invitation is a donor's or a host's")
        return self.tr("Copies of the model, when another peer asks for one")

    def _gives(self, estimate: Estimate) -> str:
        text = self.tr("The computing of this computer at the share you allow: at full share %1")
        return filled(text, self._samples(estimate))

    def _uses(self, plan: Manifest, known: Known) -> tuple[str, ...]:
        needs = plan.needs
        limits = (
            filled(self.tr("%1 of memory"), self._gb(needs.memory_gb)),
            filled(self.tr("%1 of GPU memory, where there is a GPU"), self._gb(needs.vram_gb)),
            filled(self.tr("%1 of disk"), self._gb(needs.disk_gb)),
            filled(self.tr("%1 Mbit/s upload"), self.numbers.short(needs.upload_mbit)),
        )
        gives = () if known.estimate is None else (self._gives(known.estimate),)
        own = self.tr(
            "Your limits in the settings hold, whatever it needs: for computing, for the memory that stays free, for training "
            "data on the disk, for sending and receiving. Only what peers need to find each other does not count for these"
        )
        return (*limits, *gives, own)

    def _facts(self, plan: Manifest) -> tuple[tuple[str, str], ...]:
        members = self.tr("all computers") if plan.membership == "open" else self.tr("invited computers only")
        parameters = units.number(parameters_of(plan))
        model = filled(self.tr("%1, %2 parameters"), plain(plan.recipe.model_type), parameters)
        return (
            (self.tr("Published by"), plain(plan.publisher.name)),
            (self.tr("Key"), plan.fingerprint),
            (self.tr("Open to"), members),
            (self.tr("Model"), model),
            (self.tr("Licence"), plain(plan.license)),
            *([(self.tr("Homepage"), plain(plan.homepage))] if plan.homepage else []),
            (self.tr("Valid until"), self.numbers.date(plan.expires)),
        )

    def _gb(self, count: float) -> str:
        return self.numbers.size(round(count * GB))
