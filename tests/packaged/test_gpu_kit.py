"""The kit for computers with a GPU: what goes into it, and what its `run` says; and the GPU benchmark, on the processor."""

import importlib.util
import json
import lzma
import os
import runpy
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from unittest import mock

import gpu_kit
import pytest
import torch
from torch import distributed as dist

from nvml_card import Card, build_library
from skep.worker.ranks import sharding_waits

ROOT = Path(__file__).resolve().parents[2]
RUNNING = "{}.{}".format(*sys.version_info)
BENCHMARK = ROOT / "benchmarks" / "gpu.py"
without_a_card = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")


@pytest.fixture
def kit(tmp_path):
    """An empty kit for this Python: PyTorch and all packages are this Python's own."""
    for name in ("run", "run_part.py"):
        (tmp_path / name).write_bytes((gpu_kit.HERE / "gpu" / name).read_bytes())
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "python-version").write_text(RUNNING)
    gpu_kit.pack([], tmp_path / "packages.tar.xz")
    return tmp_path


def run(kit, *arguments, python=sys.executable):
    environment = {"PYTHON": str(python), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([kit / "run", *arguments], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip()


@without_a_card
def test_without_a_card_a_part_is_refused_in_a_sentence(kit):
    code, said = run(kit, "tests")
    assert (code, said) == (2, f"PyTorch {torch.__version__} finds no CUDA device: the GPU suite needs one.")
    assert not (kit / "results").exists()


def test_a_part_that_changes_the_card_has_to_be_allowed(kit):
    said = "power changes settings of the card: allow it with --may-change-card."
    assert run(kit, "power") == (2, said)


def test_another_python_is_refused_in_a_sentence(kit):
    (kit / "python-version").write_text("3.9\n")
    code, said = run(kit, "tests")
    assert code == 2
    assert said == f"This kit is for Python 3.9, and this is Python {RUNNING}: make one with PYTHON={RUNNING}."


def test_a_python_without_pytorch_is_refused_in_a_sentence(kit, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    code, said = run(kit, "tests", python=bare / "bin" / "python")
    assert code == 2
    assert said == f"{bare}/bin/python has no torch and no scipy: install it, or name another Python by PYTHON=…."


@pytest.fixture
def script(kit):
    """The kit's script as a module."""
    spec = importlib.util.spec_from_file_location("run_part", kit / "run_part.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_each_gpu_test_is_in_one_part_and_those_that_fork_ranks_have_a_process_of_their_own(script):
    parts = {part: command for part, command in script.PARTS.items() if "pytest" in command}
    found = {part: collected(command) for part, command in parts.items()}
    files = {file.name: "fork(" in file.read_text() for file in (ROOT / "tests" / "gpu").glob("test_*.py")}
    assert sorted(file for each in found.values() for file in each) == sorted(files)
    for each in found.values():
        assert len(each) == 1 or not any(files[file] for file in each)


def collected(command):
    """Names of the files whose tests pytest would run."""
    asked = [sys.executable, *command, "--collect-only", "-q"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {Path(line.partition("::")[0]).name for line in done.stdout.splitlines() if "::" in line}


def test_a_pytorch_that_lacks_what_skep_needs_is_refused_in_a_sentence(script):
    said = "PyTorch 2.8.1 is older than 2.9, which skep needs: install a newer one."
    assert [script.too_old(version) for version in ("2.8.1", "2.9.0", "2.11.0+cu130")] == [said, "", ""]


def test_with_an_older_pytorch_the_messages_of_shards_go_by_their_older_names(monkeypatch):
    older = {}
    for name, old in (
        ("all_gather_single", "all_gather_into_tensor"),
        ("reduce_scatter_single", "reduce_scatter_tensor"),
    ):
        older[old] = mock.create_autospec(getattr(dist, old))  # refuses other arguments than this has
        monkeypatch.setattr(dist, old, older[old])
        monkeypatch.delattr(dist, name)
    runpy.run_path(str(ROOT / "tests" / "gpu" / "conftest.py"))
    whole, shard = torch.zeros(2), torch.zeros(1)
    sharding_waits.WaitedAllGather()(whole, shard, None)
    sharding_waits.WaitedReduceScatter()(shard, whole, None, dist.ReduceOp.SUM)
    gathered, summed = (each.call_args for each in older.values())
    assert gathered == mock.call(whole, shard, group=None, async_op=True)
    assert summed == mock.call(shard, whole, op=dist.ReduceOp.SUM, group=None, async_op=True)


@pytest.mark.parametrize("part", ["memory", "steps", "shares", "giveback"])
def test_the_kit_measures_as_the_recorded_rows_were_measured(script, part):
    recorded = (ROOT / "benchmarks" / f"gpu-{part}.md").read_text()
    assert recorded.startswith(f"`python {' '.join(script.PARTS[part])}`")


@pytest.fixture
def parts(script, kit):
    """The kit's script, whose only part is a program of one test."""
    script.PYTHON, script.SKEP, script.PARTS = sys.executable, kit, {}
    return script


def test_a_part_is_logged_with_the_card_and_ends_with_its_own_code(parts, tmp_path):
    parts.PARTS["x"] = ["-c", "print('hello'); raise SystemExit(3)"]
    assert parts.run("x", tmp_path / "results", "Some card") == 3
    said = (tmp_path / "results" / "gpu-x.log").read_text().splitlines()
    assert said[:2] == ["x: Some card", "hello"]
    assert said[2].startswith("x: exit code 3 after")


def test_a_part_that_takes_too_long_is_ended(parts, tmp_path):
    parts.PARTS["x"], parts.SECONDS = ["-c", "import time; time.sleep(60)"], 0.3
    assert parts.run("x", tmp_path, "Some card") != 0
    assert "exit code -15" in (tmp_path / "gpu-x.log").read_text()


@pytest.mark.parametrize(
    ("wheel", "another"),
    [
        ("varint-1.0.2-py3-none-any.whl", False),
        ("hivemind-1.1.12-py3-none-manylinux2014_x86_64.whl", False),
        ("cryptography-50.0.2-cp311-abi3-manylinux_2_34_x86_64.whl", False),
        ("numpy-2.3.5-cp312-cp312-manylinux_2_28_x86_64.whl", False),
        ("numpy-2.3.5-cp311-cp311-linux_x86_64.whl", True),
    ],
)
def test_a_wheel_built_here_may_not_fit_the_other_python(wheel, another):
    assert gpu_kit.is_for_another(Path(wheel), "3.12") is another


def test_the_archive_has_what_is_loaded_and_keeps_what_may_be_executed(tmp_path):
    wheel, packed = tmp_path / "a.whl", tmp_path / "packages.tar.xz"
    with zipfile.ZipFile(wheel, "w") as made:
        for name, mode in (
            ("a/p2pd", 0o755),
            ("a/__init__.py", 0o644),
            ("a/tests/x.py", 0o644),
            ("babel/locale-data/fr.dat", 0o644),
        ):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            made.writestr(entry, name)
    gpu_kit.pack([wheel], packed)
    with lzma.open(packed) as file, tarfile.open(fileobj=file) as archive:
        assert {each.name: each.mode for each in archive} == {"a/p2pd": 0o755, "a/__init__.py": 0o644}


def test_the_kit_has_hivemind_and_its_requirements_without_those_of_pytorch():
    names = {each.name.lower() for each in gpu_kit.packages()}
    assert {"hivemind", "numpy", "transformers", "uvloop", "pytest", "nvidia-ml-py"} <= names
    assert not names & {"torch", "sympy", "triton", "pyside6-essentials", "scipy"}
    assert not [name for name in names if name.startswith("nvidia-cu")]


def benchmark(*arguments, **environ):
    command = [sys.executable, BENCHMARK, *arguments]
    return subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, check=False)


@without_a_card
def test_without_a_card_the_benchmark_has_no_result(tmp_path):
    done = benchmark("--to", str(tmp_path))
    assert done.returncode == 2
    assert "PyTorch finds no CUDA device" in done.stdout
    assert not list(tmp_path.iterdir())


def test_the_benchmark_runs_on_the_processor(tmp_path):
    done = benchmark("giveback", "--device", "cpu", "--rounds", "1", "--to", str(tmp_path))
    assert done.returncode in (0, 1), done.stdout + done.stderr
    rows = json.loads((tmp_path / "gpu-giveback.json").read_text())["rows"]
    assert [row["name"] for row in rows] == [
        "a second program's speed while training, of that alone",
        "given back to a second program, p95",
    ]


def test_the_power_limit_is_restored_and_changed_only_when_that_is_allowed(tmp_path):
    card, to = Card(tmp_path), tmp_path / "results"
    environ = {"LD_LIBRARY_PATH": str(build_library(tmp_path)), "NVML_STUB_FILE": str(card.file)}
    asked = ["power", "--device", "cpu", "--seconds", "1", "--to", str(to)]
    refused = benchmark(*asked, **environ)
    assert (refused.returncode, card.limit) == (2, None)
    assert "allow it with --may-change-card" in refused.stderr
    done = benchmark(*asked, "--may-change-card", **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["name"]: row["value"] for row in json.loads((to / "gpu-power.json").read_text())["rows"]}
    assert rows["power drawn while training, with the card's own limit"] == 187.5
    assert rows["power drawn with a limit of 144 W"] == 143.75
    assert rows["the card's own limit afterwards, off by"] == 0.0
    assert card.limit == 320


def test_a_power_limit_that_only_an_administrator_may_set_is_no_result(tmp_path):
    card = Card(tmp_path)
    card.say(nvmlDeviceSetPowerManagementLimit=4)
    environ = {"LD_LIBRARY_PATH": str(build_library(tmp_path)), "NVML_STUB_FILE": str(card.file)}
    done = benchmark("power", "--device", "cpu", "--may-change-card", "--to", str(tmp_path / "results"), **environ)
    assert done.returncode == 2
    assert "power given up: Only an administrator may limit the power of the card on this system." in done.stdout
