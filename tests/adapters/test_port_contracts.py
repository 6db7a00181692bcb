"""The remaining ports' adapters and their fakes pass the same contract tests."""

import logging
import queue
import sys
import time

import pytest

import fakes
from contracts.port_contracts import (
    CatalogueContract,
    ClockContract,
    DevicesContract,
    IdentityContract,
    InvitationsContract,
    RevocationsContract,
    WorkerContract,
)
from invitations import Project
from manifests import raw, signed
from skep import bootstrap
from skep.adapters.clock import SystemClock
from skep.adapters.net.revocations import PublishedRevocations
from skep.adapters.process.worker import WorkerProcess
from skep.adapters.storage.invitations import KeptInvitations
from skep.adapters.storage.secrets import FileSecrets, HomeSecrets
from skep.core.errors import InvitationError
from skep.core.project.revocation import file_name
from skep.core.session import messages as m
from skep.core.text import verbatim
from skep.recipes.registry import parse_manifest

SOON = 20.0
LISTENS = "import sys\nfor line in sys.stdin:\n    if 'StopTraining' in line:\n        sys.exit(0)\n"


class TestClock(ClockContract):
    @pytest.fixture(params=["system", "fake"])
    def clock(self, request):
        return SystemClock() if request.param == "system" else fakes.FakeClock(wall_now=time.time())

    @pytest.fixture
    def passes(self, clock):
        return time.sleep if isinstance(clock, SystemClock) else clock.advance


class TestCatalogue(CatalogueContract):
    @pytest.fixture
    def source(self, tmp_path):
        signed(tmp_path)
        return str(tmp_path / "manifest.json")

    @pytest.fixture(params=["files", "fake"])
    def catalogue(self, request, home, source):
        if request.param == "files":
            return bootstrap.catalogue(home)
        return fakes.FakeCatalogue(offered={source: fakes.make_project()})


class TestIdentity(IdentityContract):
    @pytest.fixture(params=["by invitation", "in an open project", "fake"])
    def identity(self, request, home):
        if request.param == "by invitation":
            return bootstrap.identity(home)
        if request.param == "in an open project":
            return bootstrap.identity_in(home, fakes.make_project().manifest)
        return fakes.FakeIdentity()


class TestInvitations(InvitationsContract):
    @pytest.fixture
    def open_project(self):
        return fakes.make_project()

    @pytest.fixture
    def invited_project(self):
        return fakes.make_project(manifest=raw(membership="invited"))

    @pytest.fixture(params=["kept", "fake"])
    def invitations(self, request, home):
        if request.param == "kept":
            return KeptInvitations(HomeSecrets(fakes.FakeSecrets(), FileSecrets(home.secrets_folder)), lambda: "QmPeer")
        return fakes.FakeInvitations(failing=InvitationError(verbatim("There is no invitation.")))


class TestRevocations(RevocationsContract):
    project = Project(data__index="http://127.0.0.1:1/index.json")
    open_manifest = parse_manifest(raw())
    invited_manifest = project.manifest
    known = project.revoke("Qm" + "a" * 44)

    @pytest.fixture(params=["kept", "fake"])
    def revocations(self, request, home):
        if request.param == "fake":
            return fakes.FakeRevocations(self.known)
        home.revocations_folder.mkdir()
        (home.revocations_folder / file_name(self.invited_manifest)).write_text(self.known)
        return PublishedRevocations(home.revocations_folder)


class TestDevices(DevicesContract):
    @pytest.fixture(params=["local", "fake"])
    def devices(self, request):
        return bootstrap.devices() if request.param == "local" else fakes.FakeDevices()


class TestWorker(WorkerContract):
    @pytest.fixture
    def options(self):
        return m.WorkerOptions("{}", fakes.make_index(), identity_path="/identity")

    @pytest.fixture
    def posted(self):
        return queue.SimpleQueue()

    @pytest.fixture
    def next_posted(self, posted):
        return lambda: posted.get(timeout=SOON)

    @pytest.fixture(params=["process", "fake"])
    def worker(self, request, tmp_path, posted):
        if request.param == "fake":
            yield fakes.FakeWorker(posted.put)
            return

        def run_folder():
            folder = tmp_path / f"run-{time.monotonic_ns()}"
            folder.mkdir()
            return folder

        made = WorkerProcess(
            posted.put,
            registry_file=tmp_path / "worker.json",
            make_run_folder=run_folder,
            stderr_log=logging.getLogger("skep.worker.stderr"),
            command=[sys.executable, "-c", LISTENS],
        )
        yield made
        made.close(within=0.0)
