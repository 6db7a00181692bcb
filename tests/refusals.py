"""Two homes that were used before, and what skep must do when it refuses or fails there.

In one the verb prints text for a person, in the other JSON for a program.
"""

import contextlib
import json
import re
import shutil
import subprocess
from dataclasses import dataclass

from manifests import signed
from skep.adapters.net.catalogue import FileCatalogue
from skep.adapters.storage.identity import FileIdentity
from skep.adapters.storage.ledger_sqlite import SqliteLedger
from skep.adapters.storage.paths import Home
from skep.adapters.storage.settings_file import SettingsFile
from skep.core.record.contributions import Contribution, ContributionState
from skep.core.text import NOTHING
from terminals import SKEP, run_here

VOLATILE = re.compile(r"lock|logs/.*|settings\.last\.toml")
"""Files that do not count as the contents of a home."""
NOTES = re.compile(r".* is published by .+\.|It needs .*")
"""Remarks printed for the user before a join goes on."""


def make_past(folder):
    """A home that was used before."""
    home = Home(folder / "home")
    home.create()
    home.settings_file.write_text('# mine\n[compute]\nthreads = 1\nmood = "kept"\n')
    SettingsFile(home.settings_file).save({"disk.keep_free_gb": 0.1})
    assert FileIdentity(home.identity_file, home.peer_id_file).peer_id
    FileCatalogue(home.projects_folder).add(str(signed(folder, id="other")))
    ledger = SqliteLedger(home.ledger_file)
    ledger.record("other", Contribution("a", 3, 64, ContributionState.CONFIRMED, NOTHING, 2))
    ledger.close()
    return home.root


@dataclass(frozen=True)
class Refusal:
    """What was reported, the same in text and in JSON."""

    title: str
    hint: str
    events: list


class Homes:
    """A home for text and one for JSON; or one for both, if skep runs there already; or only the one for JSON."""

    def __init__(self, person, program):
        self.person, self.program = person and Home(person), Home(program)

    def __iter__(self):
        return iter((self.person, self.program) if self.person else (self.program,))

    def for_program(self):
        """Only the home for JSON, if a second run of a slow verb would show nothing new."""
        return Homes(None, self.program.root)

    def refused(self, *arguments, code, within=None, may_keep=r"(?!)"):
        """As `told`; no file in the homes may change, and new files must match `may_keep`."""
        before = [contents(home) for home in self]
        told = self.told(*arguments, code=code, within=within)
        for home, was in zip(self, before, strict=True):
            now = contents(home)
            assert was.items() <= now.items()
            assert not [name for name in now.keys() - was if not re.fullmatch(may_keep, name)]
        return told

    def told(self, *arguments, code, within=None):
        """Run the verb in each home; both must report the same sentence and hint.

        With `within`, in processes that run at the same time, for at most so many seconds. Without, in this process,
        for a verb that is refused before it starts an engine.
        """
        verbs = [
            ["--home", str(home.root), *flags, *arguments]
            for home, flags in ((self.person, []), (self.program, ["--json"]))
            if home
        ]
        *of_person, done = [run_here(*verb) for verb in verbs] if within is None else run_together(verbs, within)
        assert {each.returncode for each in (*of_person, done)} == {code}, (*of_person, done)
        out, (title, hint) = done.stdout, done.stderr.splitlines()
        assert_calm(title, hint)
        for each in of_person:
            *notes, same_title, same_hint = each.stderr.splitlines()
            assert all(NOTES.fullmatch(note) for note in notes), notes
            place, same_place = str(self.program.root), str(self.person.root)
            assert [words.replace(same_place, place) for words in (same_title, same_hint)] == [title, hint]
        events = [json.loads(line) for line in out.splitlines()]
        assert [(e["title"], e["hint"]) for e in events if e["event"] == "problem"] == [(title, hint)]
        return Refusal(title, hint, events)


def homes_with_past(past, folder):
    """Two copies of the `past` home, in `folder`."""
    for name in ("person", "program"):
        shutil.copytree(past, folder / name, copy_function=shutil.copy)
        (folder / name).chmod(0o700)
    return Homes(folder / "person", folder / "program")


def run_together(verbs, within):
    with contextlib.ExitStack() as running:
        processes = [running.enter_context(started(verb)) for verb in verbs]
        read = [process.communicate(timeout=within) for process in processes]
    return [
        subprocess.CompletedProcess(verb, process.returncode, *streams)
        for verb, process, streams in zip(verbs, processes, read, strict=True)
    ]


@contextlib.contextmanager
def started(arguments):
    """The verb; at the end it is killed if it still runs."""
    with subprocess.Popen([*SKEP, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()  # its worker detects that and ends


def assert_calm(title, hint):
    assert title.endswith(".")
    assert hint.endswith(".")
    assert not re.search(r"[.?!] [A-Z]", title), f"more than one sentence: {title}"
    assert not re.search(r"Traceback|Errno|!", title + hint)


def contents(home):
    """The contents of a home's files by path, without locks and logs."""
    return {
        name: path.read_bytes()
        for path in home.root.rglob("*")
        if path.is_file() and not VOLATILE.fullmatch(name := str(path.relative_to(home.root)))
    }
