"""What a child writes to its stderr: whole lines, in a rotated log, until the child and its own children have ended."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from skep.adapters.process.child_log import (
    LAST_OF_FLOOD,
    LINE_BYTES,
    MINUTE,
    MOST_A_MINUTE,
    Lines,
    LoggedLines,
    LogPipe,
)
from skep.adapters.storage import logs
from skep.adapters.storage.logs import open_log

SOON = 60.0


def run(log: logging.Logger, program: str) -> LogPipe:
    """What a child that has ended wrote."""
    with LogPipe(log) as pipe:
        child = subprocess.Popen([sys.executable, "-c", f"import sys\n{program}"], stderr=pipe.fileno())
    child.wait(SOON)
    pipe.wait(SOON)
    return pipe


def test_a_log_that_a_child_writes_is_rotated_and_private(tmp_path: Path):
    run(open_log(tmp_path, "seed"), "for n in range(900): print(n, 'x' * 8000, file=sys.stderr)")
    files = {file.name: file.stat() for file in tmp_path.iterdir()}
    assert set(files) == {"seed.log", *(f"seed.log.{number}" for number in range(1, logs.OLDER + 1))}
    assert all(each.st_size <= logs.SIZE and each.st_mode & 0o777 == 0o600 for each in files.values())
    assert "899 xxx" in (tmp_path / "seed.log").read_text()


def test_the_last_lines_are_known(tmp_path: Path):
    pipe = run(open_log(tmp_path, "seed"), "for n in range(9): print('line', n, file=sys.stderr)")
    assert list(pipe.last) == ["line 5", "line 6", "line 7", "line 8"]


def test_words_without_an_end_and_bytes_that_are_no_text_are_logged(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "child")
    run(logging.getLogger("child"), f"sys.stderr.buffer.write(b'a' * {LINE_BYTES} + b'\\n\\xff')")
    assert "".join(caplog.messages) == "a" * LINE_BYTES + "\\xff"


def test_what_the_childs_own_child_writes_is_logged_too(tmp_path: Path):
    run(open_log(tmp_path, "seed"), "import subprocess; subprocess.Popen(['sh', '-c', 'cat; echo late >&2'])")
    assert "late" in (tmp_path / "seed.log").read_text()


def test_a_child_that_does_not_start_leaves_no_thread(tmp_path: Path):
    with pytest.raises(FileNotFoundError), LogPipe(open_log(tmp_path, "seed")) as pipe:
        subprocess.Popen([str(tmp_path / "nothing")], stderr=pipe.fileno())
    pipe.wait(SOON)
    assert "child-log" not in {thread.name for thread in threading.enumerate()}


def test_control_characters_are_shown_and_not_obeyed(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "child")
    pipe = run(logging.getLogger("child"), r"sys.stderr.write('\x1b]0;title\x07\tred\x1b[31m\x9b2J\r\n')")
    assert caplog.messages == [r"\x1b]0;title\x07" + "\t" + r"red\x1b[31m\x9b2J"]
    assert list(pipe.last) == caplog.messages


@pytest.mark.parametrize("ends", [False, True], ids=["a minute later", "at the end"])
def test_of_a_flood_of_lines_the_first_and_the_last_are_logged(caplog: pytest.LogCaptureFixture, *, ends: bool):
    caplog.set_level(logging.INFO, "child")
    now, also = [0.0], []
    lines = LoggedLines(logging.getLogger("child"), also.append, clock=lambda: now[0])
    count = MOST_A_MINUTE + LAST_OF_FLOOD + 70
    lines.feed(b"".join(b"%d\n" % number for number in range(count)))
    assert caplog.messages == [str(number) for number in range(MOST_A_MINUTE)]
    assert len(also) == count
    now[0] = MINUTE
    if ends:
        lines.end()
    lines.feed(b"calm\n")
    last = [str(number) for number in range(count - LAST_OF_FLOOD, count)]
    assert caplog.messages[MOST_A_MINUTE:] == ["70 more lines were left out here", *last, "calm"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_come_whole_however_they_are_cut(size: int):
    whole, long = [], []
    lines = Lines(10, whole.append, long.append)
    text = b"ab\n\ncde\nf"
    for at in range(0, len(text), size):
        lines.feed(text[at : at + size])
    assert (whole, long) == ([b"ab", b"", b"cde"], [])
    lines.end()
    assert long == [b"f"]


def test_a_long_line_comes_in_pieces():
    whole: list[bytes] = []
    long: list[bytes] = []
    lines = Lines(4, whole.append, long.append)
    for chunk in (b"abc", b"def", b"g\nh"):
        lines.feed(chunk)
    assert (whole, long) == ([b"g"], [b"abcdef"])
