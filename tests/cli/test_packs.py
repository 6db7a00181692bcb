"""The verb `packs`, with a real repository: its lines, its JSON, its exit codes, in English and German."""

import json
import re
import shutil

import pytest

from pack_repository import pack_server
from skep.adapters.process.programs import UpdateSource
from skep.cli import application
from skep.cli.parser import Context
from skep.cli.show.speech import speak
from skep.cli.show.terminal import Terminal
from skep.cli.verbs import packs as verb
from skep.core.device import Device, DeviceKind
from skep.core.packs import PackKind, list_name
from skep.core.text import NOTHING, Text
from skep.services import packs as services
from skep.services.packs import Packs
from small_packs import make_pack, make_wheel

LIST = list_name("linux", "x86_64", "cp311")
CARD = Device(DeviceKind.NVIDIA, 0, "NVIDIA GeForce RTX 3090", driver="580.65.06", architecture="8.6")
PROCESSOR = Device(DeviceKind.CPU, 0, "A processor")


@pytest.fixture
def server(tmp_path):
    with pack_server(tmp_path / "served") as server:
        yield server


@pytest.fixture
def world(server, home, tmp_path, monkeypatch):
    """A skep without a training stack of its own; `fails` has the reasons of trials by the pack's name."""

    source = UpdateSource(server.address, server.root)

    class World:
        devices, fails = [CARD, PROCESSOR], {}

        def packs(self, home):
            return Packs(
                home,
                source,
                devices=lambda: self.devices,
                proxy=lambda: "",
                keep_free=lambda: 0.0,
                name=LIST,
                trial=lambda folder, _device, _check: self.fails.get(folder.name.rpartition("-")[0], NOTHING),
            )

    made = World()
    # only a frozen program lacks the stack and knows an update server
    monkeypatch.setattr(services, "packs", made.packs)
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    shared = make_wheel(wheels, "shared", {"shared.py": b"s"})
    made.cpu = make_pack("cpu", shared, make_wheel(wheels, "c", {"c.py": bytes(300_000)}))
    made.cuda = make_pack(
        "cuda-13.0", shared, make_wheel(wheels, "g", {"g.py": bytes(200_000)}),
        kind=PackKind.CUDA, driver=(580,), cards=("8.6",),
    )  # fmt: skip
    server.publish(wheels, LIST, made.cpu, made.cuda)
    return made


@pytest.fixture
def skep(home, capsys):
    """Runs the verb; returns its exit code, its output and its remarks."""

    def run(*arguments, language="en"):
        code = application.main(["packs", *arguments], {"SKEP_HOME": str(home.root), "LANG": language})
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    yield run
    speak("en")


def test_from_source_one_sentence_says_that_no_pack_is_needed(skep):
    sentence = "This skep computes with the PyTorch that came with it or with its Python, and needs no compute pack.\n"
    assert skep("list") == skep() == (0, sentence, "")
    for arguments in (["fetch"], ["add", "/tmp/file"]):
        code, out, remarks = skep(*arguments)
        assert (code, out, remarks) == (1, "", sentence)
    assert json.loads(skep("list", "--json")[1]) == {
        "installed": [], "spare_bytes": 0, "lacking": sentence.strip(), "suits": None, "problem": None
    }  # fmt: skip


def test_before_anything_is_fetched_it_is_said_what_suits_its_size_and_where_it_will_lie(world, skep, home):
    code, out, _ = skep("list")
    assert code == 0
    assert "No compute pack is installed." in out
    assert "The pack cuda-13.0 suits NVIDIA GeForce RTX 3090 with driver 580.65.06." in out
    assert "`skep packs fetch` fetches " in out
    assert str(home.packs_folder / "laid/cuda-13.0-") in out.replace("\n", "")


def test_a_pack_is_fetched_listed_verified_and_removed(world, skep):
    code, out, remarks = skep("fetch")
    assert code == 0
    assert out.startswith("The compute pack cuda-13.0 is used now, with PyTorch 2.13.0.\n")
    assert "100 % of " in remarks
    assert "fetched." in remarks
    assert "laid down." in remarks
    assert "cuda-13.0 is being tried." in remarks
    code, out, _ = skep("list")
    assert "cuda-13.0" in out
    assert "is used" in out
    assert "`skep packs fetch`" not in out
    assert skep("verify")[0] == 0
    code, out, _ = skep("remove")
    assert (code, out.endswith(" are free again.\n")) == (0, True)
    assert "No compute pack is installed." in skep("verify")[1]


def test_what_falls_is_said_and_the_next_one_is_used(world, skep):
    world.fails = {"cuda-13.0": Text("packs.no_nvidia_driver")}
    code, out, remarks = skep("fetch")
    assert code == 0
    assert "cuda-13.0: PyTorch finds no NVIDIA driver.\n" in remarks
    assert out.startswith("The compute pack cpu is used now")
    assert "cuda-13.0: PyTorch finds no NVIDIA driver." in skep("list")[1]


def test_going_back(world, skep):
    assert skep("back")[0] == 1
    skep("fetch")
    skep("fetch", "cpu")
    assert re.search(r"Removing those that are not used frees 20\d\.\d.kB\.", skep("list")[1])
    assert skep("back")[1] == "The compute pack cuda-13.0 is used now, with PyTorch 2.13.0.\n"
    rows = [" ".join(line.split()) for line in skep("list")[1].splitlines()]
    assert "cpu 2.13.0 300.0 kB the previous one" in rows
    assert "cuda-13.0 2.13.0 200.0 kB is used" in rows
    assert skep("remove", "rocm")[0] == 2


def test_damage_is_named_and_exits_with_1(world, skep, home):
    skep("fetch")
    (home.packs_folder / "current/g.py").unlink()
    code, out, _ = skep("verify")
    assert code == 1
    assert ": damaged or missing: g.py.\n`skep packs fetch` mends the one that suits.\n" in out
    assert json.loads(skep("verify", "--json")[1])["damaged"].popitem()[1] == ["g.py"]
    skep("fetch")
    assert skep("verify")[0] == 0


def test_a_pack_is_added_from_a_copy(world, skep, server, tmp_path):
    copy = shutil.make_archive(str(tmp_path / "copy"), "tar", server.folder)
    asked = len(server.asked)
    code, out, _ = skep("add", copy)
    assert (code, len(server.asked)) == (0, asked)
    assert out.startswith("The compute pack cuda-13.0 is used now")
    (tmp_path / "text").write_text("")
    code, _, remarks = skep("add", str(tmp_path / "text"))
    assert code == 1
    assert remarks.startswith(f"{tmp_path}/text cannot be read as a copy of an update repository: ")


def test_without_the_server_what_is_here_is_listed(world, skep, server):
    skep("fetch")
    shutil.rmtree(server.folder / "metadata")
    code, out, _ = skep("list")
    assert code == 0
    assert "is used" in out
    assert "The update server cannot be reached, or a file is missing there." in out
    assert skep("fetch")[0] == 1


def test_json_has_everything(world, skep, home):
    said = json.loads(skep("fetch", "--json")[1])
    assert (said["name"], said["torch"], said["device"]) == ("cuda-13.0", "2.13.0", "cuda:0")
    listed = json.loads(skep("list", "--json")[1])
    (here,) = listed["installed"]
    assert (here["name"], here["bytes"], here["current"]) == ("cuda-13.0", 200_001, True)
    assert listed["suits"]["to_fetch_bytes"] == 0
    assert listed["suits"]["offered"] == ["cpu", "cuda-13.0"]
    assert listed["problem"] is listed["lacking"] is None


def test_german(world, skep):
    _, out, remarks = skep("fetch", language="de")
    assert out.startswith("Das Rechenpaket cuda-13.0 wird jetzt verwendet, mit PyTorch 2.13.0.\n")
    assert "cuda-13.0 wird ausprobiert.\n" in remarks


def test_before_computing_a_pack_is_fetched_if_there_is_none_or_it_no_longer_works(world, home, capsys):
    context = Context(Terminal(json=False), home, {})
    verb.ensure(context)
    remarks = capsys.readouterr().err
    assert remarks.startswith("No compute pack is installed.\n")
    assert "The compute pack cuda-13.0 is used now" in remarks
    verb.ensure(context)
    assert capsys.readouterr().err == ""
    world.devices = [PROCESSOR]
    verb.ensure(context)
    remarks = capsys.readouterr().err
    assert remarks.startswith("This computer has no NVIDIA device.\n")
    assert "The compute pack cpu is used now" in remarks


def test_from_source_nothing_is_fetched_before_computing(home, capsys):
    verb.ensure(Context(Terminal(json=False), home, {}))
    assert capsys.readouterr().err == ""
    assert not home.packs_folder.exists()
