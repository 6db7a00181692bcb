"""The app alone: small, useful at once, and with a compute pack it trains as the whole does."""

import json
import os
import platform
import subprocess
from pathlib import Path

import deb
import inventory
import packs
import pytest
import sizes
import slim
import stage

from skep.adapters.packs.laying import Laying
from skep.core.packs import list_name, read_packs, wheel_target
from skep.core.releases import archive_name

pytestmark = [pytest.mark.built, pytest.mark.timeout(900)]

DIST = packs.TO.parent


@pytest.fixture
def alone(app_alone, tmp_path):
    """Runs the program in another folder, with nothing of this Python and an empty home."""

    def run(*arguments):
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": os.environ["TMPDIR"]}
        command = [app_alone / "skep", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=environ, timeout=600, check=False
        )

    return run


@pytest.fixture(scope="module")
def laid(tmp_path_factory):
    """The processor's pack, laid down by its list."""
    file = packs.TO / list_name("linux", platform.machine(), "cp311")
    assert file.is_file(), "make packs builds it"
    pack = next(each for each in read_packs(file.read_bytes()).packs if each.name == "cpu")
    folder = tmp_path_factory.mktemp("packs") / "cpu"
    folder.mkdir()
    laying = Laying(pack, folder)
    for wheel in pack.wheels:
        laying.unpack(wheel, packs.TO / wheel_target(wheel), lambda _written: None)
    assert sum(each.stat().st_size for each in folder.rglob("*") if each.is_file()) == pack.unpacked
    return folder


def test_it_is_small_to_fetch_and_on_disk(app_alone):
    edition = stage.EDITIONS["app"]
    assert sum(sizes.measured(app_alone).values()) <= inventory.APP_SIZE_LIMIT
    assert (
        DIST / f"{edition.package}_{stage.VERSION}_{deb.ARCHITECTURES[platform.machine()]}.deb"
    ).stat().st_size <= edition.limit
    assert (DIST / archive_name(stage.VERSION, edition.system, platform.machine())).stat().st_size <= edition.limit


def test_it_has_no_training_stack_and_the_licence_of_what_it_has(app_alone):
    internal = app_alone / "_internal"
    there = {path.name for path in internal.iterdir()}
    assert not there & {place.parts[0] for tree in inventory.trees().values() for place, _ in inventory.files(tree)}
    index = (app_alone / "licenses" / "INDEX.txt").read_text()
    for name in inventory.light().values():
        assert f"\n{name.metadata['Name']} · " in index
    assert "torch" not in index
    assert "p2pd" not in index


@pytest.mark.parametrize("verb", ["devices", "settings", "stats", "projects", "sensors", "diagnostics"])
def test_without_a_pack_it_shows_what_needs_none(alone, verb):
    done = alone(verb)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_pack_the_stack_is_missing_and_with_a_gone_one_that_is_said(alone, tmp_path):
    done = alone("-m", "skep.host.inspection")
    assert done.returncode == 1
    assert json.loads(done.stdout)["missing"].startswith("ModuleNotFoundError")
    done = alone("-m", "skep.host.inspection", "--pack", str(tmp_path / "gone"))
    assert (done.returncode, done.stdout) == (2, "")


def test_with_the_processors_pack_every_part_is_imported_and_every_kind_of_model_trains(alone, laid):
    done = alone("-m", "skep.host.inspection", "--pack", str(laid))
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["models"] == ["gpt2", "llama", "bert", "albert", "vit"]
    assert said["versions"]["torch"].endswith("+cpu")
    assert Path(said["p2pd"]).is_relative_to(laid)


def test_a_pack_takes_from_the_system_only_what_the_package_depends_on(app_alone, laid):
    own = [each for each in laid.rglob("*.so*") if each.is_file()] + [laid / "torch/bin/torch_shm_manager"]
    of_the_app = {each.name for each in (app_alone / "_internal").glob("*.so*")}
    assert slim.needed(own) - {each.name for each in own} - of_the_app <= set(deb.LIBRARIES)


def test_lintian_finds_nothing_in_the_apps_package_that_is_not_explained():
    package = DIST / f"skep-app_{stage.VERSION}_{deb.ARCHITECTURES[platform.machine()]}.deb"
    subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", package], check=True)
