"""A home of the previous version can be used: no question is asked again, no data is lost, the ledger is valid."""

import json
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from skep import bootstrap
from skep.language.translator import translator
from terminals import SKEP

OLD = Path(__file__).resolve().parent.parent / "old_home"
PEER_ID = "QmeeBL2ec3vpYJQGppBhU31G6SnNniTxVGhfG1Mn7E7tqa"
FINGERPRINT = "959c 96aa a905 cee8"
PROJECT = "tiny-code-lm"
DUMP = (OLD / "ledger.sql").read_text(encoding="utf-8")
CHANGES = re.findall(
    r'INSERT INTO "changes" VALUES\([^,]+,[^,]+,\'[^\']*\',[^,]+,\'[^\']*\',\'((?:[^\']|\'\')*)\'', DUMP
)
LOST = re.findall(r"'lost','((?:[^']|'')*)'", DUMP)


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    shutil.copytree(OLD, folder, ignore=shutil.ignore_patterns("ledger.sql", "README.md"))
    for private in (folder, folder / "keys", folder / "secrets", folder / "projects"):
        private.chmod(0o700)
    for secret in (folder / "identity.key", *(folder / "secrets").iterdir()):
        secret.chmod(0o600)
    with sqlite3.connect(folder / "ledger.sqlite") as ledger:
        ledger.executescript(DUMP)
    ledger.close()
    return bootstrap.home(str(folder), {})


def skep(home, *arguments):
    done = subprocess.run(
        [*SKEP, "--home", str(home.root), "--json", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_settings_identity_keys_and_projects_are_as_they_were(home):
    assert skep(home, "settings", "get", "compute.share_away")["value"] == 0.5
    assert skep(home, "settings", "get", "when.schedule")["value"] == "off mon-fri 9-17"
    assert skep(home, "identity")["peer_id"] == PEER_ID
    assert [each["fingerprint"] for each in skep(home, "key", "list")["keys"]] == [FINGERPRINT]
    assert [each["id"] for each in skep(home, "projects")["projects"]] == [PROJECT]


def test_what_was_contributed_counts_on(home):
    told = skep(home, "stats")["projects"][PROJECT]
    assert (told["confirmed"]["samples"], told["lost"]["contributions"], told["pending"]["samples"]) == (
        192,
        len(LOST),
        5,
    )
    with bootstrap.ledger(home) as ledger:
        assert ledger.position(PROJECT) == 4096
        assert [each.loss for each in ledger.evaluations(PROJECT)] == [2.5]


REWORDED = {
    "This computer does not say when it was last used. 20 % to be safe.": (
        "This computer does not report when it was last used. 20 % to be safe."
    ),
    "Paused while you use this computer: a step of this project takes long.": (
        "Paused while you use this computer: one step of this project takes long."
    ),
    "Keeping the GPU under 80 °C.": "Keeping the GPU below 80 °C.",
    "Keeping the processor under 80 °C.": "Keeping the processor below 80 °C.",
    "Going up gently to 50 %.": "The share rises to 50 %.",
    "This computer slept.": "This computer was asleep.",
    "this computer had fallen behind the swarm": "this computer was behind the swarm",
}
"""Sentences of version 0.1 that have changed since."""


def test_every_reason_says_what_it_said_and_german_has_words_for_it_too(home):
    english, german = translator("en"), translator("de")
    with bootstrap.ledger(home) as ledger:
        changes = [each.reason for each in ledger.changes(0.0, 4e9)]
        lost = [each.reason for each in ledger.contributions(PROJECT) if each.reason]
    before = [words.replace("''", "'") for words in (*CHANGES, *LOST)]
    assert len(before) > 50
    assert [english.say(each) for each in (*changes, *lost)] == [REWORDED.get(words, words) for words in before]
    assert [words for words, each in zip(before, (*changes, *lost), strict=True) if german.say(each) == words] == []


def test_a_settled_contribution_still_cannot_be_changed(home):
    with bootstrap.ledger(home):
        pass
    with (
        sqlite3.connect(home.root / "ledger.sqlite") as ledger,
        pytest.raises(sqlite3.IntegrityError, match="never changes"),
    ):
        ledger.execute("UPDATE contributions SET samples = 1 WHERE state = 'lost'")
    ledger.close()


def test_it_can_be_upgraded_only_once(home):
    def rows():
        with bootstrap.ledger(home) as ledger:
            return ledger.changes(0.0, 4e9), ledger.contributions(PROJECT)

    assert rows() == rows()
