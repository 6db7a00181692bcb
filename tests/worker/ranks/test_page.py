"""The program and the commands of docs/several-gpus.md."""

import re
import subprocess
import sys
from pathlib import Path

from manifests import raw
from skep.core.settings import settings

PAGE = (Path(__file__).parents[3] / "docs" / "several-gpus.md").read_text()
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = re.findall(r"^    skep settings set (\S+) (\".+\"|\S+)", PAGE, re.MULTILINE)
GPT2 = {"type": "gpt2", "layers": 2, "heads": 2, "width": 16, "vocabulary": 256}


def test_the_program_shows_that_two_ranks_compute_what_one_does(tmp_path):
    (tmp_path / "several.py").write_text(PROGRAM)
    (tmp_path / "project.json").write_bytes(raw(recipe__model=GPT2, recipe__sequence_length=16))
    said = subprocess.run(
        [sys.executable, "several.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=250
    ).stdout
    one, two = (line.partition(" ranks: ") for line in said.splitlines())
    assert (one[0], two[0]) == ("1", "2")
    assert one[2] == two[2]


def test_the_commands_set_what_they_say():
    assert len(COMMANDS) == 5
    assert [settings.parse(key, value.strip('"')) for key, value in COMMANDS] == [
        *("all", "cuda:0,cuda:2", ""),
        *("cuda:0 75C; cuda:1 50% 70C 150W 4GB", ""),
    ]


def test_every_setting_of_the_page_is_there():
    for key in re.findall(r"`(compute\.\w+)`", PAGE):
        assert key in settings.SETTINGS
