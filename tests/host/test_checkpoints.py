import json
import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoModelForImageClassification, AutoModelForMaskedLM

from english import in_english, raises
from manifests import example, images, masked, raw, signed
from recipe_files import lora_recipe
from skep import bootstrap
from skep.core.errors import StorageError
from skep.host.server.folder import HostFolder
from skep.recipes.registry import open_recipe, parse_manifest
from skep.worker.swarm.state.checkpoints import Checkpoint, CheckpointFolder, read
from terminals import run_here

GPT2 = {"type": "gpt2", "layers": 2, "heads": 2, "width": 16, "vocabulary": 256}
CAUSAL = example()["recipe"] | {"model": GPT2, "sequence_length": 32}
LLAMA = CAUSAL | {"model": GPT2 | {"type": "llama"}}


def made(epoch=7, recipe=CAUSAL):
    """A checkpoint of a model whose parameters differ from the initial ones."""
    text = raw(recipe=recipe).decode()
    manifest = parse_manifest(text.encode())
    built = open_recipe(manifest.recipe).build()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.01)
    moments = [torch.rand(3), torch.tensor(5.0)]
    return built, Checkpoint(manifest.run_id, epoch, text, dict(built.named_parameters()), moments)


@pytest.fixture
def folder(tmp_path):
    return CheckpointFolder(tmp_path / "kept", keep=2)


def test_what_was_written_is_read_back(folder):
    _, checkpoint = made()
    again = read(folder.write(checkpoint))
    assert (again.run_id, again.epoch, again.manifest) == (checkpoint.run_id, 7, checkpoint.manifest)
    assert again.parameters.keys() == checkpoint.parameters.keys()
    assert all(torch.equal(again.parameters[name], tensor) for name, tensor in checkpoint.parameters.items())
    assert all(map(torch.equal, again.optimizer, checkpoint.optimizer))


def test_the_newest_few_stay_and_what_a_killed_writer_left_goes(folder, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / ".epoch-00000001.safetensors.abc").write_bytes(b"half")
    (tmp_path / "kept" / "notes.txt").write_text("mine")
    for epoch in (9, 10, 100):
        folder.write(made(epoch)[1])
    assert [path.name for path in folder.paths()] == ["epoch-00000100.safetensors", "epoch-00000010.safetensors"]
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {*(p.name for p in folder.paths()), "notes.txt"}


def test_what_was_just_written_stays_though_damaged_ones_seem_newer(folder, tmp_path):
    for epoch in (1000, 1001):
        folder.write(made(epoch)[1]).write_bytes(b"cut off")
    for epoch in (990, 991):
        assert read(folder.write(made(epoch)[1])).epoch == epoch
    assert [path.name[11:14] for path in folder.paths()] == ["001", "000", "991"]


def test_checkpoints_before_a_jump_stay_too(tmp_path):
    folder = CheckpointFolder(tmp_path / "kept", keep=2, jump=50)

    def epochs():
        return [int(path.stem.removeprefix("epoch-")) for path in folder.paths()]

    for epoch in (10, 60, 110):
        folder.write(made(epoch)[1])
    assert epochs() == [110, 60]
    for epoch in (161, 171, 181, 1000, 1010, 1020):
        folder.write(made(epoch)[1])
    assert epochs() == [1020, 1010, 110, 60]
    folder.paths()[-1].unlink()
    folder.write(made(1030)[1])
    assert epochs() == [1030, 1020, 110]


def test_no_folder_means_no_checkpoints(folder):
    assert folder.paths() == []


def test_a_checkpoint_that_cannot_be_written_is_said_and_older_ones_stay(tmp_path):
    (tmp_path / "kept").write_text("in the way")
    with raises(StorageError, match="cannot be read or written"):
        CheckpointFolder(tmp_path / "kept", 1).write(made()[1])


def test_what_is_no_checkpoint_is_said(folder, tmp_path):
    path = folder.write(made()[1])
    path.write_bytes(path.read_bytes()[:-10])
    with raises(StorageError, match="is damaged"):
        read(path)
    save_file({"x": torch.zeros(1)}, tmp_path / "other.safetensors")
    with raises(StorageError, match="is not a skep checkpoint"):
        read(tmp_path / "other.safetensors")
    with raises(StorageError, match="There is no checkpoint"):
        read(tmp_path / "nowhere.safetensors")


def export(checkpoint, target, *more):
    done = subprocess.run(
        [sys.executable, "-m", "skep.host.export", str(checkpoint), str(target), *more],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize(
    ("recipe", "loader"),
    [
        pytest.param(CAUSAL, AutoModelForCausalLM, id="gpt2"),
        pytest.param(LLAMA, AutoModelForCausalLM, id="llama", marks=pytest.mark.long),
        pytest.param(masked("bert"), AutoModelForMaskedLM, id="bert", marks=pytest.mark.long),
        pytest.param(masked("albert"), AutoModelForMaskedLM, id="albert", marks=pytest.mark.long),
        pytest.param(images(), AutoModelForImageClassification, id="vit", marks=pytest.mark.long),
    ],
)
def test_an_exported_model_is_loaded_by_transformers_and_says_the_same(folder, tmp_path, recipe, loader):
    model, checkpoint = made(recipe=recipe)
    code, said = export(folder.write(checkpoint), tmp_path / "model")
    assert (code, said["epoch"], said["run_id"]) == (0, 7, checkpoint.run_id)
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert {"config.json", "model.safetensors"} <= names
    assert not any(name.endswith((".bin", ".pt", ".pkl")) for name in names)
    loaded = loader.from_pretrained(tmp_path / "model").eval()
    given = torch.rand(3, 3, 8, 8) if recipe["name"] == "image-classifier" else torch.randint(256, (3, 32))
    with torch.no_grad():
        assert torch.equal(loaded(given).logits, model.eval()(given).logits)


@pytest.mark.parametrize(
    ("kind", "targets"),
    [("llama", ["q_proj", "down_proj"]), pytest.param("gpt2", ["c_attn", "c_proj"], marks=pytest.mark.long)],
)
def test_adapters_are_exported_as_part_of_their_base(folder, tmp_path, kind, targets):
    body, files = lora_recipe(tmp_path, kind, targets)
    text = raw(recipe=body).decode()
    manifest = parse_manifest(text.encode())
    model = open_recipe(manifest.recipe, files).build().eval()
    adapters = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
    with torch.no_grad():
        for tensor in adapters.values():
            tensor.copy_(torch.randn_like(tensor))
    path = folder.write(Checkpoint(manifest.run_id, 3, text, adapters, []))
    assert "are needed to build its model" in in_english(export(path, tmp_path / "model")[1]["title"])
    files["base weights"].rename(tmp_path / "base.safetensors")
    code, said = export(path, tmp_path / "model", "--files", str(tmp_path))
    assert (code, said["epoch"]) == (0, 3)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "model").eval()
    assert not any("lora" in name for name, _ in loaded.named_parameters())
    tokens = torch.randint(256, (3, 32))
    with torch.no_grad():
        torch.testing.assert_close(loaded(tokens).logits, model(tokens).logits, atol=1e-4, rtol=1e-4)


def test_a_project_that_is_named_is_exported_as_its_host_or_this_computers_worker_has_kept_it(home, tmp_path):
    project = bootstrap.catalogue(home).add(str(signed(tmp_path, recipe=CAUSAL)))
    named = "--home", str(home.root), "--json", "project", "export", project.id
    assert run_here(*named, str(tmp_path / "none")).returncode != 0
    _, early = made(8)
    CheckpointFolder(HostFolder(home.host_folder).checkpoints(project.run_id), 1).write(early)
    assert json.loads(run_here(*named, str(tmp_path / "hosts")).stdout)["epoch"] == 8
    _, late = made(9)
    CheckpointFolder(home.snapshots_folder / project.run_id, 1).write(late)
    assert json.loads(run_here(*named, str(tmp_path / "own")).stdout)["epoch"] == 9


def test_an_export_that_fails_leaves_nothing(folder, tmp_path):
    path = folder.write(made()[1])
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine").write_text("kept")
    code, said = export(path, tmp_path / "model")
    assert code == 1
    assert "cannot be written" in in_english(said["title"])
    path.write_bytes(b"")
    assert "is damaged" in in_english(export(path, tmp_path / "another")[1]["title"])
    assert {each.name for each in tmp_path.iterdir()} == {"kept", "model"}
