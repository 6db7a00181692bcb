"""The verb `doctor`: whether this computer can take part, and what to do where it cannot."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final

from rich.table import Table
from rich.text import Text as Styled

from skep import bootstrap
from skep.cli import arguments as spelled
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import say, tr
from skep.cli.show.terminal import Tone
from skep.cli.verbs.join import is_source
from skep.cli.verbs.packs import here
from skep.cli.verbs.running import snapshot_here
from skep.core.findings import Finding, State, as_json, listed, worst
from skep.core.project.manifest import VerifiedProject
from skep.services import joining
from skep.services.doctor.case import Case
from skep.services.doctor.examination import examine

FAILED: Final = 1
_TONES: Final[Mapping[State, Tone]] = {
    State.OK: Tone.LEAF,
    State.WARN: Tone.HONEY,
    State.FAIL: Tone.EMBER,
    State.SKIPPED: Tone.SOFT,
}
_STATE_WIDTH: Final = 8
_TITLE_WIDTH: Final = 15


def add(verbs: Verbs) -> None:
    more = tr("It takes up to half a minute, changes nothing, and ends with 1 if something keeps skep from joining.")
    made = verbs.verb("doctor", _doctor, tr("check the connection to a project, and say what to do"), more)
    made.add_argument(
        "project",
        metavar="NAME|MANIFEST",
        nargs="?",
        default="",
        help=tr("a known project, or the path of a manifest (this computer only)"),
    )


def _doctor(context: Context, arguments: argparse.Namespace) -> int:
    project = _project(context, arguments.project) if arguments.project else None
    seeds = spelled.addresses(context.environ.get("SKEP_PEERS", "")) if project is not None else ()
    case = Case(context.home, project, seeds, snapshot_here(context), pack=here(context))
    context.terminal.note(_first(project))
    findings = []
    for finding in examine(case):
        findings.append(finding)
        if not context.terminal.json:
            context.terminal.write(_row(finding))
    result = worst(findings)
    body = {
        "project": None if project is None else project.id,
        "state": str(result),
        "checks": [as_json(each) for each in listed(findings)],
    }
    context.terminal.show(body, ["", _last(result, findings)])
    return FAILED if result is State.FAIL else 0


def _project(context: Context, name: str) -> VerifiedProject:
    """The project; one in a file is not stored. Raises ManifestError, BadInput."""
    return joining.read_project(name) if is_source(name) else bootstrap.catalogue(context.home).find(name)


def _first(project: VerifiedProject | None) -> str:
    if project is None:
        return tr("Checking this computer. With a project's name, skep checks the connection to it as well.")
    return tr("Checking the connection to {title}; this takes up to half a minute.", title=project.title)


def _row(finding: Finding) -> Table:
    """One finding, what to do below it; both wrap beside the name of the check."""
    made = Table.grid(padding=(0, 1, 0, 0))
    made.add_column(width=_STATE_WIDTH)
    made.add_column(width=_TITLE_WIDTH)
    made.add_column(overflow="fold")
    words = Styled(say(finding.found))
    if finding.advice:
        words.append(f"\n{say(finding.advice)}", str(Tone.SOFT))
    made.add_row(Styled(_shown(finding.state), str(_TONES[finding.state])), say(finding.check.label), words)
    return made


def _shown(state: State) -> str:
    match state:
        case State.OK:
            return tr("ok")
        case State.WARN:
            return tr("warn")
        case State.FAIL:
            return tr("fail")
        case State.SKIPPED:
            return tr("skipped")


def _last(result: State, findings: list[Finding]) -> str:
    match result:
        case State.FAIL:
            count = sum(each.state is State.FAIL for each in findings)
            return tr("{count} checks failed. What to do stands below each.", count=count)
        case State.WARN:
            return tr("Nothing keeps skep from joining. See the warnings.")
        case State.OK | State.SKIPPED:
            return tr("Everything is in order.")
