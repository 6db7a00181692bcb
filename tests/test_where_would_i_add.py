"""Common additions need one new file, and at most one line that names it.

Each case is a folder in `tests/additions`: the new file, and `use.py`, which uses it as the program does and exits
with 3 without it. They run in a copy of the sources.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
NOT_FOUND = 3


@dataclass(frozen=True)
class Addition:
    """`file` is copied into the folder `into`; `line` is inserted in `named_in` after the line `after`."""

    what: str
    file: str
    into: str
    named_in: str = ""
    after: str = ""
    line: str = ""


FAN = 'Text("text.verbatim", words="The fan")'

ADDITIONS = [
    Addition(
        "recipe",
        file="bigram.py",
        into="client/skep/recipes",
        named_in="client/skep/recipes/registry.py",
        after="RECIPES: Final[dict[str, RecipeKind]] = {",
        line='    "bigram": _kind("bigram"),',
    ),
    Addition(
        "synchronisation",
        file="local_steps.py",
        into="client/skep/worker/swarm",
        named_in="client/skep/core/project/manifest.py",
        after="SYNC_MODES: Final = {",
        line='    "local-steps": "local_steps",',
    ),
    Addition(
        "reading",
        file="fan.py",
        into="client/skep/adapters/sensors",
        named_in="client/skep/core/policy/conditions.py",
        after="        return made",
        line=f'    FAN = ConditionSpec(Names("fan", {FAN}, {FAN}), Periods(7, 7), YesNo(), {{"fan": True}}, sensor="fan")',
    ),
    Addition(
        "setting",
        file="doze.py",
        into="client/skep/core/settings/groups",
        named_in="client/skep/core/settings/settings.py",
        after="_FILES: Final = (",
        line='    "doze",',
    ),
    Addition(
        "page",
        file="peers_page.py",
        into="gui/skep_gui/pages",
        named_in="gui/skep_gui/pages/registry.py",
        after="_PAGES: Final = (",
        line='    "peers_page",',
    ),
    Addition(
        "verb",
        file="greet.py",
        into="client/skep/cli/verbs",
        named_in="client/skep/cli/application.py",
        after="_MODULES: Final[Mapping[str, Sequence[str]]] = {",
        line='    "greet": ("greet",),',
    ),
]


class Sources:
    """A copy of skep's sources, which a separate process uses."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for package in ("client/skep", "gui/skep_gui"):
            shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))

    def use(self, addition: Addition) -> int:
        """The exit code of its `use.py`."""
        path = os.pathsep.join(map(str, (self._folder / "client", self._folder / "gui", TESTS)))
        environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "QT_QPA_PLATFORM": "offscreen"}
        script = TESTS / "additions" / addition.what / "use.py"
        done = subprocess.run([sys.executable, "-W", "ignore", script], env=environment, timeout=120, check=False)
        return done.returncode

    def add(self, addition: Addition) -> None:
        new = self._folder / addition.into / addition.file
        assert not new.exists()
        shutil.copy(TESTS / "additions" / addition.what / addition.file, new)
        if addition.line:
            self._rewrite(addition, f"{addition.after}\n", f"{addition.after}\n{addition.line}\n")

    def remove(self, addition: Addition) -> None:
        (self._folder / addition.into / addition.file).unlink()
        if addition.line:
            self._rewrite(addition, f"{addition.line}\n", "")

    def _rewrite(self, addition: Addition, old: str, new: str) -> None:
        file = self._folder / addition.named_in
        text = file.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {addition.named_in}"
        file.write_text(text.replace(old, new))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return Sources(tmp_path_factory.mktemp("sources"))


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda addition: addition.what)
def test_it_is_added_found_used_and_removed_again(sources: Sources, addition: Addition) -> None:
    assert sources.use(addition) == NOT_FOUND
    sources.add(addition)
    assert sources.use(addition) == 0
    sources.remove(addition)
    assert sources.use(addition) == NOT_FOUND
