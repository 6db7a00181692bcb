"""Each file of a home damaged in five ways: skep starts, or says in one sentence why not; never a traceback."""

import json
import re
import shutil

import pytest

from damages import DAMAGES, as_a_user, folder_in_its_place, left, random_bytes, unreadable
from english import in_english
from manifests import signed
from refusals import assert_calm, make_past
from skep import bootstrap
from skep.adapters.net.catalogue import FileCatalogue
from skep.adapters.storage.paths import Home
from skep.adapters.storage.settings_file import PauseFile
from skep.cli.application import main
from skep.core.errors import SkepError
from skep.core.session import messages as m
from skep.host.server.folder import HostFolder

ENDS_WITHIN = 30
MENDED = {"ledger.sqlite": "The ledger was damaged", "settings.toml": "The settings file was damaged"}
"""What goes on after damage, and what is said then; the damaged file is kept under another name."""
UNNOTICED = ("lock", "control.json", "worker.json", "power_limit.json", "logs/skep.log", "identity.id")
REPLACED = (*MENDED, *UNNOTICED, "settings.last.toml")
"""What skep writes anew."""
FILES = {
    "settings.toml": [("settings",)],
    "ledger.sqlite": [("stats",), ("timeline",)],
    "identity.key": [("identity",)],
    "identity.id": [("identity",)],
    "projects/other/project.json": [("projects",), ("project", "show", "other")],
    "projects/inner/project.json": [],
    "keys/publisher.pub": [("key", "list")],
    "secrets/key publisher": [("key", "list"), ("key", "delete", "publisher", "--yes")],
    "secrets/invitation to inner": [("project", "invitations")],
    "pause.json": [("explain",)],
    "settings.last.toml": [("settings",)],
    "control.json": [("status",), ("pause",)],
    "lock": [],
    "worker.json": [],
    "power_limit.json": [],
    "logs/skep.log": [],
    "host/address.json": [("host", "--address")],
    "host/seed.id": [("host", "--address")],
}
"""Each with the verbs that read it."""
REFUSED = {
    **{("settings.toml", damage): "cannot be read" for damage in (unreadable, folder_in_its_place)},
    **{("ledger.sqlite", damage): "cannot be opened" for damage in (unreadable, folder_in_its_place)},
    **{("pause.json", damage): "cannot be read" for damage in (unreadable, folder_in_its_place)},
    **{("lock", damage): "cannot be opened" for damage in (unreadable, folder_in_its_place)},
}
"""The starts that cannot go on, and a part of what they say."""


TOLD = {("control.json", folder_in_its_place): "Other terminals cannot connect"}
"""Starts that go on with less, and what is said then."""


@pytest.fixture(scope="module")
def past(tmp_path_factory):
    """A home with every file that it may have."""
    home = Home(make_past(tmp_path_factory.mktemp("past")))
    bootstrap.publisher_keys(home).new("publisher", in_file=True)
    FileCatalogue(home.projects_folder).add(str(signed(tmp_path_factory.mktemp("m"), id="inner", membership="invited")))
    (home.secrets_folder / "invitation to inner").write_text('{"format": 1}')
    PauseFile(home.pause_file).save(paused=True, until=None)
    for file in (home.control_file, home.worker_file, home.power_limit_file):
        file.write_text("{}")
    home.lock_file.write_text("123")
    shutil.copy(home.settings_file, home.settings_copy_file)
    host = HostFolder(home.host_folder)
    host.create()
    host.address(4001, "host.example.org")
    assert host.identity.peer_id
    home.logs_folder.mkdir()
    (home.logs_folder / "skep.log").write_text("a line\n")
    assert {str(file.relative_to(home.root)) for file in home.root.rglob("*") if file.is_file()} == FILES.keys()
    return home.root


@pytest.fixture
def home(past, tmp_path):
    shutil.copytree(past, tmp_path / "home", copy_function=shutil.copy)
    (tmp_path / "home").chmod(0o700)
    return Home(tmp_path / "home")


def start(home):
    """What a start of the app or of `skep join` says, and whether it was refused."""
    said = []
    try:
        with bootstrap.hold(home) as mended, bootstrap.build(home, mended=mended) as engine:
            engine.observe(lambda message, _: said.append(message) if isinstance(message, m.ProblemArose) else None)
            engine.start()
            engine.post(m.Quit())
            assert engine.join(ENDS_WITHIN)
    except SkepError as error:
        return [error.problem], True
    return [message.problem for message in said], False


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_skep_starts_with_a_damaged_file_or_says_why_it_cannot(home, name, damage):
    damage(home.root / name)
    damaged = left(home.root / name)
    with as_a_user():
        said, refused = start(home)
    assert refused == ((name, damage) in REFUSED)
    for problem in said:
        assert_calm(in_english(problem.title), in_english(problem.hint))
    if refused:
        assert REFUSED[name, damage] in in_english(said[0])
    assert left(home.root / name) == damaged or name in REPLACED
    if refused:
        return
    words = MENDED.get(name) or TOLD.get((name, damage))
    assert [re.split("[;:]", in_english(each))[0] for each in said] == [words] * bool(words)
    if name in MENDED:
        assert [each.read_bytes() for each in home.root.glob(f"{name}.damaged-*")] == [damaged]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(("name", "verb"), [(name, verb) for name, verbs in FILES.items() for verb in verbs])
def test_a_verb_goes_on_with_a_damaged_file_or_says_why_it_cannot(home, name, verb, damage, capsys):
    damage(home.root / name)
    damaged = left(home.root / name)
    with as_a_user():
        code = main(["--home", str(home.root), "--json", *verb], {})
    out, error = capsys.readouterr()
    assert code in (0, 1, 2)
    if code:
        assert_calm(*error.splitlines())
        assert json.loads(out)["event"] == "problem"
    assert "internal error" not in error
    assert left(home.root / name) == damaged or name in REPLACED or "delete" in verb


def test_the_way_on_from_a_damaged_identity_is_a_verb(home, capsys):
    random_bytes(home.identity_file)
    damaged, before = home.identity_file.read_bytes(), home.peer_id_file.read_text()
    assert main(["--home", str(home.root), "--json", "identity", "--new"], {}) == 0
    told = json.loads(capsys.readouterr().out)["peer_id"]
    assert told == home.peer_id_file.read_text() != before
    assert [each.read_bytes() for each in home.root.glob("identity.key.damaged-*")] == [damaged]
