"""One command in this process: unexpected errors, and a closed standard output."""

import argparse
import os
import subprocess
import sys

import pytest

from skep import bootstrap
from skep.cli import application
from skep.cli.application import main, parser


@pytest.fixture
def environ(home):
    return {"SKEP_HOME": str(home.root)}


def test_a_mistake_of_our_own_is_a_sentence_and_a_log_entry(home, environ, monkeypatch, capsys):
    def broken():
        raise RuntimeError("a wire came loose")

    monkeypatch.setattr(bootstrap, "devices", broken)
    assert main(["devices"], environ) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("An internal error (RuntimeError)")
    assert "Traceback" not in printed.err
    log = (home.logs_folder / "terminal.log").read_text()
    assert "a wire came loose" in log
    assert "Traceback" in log


def test_where_no_log_can_be_written_the_sentence_is_there_still(home, environ, monkeypatch, capsys):
    def broken():
        raise RuntimeError

    monkeypatch.setattr(bootstrap, "devices", broken)
    environ["SKEP_HOME"] = "/proc/no-home"
    assert main(["devices"], environ) == 1
    assert "could not be written" in capsys.readouterr().err


def test_ctrl_c_in_a_short_verb_is_130(environ, monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(bootstrap, "devices", interrupted)
    assert main(["devices"], environ) == 130
    assert capsys.readouterr().err == ""


def verbs_of(made):
    return next(list(each.choices) for each in made._actions if isinstance(each, argparse._SubParsersAction))


def test_every_verb_stands_with_its_module():
    added = [verbs_of(parser([verbs[0]])) for verbs in application._MODULES.values()]
    assert added == [list(verbs) for verbs in application._MODULES.values()]
    assert verbs_of(parser()) == verbs_of(parser(["dance"])) == [verb for verbs in added for verb in verbs]


@pytest.mark.parametrize("verb", ["status", "pause", "share 30", "leave", "settings"])
def test_a_verb_waits_for_nothing_that_only_others_need(home, verb):
    arguments = ["--home", str(home.root), *verb.split()]
    heavy = {"skep.engine.engine", "skep.senses", "skep.host", "requests", "cryptography", "tuf", "pynvml", "torch"}
    look = f"import sys; from skep.cli.application import main; main({arguments}, {{}}); print(sys.modules.keys() & {heavy})"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_usage_errors_are_sentences_of_our_own(environ, capsys):
    for arguments, sentence in (
        (["dance"], "“dance” is not a skep verb."),
        ([], "A verb is missing."),
        (["join"], "NAME|MANIFEST|LINK is missing."),
        (["join", "x", "--epochs"], "--epochs needs a value."),
        (["status", "--loud"], "“--loud” is not understood here."),
        (["join", "x", "--for", "1s", "--epochs", "1"], "--epochs and --for do not go together."),
    ):
        assert main(arguments, environ) == 2
        assert capsys.readouterr().err.splitlines()[0] == sentence


@pytest.mark.parametrize("kind", [(), ("--json",)])
def test_a_reader_that_is_gone_ends_the_command_quietly(home, kind):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "skep.cli.main", "--home", str(home.root), "settings", *kind],
        stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
    )  # fmt: skip
    os.close(writer)
    assert done.returncode == 1
    assert done.stderr == ""
