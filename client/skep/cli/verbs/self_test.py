"""The verb `self-test`: checks that every part of skep is installed and works, one line per part.

It uses a temporary folder and changes neither home nor settings. A part that this computer lacks (a keyring) is
reported but is not a failure; a missing part of skep is. Each check ends what it has started, and raises SkepError or
another exception if a part does not work.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import secrets
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import skep
from skep import bootstrap
from skep.adapters.process.programs import app_command, build_facts, is_frozen, module_command
from skep.adapters.storage.paths import Home
from skep.adapters.storage.secrets import KeyringSecrets
from skep.cli.interrupt import INTERRUPTED, Interrupts
from skep.cli.parser import Context, Verbs
from skep.cli.show.renderers import Renderer
from skep.cli.show.speech import numbers, say, tr
from skep.cli.show.terminal import Line, Span, Tone
from skep.cli.verbs.demo import DEVOTED
from skep.cli.verbs.join import Ending, Run
from skep.cli.verbs.packs import here
from skep.core.errors import NotRunning, SecretsError, SkepError
from skep.core.session.messages import Join
from skep.core.text import Problem, Text, verbatim
from skep.host.practice.process import PracticeProcess
from skep.host.server.peer_process import PeerProcess

IMPORT_SECONDS: Final = 180.0
"""How long importing and trying all of the training stack may take on a slow disk."""
PRACTICE_SECONDS: Final = 300.0
APP_SECONDS: Final = 60.0
POLITE: Final = 8.0
"""Seconds that what was started may take to end by itself."""
KEYRING_SECONDS: Final = 10.0
BEAT: Final = 0.1


class Outcome(StrEnum):
    OK = "ok"
    ABSENT = "absent"
    """Not on this computer, and skep works without."""
    FAILED = "failed"


@dataclass(frozen=True)
class Finding:
    outcome: Outcome
    words: str
    hint: str = ""


@dataclass
class Bench:
    """A folder that is removed afterwards, and a home in it. `pack` is the folder of the compute pack to use."""

    root: Path
    home: Home
    environ: Mapping[str, str]
    interrupted: bool = False
    pack: Path | None = None


Check = Callable[[Bench], Finding]

_TONES: Final = {Outcome.OK: Tone.LEAF, Outcome.ABSENT: Tone.SOFT, Outcome.FAILED: Tone.EMBER}


def add(verbs: Verbs) -> None:
    more = tr("It takes about a minute, and joins nothing but a swarm of its own.")
    verbs.verb("self-test", _self_test, tr("check that every part of this installation works"), more)


def _self_test(context: Context, _arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="skep-test-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        home = Home(root / "home")
        home.create()
        return run(context, Bench(root, home, context.environ, pack=here(context)), CHECKS)


def _line(name: str, found: Finding) -> Line:
    return (
        Span(f"{_shown(found.outcome):<8}", _TONES[found.outcome]),
        Span(f"{name:<10}", Tone.HONEY),
        Span(f"{found.words}{f' {found.hint}' if found.hint else ''}", Tone.INK),
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
    """Run all checks, regardless of failures; 0 when none failed, 1 otherwise, 130 after Ctrl-C."""
    failed = []
    for name, check in checks:
        began = time.monotonic()
        found = _carry_out(check, bench)
        seconds = round(time.monotonic() - began, 2)
        body = {"event": "check", "name": name} | asdict(found) | {"seconds": seconds}
        context.terminal.show(body, [_line(name, found)])
        if bench.interrupted:
            return INTERRUPTED
        if found.outcome is Outcome.FAILED:
            failed.append(name)
    context.terminal.show(
        {"event": "self-test", "ok": not failed, "failed": failed},
        [tr("Failed: {names}.", names=tuple(failed)) if failed else tr("Everything works.")],
    )
    return 1 if failed else 0


def _carry_out(check: Check, bench: Bench) -> Finding:
    try:
        return check(bench)
    except SkepError as error:
        return Finding(Outcome.FAILED, say(error.title), say(error.hint))
    except Exception as error:  # noqa: BLE001 - one broken part must not hide the others
        return Finding(Outcome.FAILED, f"{type(error).__name__}: {error}")


# --- the checks


def _ok(words: str) -> Finding:
    return Finding(Outcome.OK, words)


def build(_bench: Bench) -> Finding:
    """Which skep this is."""
    facts = build_facts()
    if is_frozen() and not facts:
        raise SkepError(Text("self_test.build_says_nothing_about_itself"), Text("worker.install_skep_again"))
    origin = (
        tr("built from {commit} on {date}", commit=facts["commit"], date=facts["built"])
        if facts
        else tr("from Python packages")
    )
    return _ok(f"skep {skep.__version__} {origin}, Python {platform.python_version()}, {platform.platform()}.")


def imports(bench: Bench) -> Finding:
    """The training stack, in a process of its own."""
    done = subprocess.run(
        module_command("skep.host.inspection", bench.pack), capture_output=True, timeout=IMPORT_SECONDS, check=False
    )
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}
    if done.returncode != 0 or "versions" not in said:
        words = (
            said.get("missing")
            or (done.stderr.decode(errors="replace").strip().splitlines() or [tr("it said nothing")])[-1]
        )
        raise SkepError(
            Text("self_test.training_stack_cannot_used", words=words),
            Text("worker.install_skep_again"),
        )
    versions = tuple(f"{library} {number}" for library, number in said["versions"].items())
    return _ok(
        tr(
            "{versions}; {modules} modules; {models} train.",
            versions=versions,
            modules=said["modules"],
            models=tuple(said["models"]),
        )
    )


def devices(_bench: Bench) -> Finding:
    """What can train here."""
    found = bootstrap.devices().list()
    told = [f"{each.choice} ({say(each.unusable) if each.unusable else each.name})" for each in found]
    if all(each.unusable for each in found):
        raise SkepError(Text("self_test.nothing_here_can_train"), verbatim("; ".join(told)))
    return _ok(f"{'; '.join(told)}.")


def p2pd(bench: Bench) -> Finding:
    """The network program, as a seed peer on the loopback."""
    identity = bootstrap.identity(bench.home)
    arguments = ["--host", "127.0.0.1", "--port", "0", "--identity", str(identity.path)]
    assert identity.peer_id
    peer = PeerProcess(arguments, bench.root / "seed.log", bench.pack)
    try:
        addresses = peer.start()
    finally:
        peer.end()
    return _ok(tr("It listened at {address}.", address=addresses[0]))


def practice(bench: Bench) -> Finding:
    """An epoch averaged with the peer of a practice swarm, by the path every project takes."""
    swarm = PracticeProcess(bench.home.root, bench.root / "run", bench.environ, bench.pack)
    with Interrupts(swarm.ask) as interrupts:
        try:
            bootstrap.settings(bench.home).save({**DEVOTED})
            swarm.start()
            manifest = swarm.manifest(lambda: interrupts.asked)
            if manifest is not None:
                return _epoch(bench, manifest, interrupts)
        finally:
            bench.interrupted = interrupts.asked
            swarm.end(POLITE)
    return Finding(Outcome.FAILED, tr("It was interrupted."))


def _epoch(bench: Bench, manifest: Path, interrupts: Interrupts) -> Finding:
    renderer = Renderer()
    with bootstrap.hold(bench.home):
        join = Join(bootstrap.catalogue(bench.home).add(str(manifest), consent=True))
        with bootstrap.build(bench.home, join, packed=lambda: bench.pack) as engine:
            run = Run(engine, renderer, Ending(confirmed=1, total_seconds=PRACTICE_SECONDS))
            run.go(join, interrupts)
    if run.course.confirmed < 1:
        problem = renderer.failure or Problem(
            Text("self_test.no_epoch_was_averaged_another", practice_seconds=PRACTICE_SECONDS)
        )
        raise SkepError(problem.title, problem.hint)
    sent = numbers().size(run.course.bytes_sent)
    return _ok(
        tr(
            "An epoch was averaged with {count:number} other peers; {sent} were sent.",
            count=run.course.peers,
            sent=sent,
        )
    )


def ledger(bench: Bench) -> Finding:
    """What practice left in the record."""
    with bootstrap.ledger(bench.home) as kept:
        totals = [kept.totals(project).confirmed for project in kept.projects()]
    if not sum(tally.contributions for tally in totals):
        raise SkepError(
            Text("self_test.ledger_holds_no_confirmed_contribution"),
            Text("self_test.see_what_became_practice_epoch"),
        )
    return _ok(tr("It holds {count:number} confirmed samples.", count=sum(tally.samples for tally in totals)))


def keyring(bench: Bench) -> Finding:
    """A secret kept, read and forgotten again."""
    ring, secret = KeyringSecrets(str(bench.root), patience=KEYRING_SECONDS), secrets.token_hex(8)
    try:
        ring.put("self-test", secret)
        ring.delete("self-test")
    except SecretsError as error:
        # whether a computer has one is not skep's doing; without it, secrets are kept in files only when asked for
        return Finding(Outcome.ABSENT, say(error.title))
    return _ok(tr("It stores a secret and deletes it."))


def app(bench: Bench) -> Finding:
    """The app without a screen: started, asked, ended."""
    if not is_frozen() and importlib.util.find_spec("PySide6") is None:
        return Finding(Outcome.ABSENT, tr("The app is not installed."), tr("pip install 'skep[gui]' brings it."))
    home, log = Home(bench.root / "app"), bench.root / "app.log"
    home.create()
    (home.root / "window.ini").write_text("[General]\nfirst-run-done=done\n")
    began = time.monotonic()
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [*app_command(), "--home", str(home.root), "--hidden"],
            env={**bench.environ, "QT_QPA_PLATFORM": "offscreen"},
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
    try:
        answered = _wait_for_answer(home, process)
        took = time.monotonic() - began
        process.terminate()
        code = process.wait(POLITE)
    finally:
        process.kill()
        process.wait()
    if not answered or code != 0:
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        raise SkepError(Text("self_test.app_ended", code=code, names=" ".join(last) or tr("it did not answer")))
    return _ok(tr("It answered after {seconds:.1f} s and ended when asked.", seconds=took))


def _wait_for_answer(home: Home, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + APP_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            bootstrap.ask(home, {"verb": "status"})
        except NotRunning:
            time.sleep(BEAT)
        else:
            return True
    return False


CHECKS: Final[Sequence[tuple[str, Check]]] = [
    (check.__name__, check) for check in (build, imports, devices, p2pd, practice, ledger, keyring, app)
]
