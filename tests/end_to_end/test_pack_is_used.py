"""Every process that loads the training stack is started with the compute pack that its starter was given."""

import logging
import os
import threading

import pytest

from english import in_english, raises
from fakes import make_index, make_project
from skep.adapters.process.worker import WorkerProcess
from skep.cli.verbs import self_test
from skep.cli.verbs.self_test import Bench
from skep.core.errors import SkepError, SwarmError
from skep.core.session import messages as m
from skep.host.export import export
from skep.host.practice import swarm
from skep.host.practice.process import PracticeProcess
from skep.host.server.peer_process import PeerProcess
from skep.services.doctor import peers
from skep.services.doctor.case import Case

REFUSED = "skep --pack needs the folder of a compute pack, and {} is none."


@pytest.fixture
def pack(tmp_path):
    """A pack that is not there, which the process that gets it says."""
    return tmp_path / "packs" / "gone"


def test_a_worker_gets_that_of_each_start(tmp_path, pack, caplog):
    caplog.set_level(logging.INFO)
    code, over, chosen = [], threading.Event(), [pack]

    def post(message):
        if isinstance(message, m.WorkerExited):
            code.append(message.code)
            over.set()

    worker = WorkerProcess(
        post,
        registry_file=tmp_path / "worker.json",
        make_run_folder=lambda: run_folder(tmp_path),
        stderr_log=logging.getLogger("skep.worker.stderr"),
        command=["true"],
        pack=lambda: chosen[0],
    )
    try:
        for told in (2, 0):
            worker.start(m.WorkerOptions("{}", make_index(), identity_path="/identity"))
            assert over.wait(60)
            assert code[-1] == told
            over.clear()
            chosen[0] = None
    finally:
        worker.close()
    assert REFUSED.format(pack) in caplog.text


def run_folder(root):
    folder = root / f"skep-{len(list(root.iterdir()))}"
    folder.mkdir()
    return folder


def test_a_seed_gets_it(tmp_path, pack):
    with raises(SwarmError, match="did not start"):
        PeerProcess([], tmp_path / "host.log", pack).start()
    assert REFUSED.format(pack) in (tmp_path / "host.log").read_text()


def test_the_seed_of_a_practice_swarm_gets_it(tmp_path, pack):
    folder = swarm.PracticeFolder(tmp_path)
    with raises(SwarmError, match="did not start"), swarm.seed(folder, 0, pack):
        pass
    assert REFUSED.format(pack) in (tmp_path / "seed.log").read_text()


def test_a_practice_swarm_gets_it(tmp_path, pack):
    practice = PracticeProcess(tmp_path / "home", tmp_path / "run", os.environ, pack)
    practice.start()
    try:
        with raises(SwarmError) as caught:
            practice.manifest(lambda: False)
    finally:
        practice.end(2.0)
    assert in_english(caught.value.hint) == REFUSED.format(pack)


def test_an_export_gets_it(tmp_path, pack):
    with raises(SkepError, match="ended unexpectedly"):
        export(tmp_path / "epoch-1.safetensors", tmp_path / "model", pack=pack)
    with raises(SkepError, match=r"epoch-1\.safetensors"):
        export(tmp_path / "epoch-1.safetensors", tmp_path / "model")


def test_the_self_test_gets_it(tmp_path, home, pack):
    with raises(SkepError) as caught:
        self_test.imports(Bench(tmp_path, home, os.environ, pack=pack))
    assert REFUSED.format(pack) in in_english(caught.value)


def test_the_doctors_probe_gets_it(home, pack, caplog):
    caplog.set_level(logging.INFO)
    seed = "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
    case = Case(home, make_project("tiny-code-lm"), seeds=(seed,), pack=pack).as_set()
    assert list(peers._ask(case, 60.0)) == []
    assert REFUSED.format(pack) in caplog.text
