"""The texts of the connection doctor: its findings as rows, and a summary; without Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skep.core.findings import Finding, State, listed, worst
from skep.core.plain_text import plain
from skep_gui.words.projects import Tone
from skep_gui.words.speaker import Speaker, filled


@dataclass(frozen=True)
class Row:
    """One finding. `advice` is what to do, "" for nothing."""

    state: str
    tone: Tone
    title: str
    found: str
    advice: str = ""


class Doctor(Speaker):
    def title(self, project: str) -> str:
        """The dialog's title; "" for this computer without a project."""
        return filled(self.tr("Connection to %1"), plain(project)) if project else self.tr("This computer")

    def rows(self, findings: Sequence[Finding]) -> list[Row]:
        """In the order of the checks."""
        return [self._row(each) for each in listed(findings)]

    def _row(self, finding: Finding) -> Row:
        state, tone = self._state(finding.state)
        return Row(state, tone, self.said(finding.check.label), self.said(finding.found), self.said(finding.advice))

    def _state(self, state: State) -> tuple[str, Tone]:
        match state:
            case State.OK:
                return self.tr("OK"), Tone.WELL
            case State.WARN:
                return self.tr("Warning"), Tone.GENTLE
            case State.FAIL:
                return self.tr("Problem"), Tone.PROBLEM
            case State.SKIPPED:
                return self.tr("Skipped"), Tone.SOFT

    def checking(self) -> str:
        return self.tr("Checking … this takes up to half a minute and changes nothing.")

    def summary(self, findings: Sequence[Finding]) -> tuple[str, Tone]:
        """One sentence when all checks have ended."""
        match worst(findings):
            case State.FAIL:
                return self.tr("Something keeps skep from joining. What to do stands below it."), Tone.PROBLEM
            case State.WARN:
                return self.tr("Nothing keeps skep from joining. See the warnings."), Tone.GENTLE
            case State.OK | State.SKIPPED:
                return self.tr("Everything is in order."), Tone.WELL

    def as_text(self, title: str, findings: Sequence[Finding]) -> str:
        """For the clipboard: a line for each finding, what to do below it."""
        lines = [title, ""]
        for each in self.rows(findings):
            lines.append(f"{each.state}: {each.title}: {each.found}")
            lines += [f"    {each.advice}"] if each.advice else []
        return "\n".join(lines) + "\n"
