"""Three computers on one network, one of them behind a drop-inbound firewall: real namespaces, real packets."""

import json
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest

from english import in_english
from manifests import signed
from network_namespaces import Computers, inside, why_not
from skep.adapters.process.start import COMMAND
from skep.adapters.storage.identity import FileIdentity
from skep.adapters.storage.paths import make_run_folder
from skep.core.session.messages import ContributionConfirmed, StopTraining, WorkerJoined
from skep.core.text import Text
from worker_pipes import PipedWorker

pytestmark = pytest.mark.long

ANYWHERE = "0.0.0.0"
UNHURRIED = {"sync__target_batch_size": 2048, "sync__matchmaking_seconds": 3}
"""At a tenth of the share an epoch takes at least ten seconds, several times the matchmaking time."""
ROUND_SECONDS = 150
JOIN = 90


@pytest.fixture
def computers():
    if reason := why_not():
        pytest.skip(reason)
    made = Computers()
    yield made
    made.close()


@pytest.fixture
def public_computers():
    if reason := why_not():
        pytest.skip(reason)
    made = Computers(public=True)
    yield made
    made.close()


@contextmanager
def seed(computer):
    """Start a seed peer on that computer; returns its address."""
    name, host = computer
    folder = make_run_folder()
    identity = FileIdentity(folder / "seed.id")
    assert identity.peer_id
    process = subprocess.Popen(
        inside(name, sys.executable, "-m", "skep.host.server.seed", "--host", "0.0.0.0", "--port", "31337",
               "--identity", str(identity.path), "--run-folder", str(folder)),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        addresses = json.loads(process.stdout.readline())["addresses"]
        yield next(address for address in addresses if host in address)
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()
        shutil.rmtree(folder)


def is_a(kind):
    return lambda message: isinstance(message, kind)


def test_a_peer_behind_a_firewall_becomes_a_client_by_itself_and_averages_with_two_public_ones(computers, data):
    folder, index = data
    first, second, third = computers.add(), computers.add(), computers.add(firewall=True)
    with seed(first) as address:
        workers = [PipedWorker(folder, index, command=inside(name, *COMMAND)) for name, _ in (first, second, third)]
        try:
            for worker in workers:
                worker.start([address], id="behind-a-router", listen_host=ANYWHERE, share=0.1, **UNHURRIED)
            joined = [worker.wait_for(is_a(WorkerJoined), JOIN) for worker in workers]
            assert [each.client_mode for each in joined] == [False, False, True]
            assert joined[0].addresses
            assert not joined[2].addresses
            for worker in workers:
                worker.wait_for(lambda m: isinstance(m, ContributionConfirmed) and m.peers == 2, ROUND_SECONDS)
        finally:
            for worker in workers:
                worker.tell(StopTraining())
            for worker in workers:
                worker.wait_gone()


def test_where_nobody_can_be_dialled_the_seed_relays_rounds_and_the_state(public_computers, data):
    folder, index = data
    first, *behind = public_computers.add(), *(public_computers.add(firewall=True) for _ in range(3))
    with seed(first) as address:
        workers = [PipedWorker(folder, index, command=inside(name, *COMMAND)) for name, _ in behind]
        try:
            for worker in workers:
                if worker is workers[2]:
                    workers[0].wait_for(lambda m: isinstance(m, ContributionConfirmed) and m.epoch > 0, ROUND_SECONDS)
                worker.start([address], id="nobody-dialled", listen_host=ANYWHERE, share=0.1, **UNHURRIED)
                joined = worker.wait_for(is_a(WorkerJoined), JOIN)
                assert (joined.relayed, joined.client_mode) == (True, False)
            for worker in workers:
                shared = worker.wait_for(lambda m: isinstance(m, ContributionConfirmed) and m.peers == 2, ROUND_SECONDS)
            assert shared.epoch > 1  # it has loaded the state of the others, which were there before it came
        finally:
            for worker in workers:
                worker.tell(StopTraining())
            for worker in workers:
                worker.wait_gone()


def examined(computer, home, *addresses, manifest):
    """What `skep doctor` finds on that computer, by check."""
    name, _ = computer
    source = str(signed(manifest, name="doctor.json", peers=list(addresses), data__index="http://127.0.0.1:1/i.json"))
    command = [sys.executable, "-m", "skep.cli.main", "--home", str(home), "--json", "doctor", source]
    done = subprocess.run(inside(name, *command), capture_output=True, text=True, check=False)
    return {each["id"]: each for each in json.loads(done.stdout)["checks"]}


def test_the_doctor_tells_who_can_be_dialled_and_who_is_a_client(computers, tmp_path):
    first, second, third = computers.add(), computers.add(), computers.add(firewall=True)
    with seed(first) as address:
        public = examined(second, tmp_path / "public", address, manifest=tmp_path)
        behind = examined(third, tmp_path / "behind", address, manifest=tmp_path)
    assert public["seed"]["state"] == public["libp2p"]["state"] == behind["libp2p"]["state"] == "ok"
    assert public["reachability"]["found"] == in_english(Text("doctor.is_reachable"))
    assert behind["reachability"]["found"] == in_english(Text("doctor.becomes_mere_client"))
    assert "network.port" in behind["reachability"]["advice"]


def test_the_doctor_names_a_firewall_before_the_seed(computers, tmp_path):
    first, second = computers.add(firewall=True), computers.add()
    with seed(first) as address:
        found = examined(second, tmp_path / "home", address, manifest=tmp_path)
    assert "did not answer within 5" in found["seed"]["found"]
    assert found["seed"]["state"] == found["swarm"]["state"] == "fail"
    assert "firewall" in found["seed"]["advice"]
