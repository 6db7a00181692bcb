"""The verbs that need no swarm, with text output and with --json: their output and exit codes.

Each kind of ending has a test with a real process, by `skep`; the others run in the test's process, by `here`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skep.adapters.process.single_instance import instance_lock
from skep.adapters.storage.ledger_sqlite import SqliteLedger
from skep.adapters.storage.settings_file import SettingsFile
from skep.core.record.contributions import Contribution, ContributionState, Evaluation
from skep.core.text import verbatim
from terminals import SKEP, run_here


def skep(home, *arguments):
    return subprocess.run(
        [*SKEP, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | environ_of(home),
    )


def here(home, *arguments, **environ):
    return run_here(*arguments, **environ_of(home), **environ)


def environ_of(home):
    return {"SKEP_HOME": str(home.root), "COLUMNS": "200"}


def assert_one_calm_sentence(done, code):
    """Every failure prints a sentence and at most one hint, no traceback, and nothing on standard output."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert 1 <= len(lines) <= 2, done.stderr
    assert lines[0].endswith(".")
    assert "Traceback" not in done.stderr
    assert "!" not in done.stderr


def test_the_version(home):
    assert skep(home, "--version").stdout.startswith("skep 0.")
    assert json.loads(skep(home, "--version", "--json").stdout)["version"]
    assert not any(home.root.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("dance",),
        ("join",),
        ("join", "x", "--for", "soon"),
        ("join", "x", "--for", "nan"),
        ("join", "x", "--epochs", "0"),
        ("join", "x", "--epochs", "nan"),
        ("join", "x", "--for", "60s", "--epochs", "2"),
        ("pause", "--for", "15"),
        ("pause", "--for"),
        ("share",),
        ("share", "nan"),
        ("share", "101"),
        ("share", "1"),
        ("practice", "--peers", "none"),
        ("practice", "--port", "70000"),
        ("status", "--loud"),
        ("project",),
        ("key",),
        ("settings", "get"),
        ("settings", "get", "compute.shard"),
        ("settings", "set", "compute.share_away"),
        ("settings", "set", "compute.share_away", "nan"),
        ("settings", "set", "compute.share_away", "400"),
        ("--home", "", "identity"),
        ("join", "no-such-project"),
        ("project", "show", "no-such-project"),
        ("join", "missing/manifest.json"),
        ("project", "add", "missing.json"),
        ("project", "verify", "missing.json"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(home, arguments):
    assert_one_calm_sentence(here(home, *arguments), 2)


@pytest.mark.parametrize("arguments", [("status",), ("pause",), ("resume",), ("share", "50"), ("leave",)])
def test_without_a_running_skep_the_verbs_that_need_one_say_so(home, arguments):
    done = here(home, *arguments)
    assert_one_calm_sentence(done, 1)
    assert "No skep is running" in done.stderr


def test_a_problem_is_an_object_too_for_programs(home):
    done = skep(home, "status", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["event"] == "problem"
    assert "No skep is running" in done.stderr
    usage = skep(home, "--json", "pause", "--for", "soon")
    assert usage.returncode == 2
    assert "soon" in json.loads(usage.stdout)["title"]


def test_devices_are_listed_with_what_they_are_for(home):
    devices = json.loads(here(home, "devices", "--json").stdout)["devices"]
    assert devices[-1]["id"] == "cpu"
    assert devices[-1]["memory_total"] > 0
    assert "usable" in here(home, "devices").stdout


def test_the_identity_is_made_once_and_kept_private(home):
    first = json.loads(skep(home, "--json", "identity").stdout)
    assert skep(home, "identity").stdout.strip() == first["peer_id"]
    assert Path(first["path"]).stat().st_mode & 0o777 == 0o600


def test_home_is_chosen_before_or_after_the_verb_and_wins_over_the_environment(home, tmp_path):
    other = str(tmp_path / "other")
    before = json.loads(here(home, "--home", other, "identity", "--json").stdout)
    after = json.loads(here(home, "identity", "--json", "--home", other).stdout)
    assert before == after
    assert before["path"].startswith(other)


def test_an_unusable_home_is_one_sentence(home, tmp_path):
    (tmp_path / "file").write_text("")
    assert_one_calm_sentence(here(home, "--home", str(tmp_path / "file" / "home"), "identity"), 2)


def test_settings_are_listed_set_and_got(home):
    assert json.loads(here(home, "settings", "get", "compute.share_away", "--json").stdout)["value"] == 1.0
    assert skep(home, "settings", "set", "compute.share_away", "30").returncode == 0
    assert skep(home, "settings", "get", "compute.share_away").stdout.strip() == "30 %"
    listed = {each["key"]: each for each in json.loads(here(home, "settings", "--json").stdout)["settings"]}
    assert listed["compute.share_away"]["value"] == 0.3
    assert all(each["help"] and each["group"] for each in listed.values())
    assert "compute.share_away" in here(home, "settings").stdout


def test_a_damaged_settings_file_is_said_and_left_alone(home):
    home.settings_file.write_text("[compute\nshare")
    assert_one_calm_sentence(here(home, "settings"), 2)
    assert_one_calm_sentence(here(home, "settings", "set", "compute.threads", "2"), 2)
    assert home.settings_file.read_text() == "[compute\nshare"


def test_an_unknown_key_in_the_settings_file_survives_a_change(home):
    home.settings_file.write_text("# mine\n[compute]\nfuture = 1\n")
    assert here(home, "settings", "set", "compute.threads", "2").returncode == 0
    assert "future = 1" in home.settings_file.read_text()
    assert "# mine" in home.settings_file.read_text()
    assert SettingsFile(home.settings_file).load()["compute.threads"] == 2


def test_stats_of_a_new_home_say_what_will_be_there(home):
    done = here(home, "stats")
    assert done.returncode == 0
    assert "will be listed here" in done.stdout
    assert json.loads(here(home, "stats", "--json").stdout)["all"]["confirmed"]["samples"] == 0


def test_stats_come_from_the_ledger(home):
    ledger = SqliteLedger(home.ledger_file)
    lost = ContributionState.LOST
    ledger.record("tiny", Contribution("a", 1, 100, ContributionState.CONFIRMED, peers=2))
    ledger.record("tiny", Contribution("b", 2, 50, lost, verbatim("no other peer")))
    ledger.record("tiny", Contribution("c", 3, 30, lost, verbatim("no other peer")))
    ledger.record("other", Contribution("d", 1, 7, ContributionState.PENDING))
    ledger.save_evaluation("tiny", Evaluation(1, float("nan")))
    ledger.close()
    stats = json.loads(here(home, "stats", "--json").stdout)
    assert stats["projects"]["tiny"]["confirmed"] == {"contributions": 1, "samples": 100}
    assert stats["all"]["pending"] == {"contributions": 1, "samples": 7}
    assert stats["all"]["lost_reasons"] == {"no other peer": {"contributions": 2, "samples": 80}}
    text = here(home, "stats").stdout
    assert "All projects" in text
    assert "Lost: no other peer (2 contributions)" in text


def test_a_second_instance_in_one_home_is_refused_before_anything_else(home):
    with instance_lock(home.lock_file):
        done = skep(home, "join", "no-such-project")
    assert_one_calm_sentence(done, 1)
    assert "already running" in done.stderr


def test_a_wrong_address_in_skep_peers_is_named(home):
    assert_one_calm_sentence(here(home, "join", "tiny", SKEP_PEERS="example.org:1"), 2)


def test_a_reader_that_is_gone_is_no_traceback(home):
    writing = subprocess.Popen([*SKEP, "settings"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    writing.stdout.close()
    assert "Traceback" not in writing.stderr.read()
    writing.stderr.close()
    assert writing.wait(30) in (0, 1)


STARTS = """
import sys
def tell(event, arguments):
    if event == "import" and arguments[0] == "skep.cli.application":
        print("loading", flush=True)
sys.addaudithook(tell)
from skep.cli.main import run
sys.exit(run())
"""
"""Prints a line before it loads the rest; earlier, Python is still starting and handles a signal itself."""


WHERE_PYTHON_FORGETS = """
import signal, sys
class Dropped:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)  # as while Python tidies up after an import: an exception is printed, and forgotten
def tell(event, arguments):
    if event == "import" and arguments[0] == {module!r}:
        Dropped()
sys.addaudithook(tell)
from skep.cli.main import run
sys.exit(run())
"""


@pytest.mark.parametrize("module", ["skep.cli.application", "skep.cli.arguments"])
def test_ctrl_c_while_starting_is_not_forgotten(module):
    program = WHERE_PYTHON_FORGETS.format(module=module)
    done = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3])
def test_ctrl_c_while_starting_is_quiet(home, delay):
    command = [sys.executable, "-c", STARTS, "--help"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "loading\n"
    time.sleep(delay)  # a random moment during loading: there is no condition to wait for
    running.send_signal(signal.SIGINT)
    _, error = running.communicate(timeout=30)
    assert "Traceback" not in error


ENDS = """
import os, signal, sys
from skep.cli.main import run
stock = signal.signal
def interrupted(number, handler):
    if handler is signal.SIG_IGN:
        signal.signal = stock
        os.kill(os.getpid(), signal.SIGINT)
    return stock(number, handler)
signal.signal = interrupted
sys.exit(run())
"""
"""Gets a Ctrl-C just before it ignores it."""


def test_ctrl_c_while_it_ends_is_quiet():
    done = subprocess.run([sys.executable, "-c", ENDS, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")
    assert done.stdout


def test_help_of_every_verb_is_printed(home):
    for verb in ("join", "pause", "project", "settings", "practice", "demo", "stats"):
        done = here(home, verb, "--help")
        assert done.returncode == 0
        assert "usage: skep" in done.stdout


def test_a_mistake_of_our_own_is_a_sentence_and_a_log_entry(home):
    home.ledger_file.mkdir()  # the code expects a file
    done = here(home, "stats")
    assert_one_calm_sentence(done, 1)
