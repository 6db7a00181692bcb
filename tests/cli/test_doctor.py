"""The verb `doctor`: its lines, its JSON, its exit codes, and what it says of a project that cannot be reached."""

import json

import pytest

from manifests import PEER, signed
from skep import bootstrap
from skep.cli.application import main
from skep.core.findings import Check

CHECKS_OF_THE_COMPUTER = {"running", "home", "device", "keyring", "sandbox", "clock"}


@pytest.fixture
def skep(home, capsys):
    def run(*arguments):
        code = main(["--home", str(home.root), "doctor", *arguments], {})
        return code, capsys.readouterr()

    return run


def test_without_a_project_this_computer_is_checked(skep):
    code, printed = skep()
    assert code == 0
    assert "No skep runs in this home." in printed.out
    assert "With a project's name" in printed.err
    assert all(len(line) <= 80 for line in printed.out.splitlines())


def test_the_json_is_one_object_with_ids_that_do_not_change(skep):
    code, printed = skep("--json")
    told = json.loads(printed.out)
    assert (code, told["project"]) == (0, None)
    assert told["state"] in ("ok", "warn")
    assert {each["id"] for each in told["checks"]} == CHECKS_OF_THE_COMPUTER
    assert {tuple(each) for each in told["checks"]} == {("id", "subject", "state", "found", "advice", "seconds")}
    ids = "running home device keyring sandbox clock dns seed known_peers data libp2p swarm reachability"
    assert list(map(str, Check)) == ids.split()


def test_a_project_that_is_not_known_is_bad_input(skep):
    code, printed = skep("nobody")
    assert code == 2
    assert printed.out == ""
    assert "nobody" in printed.err


def test_a_failed_check_ends_with_1_and_says_what_to_do(skep, home, tmp_path):
    closed = f"/ip4/127.0.0.1/tcp/1/p2p/{PEER.rpartition('/')[2]}"
    manifest = signed(tmp_path, peers=[closed], data__index="http://127.0.0.1:1/index.json")
    code, printed = skep(str(manifest), "--json")
    told = json.loads(printed.out)
    assert (code, told["state"], told["project"]) == (1, "fail", "tiny-code-lm")
    of = {each["id"]: each for each in told["checks"]}
    assert of["seed"]["found"] == "127.0.0.1:1 refuses the connection."
    assert "only seed" in of["seed"]["advice"]
    assert of["data"]["state"] == of["swarm"]["state"] == "fail"
    assert set(of) >= CHECKS_OF_THE_COMPUTER | {"seed", "known_peers", "data", "libp2p", "swarm", "reachability"}
    assert bootstrap.catalogue(home).projects() == []  # a manifest in a file is not stored
