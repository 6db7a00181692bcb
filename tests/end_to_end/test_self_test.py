"""`skep self-test` checks every part of an installation, one line each; a broken part is named, and the test fails."""

import argparse
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from english import raises
from skep.adapters.process import programs
from skep.adapters.storage.paths import Home
from skep.cli.parser import Context
from skep.cli.show.terminal import Terminal
from skep.cli.verbs import self_test
from skep.cli.verbs.self_test import CHECKS, Bench, Finding, Outcome
from skep.core.errors import SkepError
from skep.core.text import verbatim

SKEP = [sys.executable, "-m", "skep.cli.main"]
PARTS = [name for name, _ in CHECKS]


@pytest.mark.long  # other tests of the default suite cover the same parts
@pytest.mark.timeout(700)
def test_every_part_is_tried_and_works():
    done = subprocess.run(
        [*SKEP, "--json", "self-test"], capture_output=True, text=True, timeout=680, check=False, env=os.environ
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stdout + done.stderr
    assert [each["name"] for each in told[:-1]] == PARTS
    # a missing keyring is no fault of skep
    assert {each["outcome"] for each in told[:-1] if each["name"] != "keyring"} == {"ok"}
    words = {each["name"]: each["words"] for each in told[:-1]}
    assert "torch" in words["imports"]
    assert "gpt2, llama, bert, albert, vit train" in words["imports"]
    assert "1 other peer" in words["practice"]
    assert "confirmed samples" in words["ledger"]
    assert told[-1] == {"event": "self-test", "ok": True, "failed": []}


@pytest.fixture
def bench(tmp_path):
    home = Home(tmp_path / "home")
    home.create()
    return Bench(tmp_path, home, os.environ)


@pytest.fixture
def context(home):
    return Context(Terminal(json=True, out=io.StringIO(), error=io.StringIO()), home, os.environ)


def lines(context):
    return [json.loads(line) for line in context.terminal.out.file.getvalue().splitlines()]


def test_a_broken_part_is_named_and_the_others_are_still_tried(context, bench):
    def broken(_bench):
        raise SkepError(verbatim("It is not there."), verbatim("Install it."))

    def surprising(_bench):
        raise ValueError("what is this")

    parts = (("one", broken), ("two", surprising), ("three", lambda _: Finding(Outcome.OK, "Fine.")))
    assert self_test.run(context, bench, parts) == 1
    told = lines(context)
    assert [each["outcome"] for each in told[:-1]] == ["failed", "failed", "ok"]
    assert (told[0]["words"], told[0]["hint"]) == ("It is not there.", "Install it.")
    assert told[1]["words"] == "ValueError: what is this"
    assert told[-1]["failed"] == ["one", "two"]


def test_what_a_computer_does_not_have_is_no_failure(context, bench):
    parts = (("keyring", lambda _: Finding(Outcome.ABSENT, "There is none.")),)
    assert self_test.run(context, bench, parts) == 0
    assert lines(context)[0]["outcome"] == "absent"


def test_an_interrupt_ends_it(context, bench):
    def interrupted(bench):
        bench.interrupted = True
        return Finding(Outcome.FAILED, "It was interrupted.")

    after = []
    assert self_test.run(context, bench, (("one", interrupted), ("two", after.append))) == 130
    assert not after


def test_a_training_stack_that_lacks_something_is_found(bench, monkeypatch, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('libtorch_cpu.so is missing')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with raises(SkepError, match=r"libtorch_cpu\.so is missing"):
        self_test.imports(bench)


def test_a_ledger_without_what_was_confirmed_is_found(bench):
    with raises(SkepError, match="no confirmed contribution"):
        self_test.ledger(bench)


def test_an_app_that_ends_by_itself_is_found_with_its_last_words(bench, monkeypatch):
    monkeypatch.setattr(self_test, "app_command", lambda: (sys.executable, "-c", "raise SystemExit('no libEGL.so.1')"))
    with raises(SkepError, match=r"ended with 1: no libEGL\.so\.1"):
        self_test.app(bench)


def test_nothing_of_it_is_left(context, monkeypatch):
    seen = []
    monkeypatch.setattr(
        self_test, "CHECKS", (("look", lambda bench: seen.append(bench.root) or Finding(Outcome.OK, "")),)
    )
    assert self_test._self_test(context, argparse.Namespace()) == 0
    assert not seen[0].exists()
    assert not list(context.home.root.iterdir())


def test_frozen_programs_start_each_other_by_their_own_names(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    monkeypatch.setattr(sys, "executable", "/opt/skep/skep-gui")
    assert programs.module_command("skep.worker.main") == ("/opt/skep/skep", "-m", "skep.worker.main")
    with_pack = ("/opt/skep/skep", "-m", "skep.worker.main", "--pack", "/packs/cpu")
    assert programs.module_command("skep.worker.main", Path("/packs/cpu")) == with_pack
    assert programs.app_command() == ("/opt/skep/skep-gui",)
    assert programs.build_facts() == {}
    (tmp_path / programs.FACTS_FILE).write_text('{"commit": "abc"}')
    assert programs.build_facts() == {"commit": "abc"}
    assert not programs.has_own_stack()
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("")
    assert programs.has_own_stack()


def test_a_skep_of_python_packages_has_the_stack_of_its_python():
    assert programs.has_own_stack()
