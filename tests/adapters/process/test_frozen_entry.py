"""The frozen terminal program's entry point, run by Python: it runs verbs and our own modules only."""

import subprocess
import sys

import pytest

import skep
from skep.adapters.process.programs import MODULES

ENTRY = "import sys; from skep.cli.frozen import run; sys.exit(run())"


def entry(*arguments):
    return subprocess.run([sys.executable, "-c", ENTRY, *arguments], capture_output=True, text=True, check=False)


def test_verbs_reach_the_terminal():
    assert entry("--version").stdout == f"skep {skep.__version__}\n"


def test_a_module_gets_its_own_arguments():
    done = entry("-m", "skep.host.export", "--help")
    assert done.returncode == 0
    assert "checkpoint" in done.stdout


def test_a_worker_that_is_told_nonsense_ends_as_it_does_unfrozen():
    asked = [sys.executable, "-c", ENTRY, "-m", "skep.worker.main"]
    assert subprocess.run(asked, input=b"nonsense\n", capture_output=True, check=False).returncode == 2
    assert subprocess.run(asked, input=b"", capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("arguments", [("-m",), ("-m", "os"), ("-m", "skep.core.device"), ("-m", "../skep")])
def test_nothing_else_is_run(arguments):
    done = entry(*arguments)
    assert done.returncode == 2
    assert "is for skep itself" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_can_be_run_is_ours():
    assert all(module.startswith("skep.") for module in MODULES)
