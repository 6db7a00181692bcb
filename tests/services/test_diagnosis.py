"""`skep diagnostics`: everything that helps to find a fault, no secrets, and real connections to the seeds."""

from __future__ import annotations

import json
import os
import socket
import stat
from pathlib import Path

import pytest

from fakes import make_project
from free_ports import free_port
from manifests import example, signed
from skep import bootstrap
from skep.cli.application import main
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.settings.settings import DEFAULTS
from skep.core.text import Problem, verbatim
from skep.services import diagnosis


@pytest.fixture
def environ(home):
    return {"SKEP_HOME": str(home.root)}


@pytest.fixture
def answering():
    """The port of a server on this computer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_it_is_shown_and_holds_every_part(environ, home, tmp_path, capsys):
    bootstrap.catalogue(home).add(str(signed(tmp_path)))
    home.logs_folder.mkdir()
    (home.logs_folder / "worker.log").write_text("x\n" * 300 + "the last word\n")
    assert main(["diagnostics"], environ) == 0
    text = capsys.readouterr().out
    for part in ("skep ", "Python ", "torch ", "all as they come", "cpu:0", "battery:", "GB free", "confirmed: 0"):
        assert part in text
    assert "tiny-code-lm revision" in text
    assert "the last word" in text
    assert text.count("\nx\n") < diagnosis.LOG_LINES


def test_a_home_that_is_not_made_yet_is_described_too(tmp_path, capsys, caplog):
    assert main(["diagnostics"], {"SKEP_HOME": str(tmp_path / "new" / "home")}) == 0
    assert "GB free" in capsys.readouterr().out
    assert not [each for each in caplog.records if each.exc_info]


def test_nothing_secret_is_in_it(environ, home, capsys):
    bootstrap.settings(home).save({"network.port": 5555})
    key = home.identity_file
    bootstrap.identity(home)
    home.logs_folder.mkdir()
    lines = [
        f"{home.root}/cache",
        "203.0.113.7",
        "token=s3cr3tvalue in https://a.example?token=s3cr3tvalue",
        str(Path.home()),
    ]
    (home.logs_folder / "skep.log").write_text("\n".join(lines))
    assert main(["--json", "diagnostics"], environ) == 0
    text = json.loads(capsys.readouterr().out)["diagnostics"]
    assert "network.port = 5555" in text
    for secret in (str(home.root), str(key), "203.0.113.7", f"{Path.home()}/", "https://a.example?token=s3cr3t"):
        assert secret not in text
    host = socket.gethostname()
    assert len(host) < 3 or host not in text


def test_a_file_is_written_for_this_user_alone(environ, tmp_path, capsys):
    path = tmp_path / "out.txt"
    assert main(["diagnostics", str(path)], environ) == 0
    assert path.read_text().startswith("== skep diagnostics")
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert main(["diagnostics", str(tmp_path / "no" / "out.txt")], environ) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_a_file_that_others_could_read_is_closed_to_them(environ, tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("")
    path.chmod(0o644)
    assert main(["diagnostics", str(path)], environ) == 0
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_a_file_of_an_unknown_user_is_said(environ, capsys):
    assert main(["diagnostics", "~nobody-of-this-name/out.txt"], environ) == 2
    assert "no such user" in capsys.readouterr().err


def test_the_way_to_seeds_and_data_is_tried(home, answering):
    manifest = example(
        peers=[f"/ip4/127.0.0.1/tcp/{answering}/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"],
        data__index=f"http://127.0.0.1:{answering}/index.json",
    )
    project = make_project("tiny-code-lm", manifest=json.dumps(manifest).encode())
    problem = Problem(verbatim("The seeds do not answer."), verbatim("Wait."))
    snapshot = Snapshot(phase=Phase.RECOVERING, settings=dict(DEFAULTS), project=project, problem=problem)
    text = diagnosis.diagnose(home, snapshot)
    assert f"seed 1: ip4, tcp {answering}: answers" in text
    assert f"data: http, port {answering}: answers" in text
    assert "problem: The seeds do not answer. Wait." in text


def test_what_does_not_answer_says_how():
    closed = free_port()
    assert diagnosis.reached_peer(f"/ip4/127.0.0.1/tcp/{closed}/p2p/Qm").endswith(os.strerror(111))
    assert "not tried" in diagnosis.reached_peer("/ip4/127.0.0.1/udp/1/quic/p2p/Qm")
    assert diagnosis.reached_peer("nonsense") == "no address that skep knows"
    assert "not known" in diagnosis.reached_peer(f"/dns4/{'a' * 70}.invalid/tcp/1/p2p/Qm")
    assert "443" in diagnosis.reached_server("https://127.0.0.1/x")


def test_a_part_that_fails_holds_up_nothing_else(home):
    (home.logs_folder / "skep.log").mkdir(parents=True)
    home.settings_file.write_text("not toml [")
    text = diagnosis.diagnose(home)
    assert "could not be found out (IsADirectoryError)" in text
    assert "== Versions" in text
    assert "settings" in text.split("== Settings")[1].splitlines()[1]
