"""A build's contents, without building: every file that skep loads is included, and every named file exists."""

import importlib.util
import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import inventory
import pytest
import release_repo
import stage

from skep.adapters.process.programs import APP_MODULE, MODULES
from skep.core.releases import Release, archive_name, notice, notice_name, read_notice

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(sysconfig.get_path("purelib")).resolve()
LOADED = """
import json, sys
from skep.host import inspection
inspection.look()
print(json.dumps([str(f) for f in (getattr(each, "__file__", None) for each in list(sys.modules.values())) if f]))
"""


@pytest.fixture(scope="module")
def laid():
    """The destinations of all files of the trees."""
    return {str(place) for tree in inventory.trees().values() for place, _ in inventory.files(tree)}


def test_every_file_that_training_loads_is_laid_down(laid):
    said = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout
    loaded = {Path(file).resolve() for file in json.loads(said.splitlines()[-1])}
    places = {file.relative_to(SITE).as_posix() for file in loaded if file.is_relative_to(SITE)}
    frozen = {file.as_posix() for each in inventory.light().values() for file in each.files or ()}
    # skep's editable installation here, and a file that setuptools installs
    ours = {place for place in places if place.startswith(("__editable__", "_distutils_hack"))}
    assert len(places) > 500
    assert not sorted(places - laid - frozen - ours)
    assert {place.split("/")[0].split(".")[0] for place in places & frozen - laid} <= set(inventory.SHARED)


def test_what_hivemind_and_torch_start_is_laid_down_with_its_run_bit(laid):
    for place in ("hivemind/hivemind_cli/p2pd", "torch/bin/torch_shm_manager"):
        assert place in laid
        assert (SITE / place).stat().st_mode & 0o111


def test_no_pattern_and_no_name_outlives_what_it_was_for():
    assert not inventory.unused_patterns()
    assert not inventory.unused_patterns(inventory.KEPT)
    asked = inventory.closure(inventory.requirements("skep", "train"))
    assert asked.keys() >= inventory.UNUSED_TREES


def test_the_room_it_takes_stays_within_the_limit():
    sizes = [source.stat().st_size for tree in inventory.trees().values() for _, source in inventory.files(tree)]
    # an allowance for compiled files, and 150 MB for the programs, Qt and the system's libraries
    assert "+cpu" not in inventory.distribution("torch").version or sum(sizes) * 1.1 + 150e6 < inventory.SIZE_LIMIT


def test_the_frozen_program_runs_every_module_that_skep_starts_and_no_other():
    started = set()
    for file in (ROOT / "client" / "skep").rglob("*.py"):
        started |= set(re.findall(r'(?:module_command|PeerProcess)\("([\w.]+)"', file.read_text()))
    assert started == set(MODULES)
    assert all(importlib.util.find_spec(name) for name in (*MODULES, APP_MODULE))


def test_nothing_but_programs_starts_a_python():
    for root in ("client", "gui"):
        # a script of one's own runs in a Python
        apart = [ROOT / root / name.replace(".", "/") for name in inventory.SCRIPTS]
        files = [file for file in (ROOT / root).rglob("*.py") if not set(apart) & set(file.parents)]
        assert [file.name for file in files if "sys.executable" in file.read_text()] in (["programs.py"], [])


def test_the_programs_call_what_exists():
    for name, module in zip(inventory.PROGRAMS.values(), ("skep.cli.frozen", "skep_gui.main"), strict=True):
        entry = (ROOT / "packaging" / "entries" / name).read_text()
        assert f"from {module} import run" in entry
        assert entry.index("freeze_support()") < entry.index(module)


@pytest.mark.parametrize(
    ("named", "folders"),
    [([], ["skep-app", "skep"]), (["app"], ["skep-app"]), (["whole", "app"], ["skep", "skep-app"])],
)
def test_both_editions_are_packed_or_those_that_are_named(monkeypatch, named, folders):
    monkeypatch.setattr(sys, "argv", ["deb.py", *named])
    assert [edition.folder.name for edition in stage.chosen_editions("")] == folders


def test_an_edition_that_is_none_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["deb.py", "half"])
    with pytest.raises(SystemExit):
        stage.chosen_editions("")
    assert "there is no edition half, only app and whole" in capsys.readouterr().err


def test_an_edition_replaces_the_other_and_its_archive_is_one_of_updates():
    app, whole = stage.EDITIONS["app"], stage.EDITIONS["whole"]
    assert (app.other, whole.other) == (whole.package, app.package)
    for edition in (app, whole):
        named = archive_name("0.1.0", edition.system, "x86_64")
        said = json.dumps(notice(Release("0.1.0", named, 1)))
        assert read_notice(said.encode()).archive == named
        assert notice_name(*release_repo.ARCHIVE.fullmatch(named).groups()[1:]) == notice_name(edition.system, "x86_64")


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ("PySide6/Qt/plugins/platforms/libqxcb.so", True),
        ("PySide6/Qt/plugins/platforms/libqoffscreen.so", True),
        ("PySide6/Qt/plugins/platformthemes/libqgtk3.so", False),
        ("PySide6/Qt/plugins/platforminputcontexts/libqtvirtualkeyboardplugin.so", False),
        ("PySide6/Qt/lib/libQt6Qml.so.6", False),
        ("PySide6/Qt/lib/libQt6Widgets.so.6", True),
        ("PySide6/Qt/translations/qtbase_de.qm", True),
        ("PySide6/Qt/translations/qt_de.qm", False),
        ("torch/lib/libtorch_cpu.so", True),
        ("libssl.so.3", True),
        ("libstdc++.so.6", False),
    ],
)
def test_of_qt_only_what_the_app_can_use(place, wanted):
    assert inventory.is_library_wanted(place) is wanted
