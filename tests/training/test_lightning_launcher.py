"""What the processes of a Trainer with several devices find in their environment."""

import os
from types import SimpleNamespace
from unittest import mock

import pytest

pytest.importorskip("lightning")

from skep.lightning import launcher
from skep.worker.ranks.rendezvous import LOOPBACK


def test_ranks_listen_on_loopback_whatever_the_environment_says_and_only_they_know_their_parent(monkeypatch, tmp_path):
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        monkeypatch.setenv(name, "eth0")
    for name in (launcher.FOLDER, "LOCAL_RANK"):
        monkeypatch.setenv(name, "")  # so that it is as before after the test
    monkeypatch.delenv(launcher.PARENT, raising=False)
    monkeypatch.setattr(launcher, "make_run_folder", lambda: tmp_path)
    monkeypatch.setattr(launcher.threading, "Thread", mock.Mock())
    monkeypatch.setattr(launcher.atexit, "register", mock.Mock())
    started = mock.Mock()
    monkeypatch.setattr(launcher.subprocess, "Popen", started)
    launcher.RankLauncher._call_children_scripts(SimpleNamespace(num_processes=2, procs=[], _end=None, _watch=None))
    given = started.call_args.kwargs["env"]
    for environment in (os.environ, given):
        assert {environment[name] for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")} == {LOOPBACK}
    assert (given[launcher.PARENT], given["LOCAL_RANK"]) == (str(os.getpid()), "1")
    assert launcher.PARENT not in os.environ
