"""What the terminal says of the result of a run that this computer has kept."""

import io
import json

import pytest

from manifests import signed
from skep import bootstrap
from skep.cli.parser import Context
from skep.cli.show.terminal import Terminal
from skep.cli.verbs import join
from skep.core.session.snapshot import Snapshot
from skep.core.text import NOTHING, Text
from skep.services import results
from terminals import run_here

TOTAL = 2000
SENTENCE = "This computer has the model of epoch {}: skep project export tiny-code-lm DIR writes it."


@pytest.fixture
def project(home, tmp_path):
    return bootstrap.catalogue(home).add(str(signed(tmp_path)))


def keep(home, project, *names):
    folder = home.snapshots_folder / project.run_id
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"")


def offered(home, project, *, json_lines):
    out = io.StringIO()
    join.offer_result(Context(Terminal(json=json_lines, out=out), home, {}), project)
    return out.getvalue()


def test_the_newest_state_counts_and_nothing_else_in_its_folder(home, project):
    assert results.kept(home, project.manifest) is None
    keep(home, project, ".epoch-00002000.safetensors.half", "notes.txt")
    assert results.kept(home, project.manifest) is None
    keep(home, project, "epoch-00000999.safetensors", "epoch-00001000.safetensors")
    kept = results.kept(home, project.manifest)
    assert (kept.path.name, kept.epoch, kept.last) == ("epoch-00001000.safetensors", 1000, False)


def test_at_the_end_of_a_run_the_model_that_is_here_is_offered(home, project):
    assert offered(home, project, json_lines=False) == ""
    keep(home, project, "epoch-00001998.safetensors")
    assert offered(home, project, json_lines=False).strip() == SENTENCE.format(1998)
    told = json.loads(offered(home, project, json_lines=True))
    assert (told["event"], told["epoch"]) == ("result", 1998)
    assert told["path"].endswith("epoch-00001998.safetensors")


@pytest.mark.parametrize(("epoch", "over"), [(TOTAL - 1, False), (TOTAL, True)])
def test_a_project_says_that_its_run_is_finished_if_the_last_state_is_here(home, project, epoch, over):
    keep(home, project, f"epoch-{epoch:08d}.safetensors")
    shown = "--home", str(home.root), "project", "show", project.id
    said = run_here(*shown).stdout
    assert ("The run is finished." in said, SENTENCE.format(epoch) in said) == (over, over)
    assert json.loads(run_here(*shown, "--json").stdout)["finished"] == over


@pytest.mark.parametrize("finished", [Text("session.run_finished", title="Tiny", epochs=TOTAL), NOTHING])
def test_joining_ends_with_it_if_the_run_is_finished(home, project, monkeypatch, finished):
    class Over:
        """A stay that has ended: in a real swarm it takes minutes."""

        def __init__(self, *_):
            self.snapshot = Snapshot(finished=finished)

        def go(self, *_):
            return 0

    monkeypatch.setattr(join, "Run", Over)
    keep(home, project, f"epoch-{TOTAL:08d}.safetensors")
    said = run_here("--home", str(home.root), "join", project.id)
    assert said.returncode == 0
    assert (SENTENCE.format(TOTAL) in said.stdout) == bool(finished)
