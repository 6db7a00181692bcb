"""The worker's start message from the session's part and the shell's."""

from __future__ import annotations

from fakes import make_index, make_project
from skep.core import messages as m
from skep.core.launch import LaunchFacts, complete
from skep.core.model import GpuMemory


def test_every_field_of_the_start_message_has_one_source():
    wanted = m.StartWorker(
        make_project(),
        make_index(),
        ("/ip4/1.2.3.4/tcp/9",),
        share=0.5,
        device="cuda:1",
        threads=3,
        port=4001,
        client_mode="off",
        present=True,
        memory=GpuMemory.SHRINK,
        leave_gpu=7,
        leave_ram=8,
    )
    facts = LaunchFacts(identity_path="/home/identity.key", position=70, listen_host="127.0.0.1", invitation="{}")
    assert complete(wanted, facts) == m.StartTraining(
        manifest="{}",
        index=make_index(),
        identity_path="/home/identity.key",
        run_folder="",
        seeds=("/ip4/1.2.3.4/tcp/9",),
        listen=("/ip4/127.0.0.1/tcp/4001",),
        share=0.5,
        device="cuda:1",
        threads=3,
        position=70,
        invitation="{}",
        client_mode="off",
        present=True,
        memory=GpuMemory.SHRINK,
        leave_gpu=7,
        leave_ram=8,
    )
