"""The author's guide, "In ten minutes": the commands of the page are run unchanged, line by line.

Only what differs between machines is replaced: the two port numbers by free ones, the placeholders by the output of
earlier commands (as the page says), and the keyring by a file if a command needs it.
"""

import re
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from free_ports import free_port
from terminals import JOIN_SECONDS, SKEP, Running, is_event

PAGE = (Path(__file__).parents[2] / "docs" / "for-project-authors.md").read_text()
SECTION = PAGE[PAGE.index("## In ten minutes") : PAGE.index("## A key")]
BLOCKS = [block.replace("\n    ", "\n").strip() for block in re.findall(r"\n\n((?:    .*\n)+)", SECTION)]
ROUND_SECONDS = 180


@pytest.fixture
def place(tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    for source in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:60]:
        shutil.copy(source, texts / f"{source.stem}.txt")
    return tmp_path


@pytest.fixture
def follow(place):
    """Runs one line of the page, in the author's home unless it names another; returns its output."""
    ports = {"8080": str(free_port()), "31337": str(free_port())}
    running = []

    def as_here(text):
        for number, port in ports.items():
            text = text.replace(number, port)
        return text

    def words_of(line):
        program, *words = shlex.split(as_here(line))
        assert program == "skep"
        home = "author"
        if words[0] == "--home":
            home, words = words[1], words[2:]
        return place / home, words + (["--unencrypted-file"] if words[:2] == ["key", "new"] else [])

    def run(line):
        home, words = words_of(line)
        done = subprocess.run(
            [*SKEP, "--home", str(home), *words], cwd=place, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, (line, done.stderr)
        return done.stdout

    def start(line):
        home, words = words_of(line)
        # `Running` has no option for the working directory
        words = [str(place / word) if (place / word).exists() else word for word in words]
        running.append(Running(home, *words))
        return running[-1]

    run.start, run.as_here = start, as_here
    yield run
    for each in reversed(running):
        each.finish()


def only(pattern, text):
    (found,) = re.findall(pattern, text)
    return found


@pytest.mark.long
def test_the_guide_leads_from_a_folder_of_text_to_contributions_that_are_confirmed(follow, place):
    preparing, manifest, signing, joining = BLOCKS
    key, shards, address = map(follow, preparing.splitlines())
    filled = (
        follow.as_here(manifest)
        .replace("KEY", only(r"ed25519:\S+", key))
        .replace("SHA256", only(r"[0-9a-f]{64}", shards))
        .replace("ADDRESS", address.strip())
    )
    (place / "tiny.json").write_text(filled)
    *checks, hosting = signing.splitlines()
    for line in checks:
        follow(line)
    follow.start(hosting).wait_for(is_event("keeping"), JOIN_SECONDS)
    volunteers = [follow.start(line) for line in joining.splitlines()]
    for volunteer in volunteers:
        confirmed = volunteer.wait_for(
            lambda event: event["event"] == "contribution" and event["state"] == "confirmed", ROUND_SECONDS
        )
        assert confirmed["peers"] == 1
