"""The verb `self-test`: whether everything skep consists of is here and works, one line for each part.

It works in a folder of its own and touches neither home nor settings. What this computer does not have (a keyring) is
said and is no failure; what skep itself lacks is.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from skep.adapters.storage.paths import Home
from skep.cli.interrupt import INTERRUPTED
from skep.cli.parser import Context, Verbs
from skep.cli.show.snapshot_view import Line, Span
from skep.cli.show.speech import say, tr
from skep.cli.show.theme import Tone
from skep.cli.verbs.self_test_checks import CHECKS, Bench, Finding, Outcome
from skep.core.errors import SkepError

Check = Callable[[Bench], Finding]

_TONES: Final = {Outcome.OK: Tone.LEAF, Outcome.ABSENT: Tone.SOFT, Outcome.FAILED: Tone.EMBER}


def add(verbs: Verbs) -> None:
    parser = verbs.verb("self-test", _self_test, tr("check that every part of this installation works"))
    more = tr("It takes about a minute, and joins nothing but a swarm of its own.")
    parser.description = f"{parser.description} {more}"


def _self_test(context: Context, _arguments: argparse.Namespace) -> int:
    with _bench(context) as bench:
        return run(context, bench, CHECKS)


@contextmanager
def _bench(context: Context) -> Iterator[Bench]:
    root = Path(tempfile.mkdtemp(prefix="skep-test-"))
    home = Home(root / "home")
    try:
        home.create()
        yield Bench(root, home, context.environ)
    finally:
        shutil.rmtree(root, ignore_errors=True)


@dataclass(frozen=True)
class Told:
    """One check as it is printed. `seconds` is how long it took."""

    name: str
    outcome: Outcome
    words: str
    hint: str
    seconds: float

    def body(self) -> dict[str, Any]:
        return {"event": "check"} | asdict(self)

    def line(self) -> Line:
        return (
            Span(f"{_shown(self.outcome):<8}", _TONES[self.outcome]),
            Span(f"{self.name:<10}", Tone.HONEY),
            Span(f"{self.words}{f' {self.hint}' if self.hint else ''}", Tone.INK),
        )


def _shown(outcome: Outcome) -> str:
    match outcome:
        case Outcome.OK:
            return tr("ok")
        case Outcome.ABSENT:
            return tr("absent")
        case Outcome.FAILED:
            return tr("failed")


def run(context: Context, bench: Bench, checks: Sequence[tuple[str, Check]]) -> int:
    """Carry out every check, whatever became of those before it; 0 when none failed, 1 otherwise, 130 after Ctrl-C."""
    failed = []
    for name, check in checks:
        told = _carry_out(name, check, bench)
        context.terminal.show(told.body(), [told.line()])
        if bench.interrupted:
            return INTERRUPTED
        if told.outcome is Outcome.FAILED:
            failed.append(name)
    context.terminal.show(
        {"event": "self-test", "ok": not failed, "failed": failed},
        [tr("Failed: {names}.", names=tuple(failed)) if failed else tr("Everything works.")],
    )
    return 1 if failed else 0


def _carry_out(name: str, check: Check, bench: Bench) -> Told:
    began = time.monotonic()
    try:
        found = check(bench)
    except SkepError as error:
        found = Finding(Outcome.FAILED, say(error.title), say(error.hint))
    except Exception as error:  # noqa: BLE001 - one broken part must not hide the others
        found = Finding(Outcome.FAILED, f"{type(error).__name__}: {error}")
    return Told(name, found.outcome, found.words, found.hint, round(time.monotonic() - began, 2))
