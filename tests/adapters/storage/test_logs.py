"""Logs in real files: redacted, rotated, private, and silent when they cannot be written."""

import logging
import re
import stat
import threading
from pathlib import Path

import pytest

from skep.adapters.storage import logs
from skep.adapters.storage.logs import collect_logs, open_log


@pytest.fixture
def folder(home):
    return home.logs_folder


def text(folder, name="skep"):
    return (folder / f"{name}.log").read_text()


def test_opening_a_log_makes_no_file(folder):
    open_log(folder, "terminal")
    assert not folder.exists()


def test_an_entry_says_when_how_grave_and_what(folder):
    open_log(folder, "terminal").error("epoch %d", 3)  # not a warning: hivemind renames that level in its processes
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ERROR terminal: epoch 3\n", text(folder, "terminal"))


def test_folder_and_file_are_for_this_user_only(folder):
    open_log(folder, "terminal").info("x")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "terminal.log").stat().st_mode) == 0o600


def test_entries_arguments_and_tracebacks_are_redacted(folder):
    log = open_log(folder, "terminal")
    try:
        int(f"{Path.home()}/secret at 203.0.113.7")
    except ValueError:
        log.exception("https://example.org/?token=%s", "abc")
    written = text(folder, "terminal")
    assert "?token=[secret]" in written
    assert "ValueError: invalid literal for int() with base 10: '~/secret at [address]'" in written
    assert str(Path.home()) + "/" not in written
    assert "203.0.113.7" not in written


def test_the_root_logger_is_not_touched_and_hears_nothing(folder, caplog):
    before = list(logging.getLogger().handlers), logging.getLogger().level
    open_log(folder, "terminal").error("x")
    with collect_logs(folder, "skep"):
        logging.getLogger("skep.engine.engine").error("y")
    assert (logging.getLogger().handlers, logging.getLogger().level) == before
    assert caplog.records == []


def test_two_homes_do_not_share_a_log(tmp_path):
    for name in "ab":
        open_log(tmp_path / name, "terminal").info("from %s", name)
    assert "from a" in text(tmp_path / "a", "terminal")
    assert "from b" not in text(tmp_path / "a", "terminal")


def test_what_our_modules_log_is_collected_meanwhile(folder, capfd):
    ours = logging.getLogger("skep.adapters.anything")
    package = logging.getLogger("skep")
    before = package.level, package.propagate, list(package.handlers)
    with collect_logs(folder, "skep"):
        ours.info("inside")
        ours.debug("too much")
        logging.getLogger("skeptical").error("not ours")
    ours.info("outside")
    assert "INFO skep.adapters.anything: inside" in text(folder)
    assert len(text(folder).splitlines()) == 1
    assert (package.level, package.propagate, package.handlers) == before
    assert capfd.readouterr().out == ""


def test_a_log_is_rotated_by_size_and_only_some_are_kept(folder):
    log = open_log(folder, "terminal")
    for number in range(50):
        log.info("entry %d%s", number, " " * (logs.SIZE // 6))
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == ["terminal.log", *(f"terminal.log.{n}" for n in range(1, logs.OLDER + 1))]
    assert all(file.stat().st_size <= logs.SIZE for file in files)
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    assert "entry 49" in text(folder, "terminal")


def test_nothing_stays_open_between_entries(folder):
    log = open_log(folder, "terminal")
    log.info("one")
    (folder / "terminal.log").unlink()
    log.info("two")
    assert "two" in text(folder, "terminal")


def test_several_threads_may_log_at_once(folder):
    log = open_log(folder, "terminal")
    threads = [threading.Thread(target=lambda: [log.info("x" * 50) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = text(folder, "terminal").splitlines()
    assert len(lines) == 200
    assert all(line.endswith(": " + "x" * 50) for line in lines)


def test_a_log_that_cannot_be_written_is_silent(folder, capfd):
    folder.parent.joinpath("logs").write_text("a file is in the way")
    open_log(folder, "terminal").error("x")
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_disk_is_silent(folder, capfd):
    folder.mkdir()
    (folder / "terminal.log").symlink_to("/dev/full")
    open_log(folder, "terminal").error("x")
    assert capfd.readouterr() == ("", "")


def test_a_wrong_entry_is_silent(folder, capfd):
    open_log(folder, "terminal").error("%d", "not a number")
    assert capfd.readouterr() == ("", "")


def test_text_that_is_no_unicode_is_written_nevertheless(folder):
    open_log(folder, "terminal").error("\udcff")
    assert "\\udcff" in text(folder, "terminal")
