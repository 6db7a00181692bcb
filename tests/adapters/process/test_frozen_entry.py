"""The frozen terminal program's entry point, run by Python: it runs verbs and our own modules only."""

import json
import subprocess
import sys
import textwrap

import pytest

import skep
from skep.adapters.process import programs
from skep.adapters.process.programs import MODULES, module_command

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


@pytest.fixture
def pack(tmp_path):
    """A pack whose torch is another one: a module, a namespace package over two wheels, and their descriptions."""
    folder = tmp_path / "laid" / "cpu-0"
    (folder / "torch-9.9.dist-info").mkdir(parents=True)
    (folder / "torch-9.9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9\n")
    (folder / "nvidia" / "cu13").mkdir(parents=True)
    (folder / "nvidia" / "cu13" / "here.py").write_text("")
    (folder / "pack.pth").write_text("import sys; sys.stderr.write('a pth was run')\n")
    (folder / "torch.py").write_text(textwrap.dedent(TORCH))
    return folder


TORCH = """
    import importlib.metadata, json, multiprocessing, sys
    import nvidia.cu13.here

    def said(to):
        import skep
        to.put([sys.argv[1:], nvidia.cu13.here.__file__, importlib.metadata.version("torch"), skep.__version__])

    # a spawned process imports this module once more
    if multiprocessing.current_process().name == "MainProcess":
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            to = context.Queue()
            child = context.Process(target=said, args=(to,))
            child.start()
            print(json.dumps(to.get(timeout=60)), flush=True)
            child.join()
        raise SystemExit(0)
"""


def test_a_pack_goes_before_the_stack_that_is_there_also_in_the_children_of_a_process(pack):
    done = entry("-m", "skep.host.inspection", "--pack", str(pack), "rest")
    expected = [["rest"], str(pack / "nvidia" / "cu13" / "here.py"), "9.9", skep.__version__]
    assert [json.loads(line) for line in done.stdout.splitlines()] == [expected, expected], done.stderr
    assert "pth" not in done.stderr


def test_the_command_with_a_pack_runs_it_unfrozen_too(pack):
    done = subprocess.run(module_command("skep.host.inspection", pack), capture_output=True, text=True, check=False)
    assert [json.loads(line)[2] for line in done.stdout.splitlines()] == ["9.9", "9.9"], done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"), [((), "none is none"), (("",), "none is none"), (("/nowhere",), "/nowhere is none")]
)
def test_a_pack_that_is_not_there_is_refused_in_a_sentence(arguments, named):
    done = entry("-m", "skep.host.inspection", "--pack", *arguments)
    assert done.returncode == 2
    assert done.stderr == f"skep --pack needs the folder of a compute pack, and {named}.\n"


def test_a_pack_needs_a_module_of_ours(pack):
    done = entry("-m", "http.server", "--pack", str(pack))
    assert done.returncode == 2
    assert "is for skep itself" in done.stderr


def test_a_program_that_was_written_anew_or_removed_was_replaced(monkeypatch, tmp_path):
    program = tmp_path / "skep"
    program.touch()
    monkeypatch.setattr(programs, "_own_file", lambda: program)
    monkeypatch.setattr(programs, "_STARTED_FROM", programs._identity())
    assert not programs.was_replaced()
    (tmp_path / "newer").touch()
    (tmp_path / "newer").rename(program)
    assert programs.was_replaced()
    program.unlink()
    assert programs.was_replaced()
