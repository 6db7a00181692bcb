"""The doctor's checks that need no peer, each with real ports, servers and files, and their running at the same time."""

from __future__ import annotations

import hashlib
import json
import socket
import sys
import threading
import time
from dataclasses import replace
from email.utils import formatdate
from functools import partial

import pytest

from downloads import LENGTH, make_index, make_shard
from english import in_english
from fakes import make_progress, make_project
from manifests import PEER, raw
from skep import bootstrap
from skep.adapters.storage.paths import Home
from skep.core.findings import Check, Finding, State, seed_down
from skep.core.project.shards import shard_name
from skep.core.sandbox import Guard, Sandbox
from skep.core.session.control import snapshot_of, status
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.settings.settings import DEFAULTS
from skep.core.text import NOTHING, Problem, Text, verbatim
from skep.services.doctor import computer, network
from skep.services.doctor.case import Case, Task
from skep.services.doctor.examination import at_once, examine, plan
from skep.services.protection import protection
from web_of_faults import FaultyServer, ranged, whole

PEER_ID = PEER.rpartition("/")[2]
ALONE = seed_down(others=False, known=False)
OK = Finding(Check.CLOCK, State.OK, Text("doctor.clock_plausible"))


def address(port, host="127.0.0.1", kind="ip4", transport="tcp"):
    return f"/{kind}/{host}/{transport}/{port}/p2p/{PEER_ID}"


def project(**changes):
    return make_project("tiny-code-lm", manifest=raw(**changes))


@pytest.fixture
def case(home):
    return Case(home, project(peers=[address(1)]))


@pytest.fixture
def port():
    """A port that answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening
        yield taken.getsockname()[1]


@pytest.fixture
def server():
    with FaultyServer() as made:
        yield made


def only(findings):
    (found,) = findings
    return found


def said(finding):
    return in_english(finding.found)


# --- names


def test_a_name_that_is_known_and_one_that_is_not():
    known = only(network.name("localhost"))
    assert (known.state, known.subject) == (State.OK, "localhost")
    assert known.seconds is not None
    for host in ("nowhere.invalid", "a" * 70 + ".invalid"):
        unknown = only(network.name(host))
        assert unknown.state is State.FAIL
        assert said(unknown) == f"No address was found for {host}."
        assert "name server" in in_english(unknown.advice)


def test_each_name_is_looked_up_once_and_addresses_are_not(home, monkeypatch):
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    seeds = [address(1, "a.invalid", "dns4"), address(2, "a.invalid", "dns4"), address(3)]
    tasks = list(network.names(Case(home, project(peers=seeds))))
    assert [each.subject for each in tasks] == ["a.invalid", "example.org"]
    # a proxy looks up the data server's name itself
    proxied = Case(home, project(peers=seeds), settings=DEFAULTS | {"network.proxy": "http://127.0.0.1:1"})
    assert [each.subject for each in network.names(proxied)] == ["a.invalid"]


# --- seeds


def test_a_seed_that_answers_is_timed(port):
    found = only(network.seed(address(port), ALONE))
    assert found.state is State.OK
    assert said(found).startswith(f"127.0.0.1:{port} answers after ")


def test_a_silent_seed_is_a_failure_only_if_there_is_no_other(closed):
    alone, beside = (only(network.seed(address(closed), seed_down(others=each, known=False))) for each in (False, True))
    assert (alone.state, beside.state) == (State.FAIL, State.WARN)
    assert said(alone) == f"127.0.0.1:{closed} refuses the connection."
    assert "only seed" in in_english(alone.advice)
    assert "Another seed is enough" in in_english(beside.advice)


def test_a_seed_without_tcp_is_left_to_the_handshake():
    found = only(network.seed(address(1, transport="udp"), ALONE))
    assert found.state is State.SKIPPED


def test_seeds_of_the_environment_are_tried_too(home):
    extra = Case(home, project(peers=[address(1)]), seeds=(address(2),))
    assert [each.subject for each in network.seeds(extra)] == ["127.0.0.1:1", "127.0.0.1:2"]


def remember(case, *addresses):
    case.home.known_peers_folder.mkdir(parents=True)
    met = [{"address": each, "met": time.time() - 60} for each in addresses]
    (case.home.known_peers_folder / f"{case.project.run_id}.json").write_text(json.dumps(met))


def test_a_silent_seed_and_a_name_that_is_unknown_are_warnings_where_peers_are_remembered(home, closed, monkeypatch):
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    host = "nowhere.invalid"
    of_a_seed = Case(home, project(peers=[address(1, host, "dns4")], data__index="http://127.0.0.1:1/i.json"))
    of_both = Case(home, project(peers=[address(1, host, "dns4")], data__index=f"https://{host}/i.json"))
    of_the_data = Case(home, project(peers=[address(closed)], data__index=f"https://{host}/i.json"))

    def states(case):
        return [only(task.run()).state for tasks in (network.names, network.seeds) for task in tasks(case)]

    assert states(of_a_seed) == states(of_the_data) == [State.FAIL, State.FAIL]
    remember(of_a_seed, address(1, "8.8.8.8"))
    assert states(of_a_seed) == [State.WARN, State.WARN]
    assert states(of_the_data) == states(of_both) == [State.FAIL, State.WARN]


# --- peers that are remembered


def test_remembered_peers_are_counted_and_the_last_meeting_is_told(case):
    nobody = only(network.known_peers(case))
    assert (nobody.state, said(nobody)[:8]) == (State.SKIPPED, "No peers")
    folder = case.home.known_peers_folder
    folder.mkdir(parents=True)
    now, old = 1_700_000_000.0, 20 * 86_400.0
    peers = [
        {"address": address(each, "8.8.8.8"), "met": now - ago} for each, ago in ((1, 7200.0), (2, 9000.0), (3, old))
    ]
    (folder / f"{case.project.run_id}.json").write_text(json.dumps(peers))
    found = only(network.known_peers(case, lambda: now, lambda _: NOTHING))
    assert found.state is State.OK
    assert said(found) == (
        "Remembered peers of this run: 2. A round with one of them was confirmed 2\N{THIN SPACE}h ago."
    )


def test_remembered_peers_of_which_none_answers_are_a_warning(case):
    now, dialled = 1_700_000_000.0, []
    case.home.known_peers_folder.mkdir(parents=True)
    file = case.home.known_peers_folder / f"{case.project.run_id}.json"

    def found(*hosts, alive=""):
        file.write_text(json.dumps([{"address": address(1, host), "met": now - 7200.0} for host in hosts]))
        dialled.clear()

        def dial(where):
            dialled.append(where)
            return NOTHING if alive and alive in where else Text("swarm.refuses_connection")

        return only(network.known_peers(case, lambda: now, dial))

    dead = found("8.8.8.8", "9.9.9.9")
    assert (dead.state, len(dialled)) == (State.WARN, 2)
    assert "of which none answers" in said(dead)
    assert "only while no seed answers" in in_english(dead.advice)
    assert found("8.8.8.8", "9.9.9.9", alive="9.9.9.9").state is State.OK
    assert found("8.8.8.8", "192.168.1.2").state is State.OK  # of which nothing is known in another network
    assert not dialled


@pytest.mark.parametrize(("host", "state"), [("8.8.8.8", State.WARN), ("203.0.113.1", State.FAIL)])
def test_a_remembered_peer_makes_up_for_a_dead_seed_only_where_it_is_dialled(case, host, state):
    alone = replace(case, seeds=case.addresses[:1])
    assert len(alone.addresses) == 1
    file = case.home.known_peers_folder / f"{case.project.run_id}.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps([{"address": address(1, host), "met": time.time() - 60.0}]))
    assert alone.seed_down[0] is state


def test_a_running_skep_that_remembers_nobody_is_a_warning(case):
    running = Snapshot(phase=Phase.TRAINING, project=case.project, progress=make_progress(), joined=True)
    nobody = only(network.known_peers(replace(case, snapshot=running)))
    assert (nobody.state, bool(nobody.advice)) == (State.WARN, True)


def test_a_damaged_file_of_peers_remembers_nobody(case):
    case.home.known_peers_folder.mkdir(parents=True)
    (case.home.known_peers_folder / f"{case.project.run_id}.json").write_bytes(b"[{")
    assert "No peers" in said(only(network.known_peers(case)))


# --- the data server


@pytest.fixture
def shelf(server):
    """A project whose index and shard are on the server: `act` serves the shard, `sha256` is that in the manifest."""

    def make(act=ranged, sha256="", index=whole):
        shard, ref = make_shard()
        body = make_index(ref)
        server.scripts["index.json"] = [index(body)]
        server.scripts[shard_name(ref.sha256)] = [act(shard)]
        changes = {
            "data__index": f"{server.address}/index.json",
            "recipe__sequence_length": LENGTH,
            "data__sha256": sha256 or hashlib.sha256(body).hexdigest(),
        }
        return project(**changes)

    return make


def findings_of(home, made):
    return {each.check: each for each in network.server(Case(home, made))}


def test_a_server_with_index_and_shard_that_resumes_is_fine(home, shelf):
    found = findings_of(home, shelf())
    assert (found[Check.DATA].state, found[Check.CLOCK].state) == (State.OK, State.OK)
    assert "has the training data" in said(found[Check.DATA])


def test_a_server_that_sends_only_whole_files_is_a_warning(home, shelf):
    found = findings_of(home, shelf(act=whole))[Check.DATA]
    assert found.state is State.WARN
    assert "starts again from its beginning" in in_english(found.advice)


def test_an_index_that_is_not_the_manifests_is_a_failure(home, shelf):
    found = findings_of(home, shelf(sha256="1" * 64))[Check.DATA]
    assert found.state is State.FAIL
    assert "not the one that the manifest names" in said(found)


def test_a_shard_that_is_missing_and_a_server_that_is_gone_are_failures(home, shelf, server, closed):
    made = shelf()
    server.scripts = {"index.json": server.scripts["index.json"]}
    assert findings_of(home, made)[Check.DATA].state is State.FAIL
    gone = findings_of(home, project(data__index=f"http://127.0.0.1:{closed}/index.json"))
    assert list(gone) == [Check.DATA]
    assert (gone[Check.DATA].state, gone[Check.DATA].subject) == (State.FAIL, f"127.0.0.1:{closed}")


@pytest.mark.parametrize(("ahead", "state"), [(-60, State.FAIL), (0, State.OK), (60, State.FAIL)])
def test_the_clock_is_compared_with_the_servers(home, shelf, ahead, state):
    def dated(body):
        def act(handler):
            handler.send_response_only(200)
            handler.send_header("Date", formatdate(time.time() - ahead, usegmt=True))
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

        return act

    assert findings_of(home, shelf(index=dated))[Check.CLOCK].state is state


def test_a_server_that_tells_no_time_says_nothing_about_the_clock(home, shelf):
    def undated(body):
        def act(handler):
            handler.send_response_only(200)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

        return act

    assert set(findings_of(home, shelf(index=undated))) == {Check.DATA}


# --- this computer


def test_the_disk_has_room_or_not(home, case):
    def with_kept(gigabytes):
        return only(computer.home(replace(case, settings=DEFAULTS | {"disk.keep_free_gb": gigabytes})))

    assert with_kept(0.1).state is State.OK
    assert "the project needs 1.0 GB" in said(with_kept(0.1)).replace("\N{THIN SPACE}", " ")
    full = with_kept(10_000)
    assert full.state is State.FAIL
    assert "disk.keep_free_gb" in in_english(full.advice)
    free = bootstrap.GB * 10
    nearly = Case(home, None, settings=DEFAULTS | {"disk.keep_free_gb": 9.5})
    assert computer._disk(nearly, free).state is State.WARN


def test_a_home_that_cannot_be_written_is_a_failure(tmp_path):
    (tmp_path / "file").write_text("")
    found = only(computer.home(Case(Home(tmp_path / "file" / "home"))))
    assert found.state is State.FAIL


def test_the_processor_can_train_and_a_missing_card_is_named(home):
    can = [each for each in computer.devices(Case(home)) if each.subject == "cpu"]
    assert only(can).state is State.OK
    wanted = Case(home, settings=DEFAULTS | {"compute.device": "cuda:7"})
    missing = [each for each in computer.devices(wanted) if each.state is State.FAIL]
    assert said(only(missing)) == "The device cuda:7 in the setting compute.device cannot be used."


def test_a_card_that_cannot_be_used_is_a_warning_with_its_reason(home, card):
    card.say(nvmlInitWithFlags=18)
    found = [each for each in computer.devices(Case(home)) if each.state is State.WARN]
    assert "no longer match" in said(only(found))


def test_an_open_project_needs_no_keyring_and_an_invited_one_an_invitation(home, case):
    assert only(computer.keyring(case)).state is State.SKIPPED
    invited = replace(case, project=project(membership="invited"))
    assert only(computer.keyring(invited)).state is State.FAIL


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this sandbox")
def test_what_the_system_does_not_enforce_is_said_guard_by_guard():
    found = list(computer.sandbox())
    lacking = [each for each in found if each.state is State.WARN]
    assert {each.check for each in found} == {Check.SANDBOX}
    assert lacking or [in_english(each.found) for each in found] == [
        "The training process reaches only its own files, the libraries and the devices, and no other program."
    ]
    assert all(each.subject in set(Guard) and each.advice for each in lacking)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (
            """import sys; sys.stdout.write('{"missing": {"services": "switched off"}}')""",
            (
                "This system does not keep the training process from sockets of other programs, such as the session bus "
                "and the screen: switched off."
            ),
        ),
        (
            """import sys; sys.stdout.write('{"missing": {"memory": "its control group has no limit"}}')""",
            "This system does not keep the training process from memory without limit: its control group has no limit.",
        ),
        ("raise SystemExit(1)", "The sandbox of the training process could not be tried."),
    ],
)
def test_a_sandbox_that_lacks_something_is_a_warning(printed, said):
    (found,) = computer.sandbox(partial(protection, (sys.executable, "-c", printed)), "linux")
    assert (found.state, in_english(found.found)) == (State.WARN, said)


def test_the_sandbox_is_tried_by_a_process_whose_memory_is_limited_first(tmp_path):
    entered = tmp_path / "entered"
    waits = f"import os, pathlib, sys; input(); print('{{}}' if os.getpid() == int(pathlib.Path({str(entered)!r}).read_text()) else '')"
    assert protection((sys.executable, "-c", waits), lambda pid, _: entered.write_text(str(pid))) == Sandbox({})


def test_other_systems_have_none_so_far():
    assert only(computer.sandbox(platform="darwin")).state is State.SKIPPED


def test_a_clock_before_this_skep_was_made_is_wrong():
    assert only(computer.clock()).state is State.OK
    assert only(computer.clock(lambda: time.time() + 60)).state is State.FAIL


def test_the_running_skep_is_told_with_its_problem(home, case):
    problem = Problem(verbatim("The seeds do not answer."), verbatim("Wait."))
    trouble = replace(case, snapshot=Snapshot(problem=problem))
    assert only(computer.running(trouble)).state is State.WARN
    training = Snapshot(phase=Phase.TRAINING, project=case.project)
    assert "Tiny model" in said(only(computer.running(replace(case, snapshot=training))))
    assert "no swarm" in said(only(computer.running(replace(case, snapshot=Snapshot()))))
    assert "No skep runs" in said(only(computer.running(case)))


def test_a_port_of_the_settings_that_another_program_holds_is_a_failure(home, port):
    taken = Case(home, settings=DEFAULTS | {"network.port": port})
    assert [each.state for each in computer.running(taken)] == [State.OK, State.FAIL]


def test_only_a_skep_in_this_swarm_answers_for_it(case):
    training = Snapshot(phase=Phase.TRAINING, project=case.project, progress=make_progress(), joined=True)
    assert replace(case, snapshot=training).is_running
    assert not replace(case, snapshot=replace(training, progress=None)).is_running
    # one that hands over the state of a run that was over before it came
    assert not replace(case, snapshot=replace(training, joined=False)).is_running
    assert not replace(case, snapshot=replace(training, project=make_project("other"))).is_running
    assert not case.is_running


def test_a_skep_in_another_terminal_answers_for_its_swarm_too(case):
    training = Snapshot(phase=Phase.TRAINING, project=case.project, progress=make_progress(), joined=True)
    assert replace(case, snapshot=snapshot_of(status(training))).is_running


# --- all at the same time


def test_findings_come_as_they_are_known_and_what_is_late_is_said():
    release = threading.Event()

    def late():
        yield OK
        release.wait(60)

    begun = time.monotonic()
    tasks = [Task(Check.NAME, late, "slow"), Task(Check.SEED, lambda: iter([OK]))]
    found = list(at_once(tasks, 5))
    release.set()
    assert time.monotonic() - begun < 30
    assert found[:2] == [OK, OK]
    assert (found[2].check, found[2].subject, found[2].state) == (Check.NAME, "slow", State.FAIL)
    assert said(found[2]).startswith("No result within")


def test_a_stopped_examination_ends_at_once_and_says_nothing_more():
    release, known = threading.Event(), threading.Event()

    def slow():
        yield OK
        release.wait(60)
        yield OK

    findings = at_once([Task(Check.NAME, slow)], 60.0, stopped=known.is_set)
    assert next(findings) == OK
    known.set()
    assert list(findings) == []
    release.set()


def test_a_check_that_breaks_affects_no_other(caplog):
    def broken():
        raise ZeroDivisionError
        yield

    found = list(at_once([Task(Check.DATA, broken), Task(Check.CLOCK, lambda: iter([OK]))], 30))
    assert OK in found
    assert any("ZeroDivisionError" in said(each) for each in found if each.check is Check.DATA)
    assert "a check of the doctor failed" in caplog.text


def test_a_clock_that_is_set_meanwhile_is_told():
    times = iter([(100.0, 1.0), (170.0, 2.0)])
    found = only(at_once([], 1.0, lambda: next(times)))
    assert (found.check, found.state) == (Check.CLOCK, State.WARN)
    assert list(at_once([], 1.0, iter([(100.0, 1.0), (101.2, 2.0)]).__next__)) == []


def test_without_a_project_only_this_computer_is_looked_at(home):
    assert {each.check for each in plan(Case(home))}.isdisjoint({Check.SEED, Check.DATA, Check.HANDSHAKE})


def test_damaged_settings_are_a_finding_and_the_rest_goes_on(home):
    home.settings_file.write_text("not toml [")
    found = list(examine(Case(home), 30))
    assert State.FAIL in {each.state for each in found if each.check is Check.HOME}
    assert {Check.RUNNING, Check.DEVICE, Check.KEYRING, Check.CLOCK} <= {each.check for each in found}
    assert json.dumps([in_english(each.found) for each in found])
