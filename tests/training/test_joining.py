"""A script that cannot join, or contributes what it cannot, says why in a sentence, and leaves nothing."""

import socket
import subprocess
import sys

import pytest

from free_ports import free_port
from training_scripts import PATIENCE, running

ID = "QmcgpsyWgH8Y8ajJz1Cu72KnS5uo2Aa2LpzU7kinSupNKC"
BEGIN = """
import contextlib, io, sys, threading
import torch
from skep import training
from skep.core.errors import SwarmError
from skep.core.session.messages import WorkerNoticed
from skep.core.text import Text
from skep.worker.connection.clocks import AGREES

model = torch.nn.Linear(2, 1)

def join(**changes):
    given = {
        "run_id": "run",
        "optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        "target_batch_size": 64,
        "batch_size": 8,
        "host": "127.0.0.1",
        "report": lambda _: None,
    }
    return training.join(model, **given | changes)

def refused(call, *args, **options):
    try:
        call(*args, **options)
    except training.TrainingError as error:
        print(error)

"""


def said(script):
    """What a script prints that begins as above."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + script], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_peers_that_do_not_answer_are_named_in_a_sentence():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: it refuses
        port = unused.getsockname()[1]
        found = said(f"refused(join, initial_peers='/ip4/127.0.0.1/tcp/{port}/p2p/{ID}')")
    assert len(found) == 1
    assert f"127.0.0.1:{port}" in found[0]


def test_it_is_joined_on_the_main_thread_only():
    found = said("thread = threading.Thread(target=refused, args=[join]); thread.start(); thread.join()")
    assert len(found) == 1
    assert "main thread" in found[0]


def test_a_peer_that_others_cannot_dial_joins(tmp_path):
    with running(tmp_path, "plain_script.py") as first:
        peers = first.event("joined")["addresses"]
        with running(tmp_path, "plain_script.py", peers=peers, undialled=True, join={"host": "0.0.0.0"}) as second:
            assert second.event("joined")["addresses"] == []
            assert second.until(lambda line: line["event"] == "epoch" and line["peers"] == 1)


def test_processes_that_the_script_forks_have_its_model_and_leave_its_swarm_alone():
    found = said(
        """
import os
from skep.training import processes

class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, number):
        return torch.tensor([model.weight.numel(), model.weight.grad.numel()])

with join(target_batch_size=10**6) as swarm:  # its epoch does not end
    for _ in range(2):
        for sizes in torch.utils.data.DataLoader(Samples(), batch_size=8, num_workers=1):
            print(sizes.unique().tolist())
            model(torch.ones(8, 2)).mean().backward()
            swarm.contribute()
    if os.fork() == 0:
        swarm.leave()
        os._exit(0)
    os.wait()
    print(processes._Forks.folder.is_dir(), swarm.lost, swarm._sync.accumulated, swarm._dht.is_alive())
print(processes._Forks.folder.exists())
"""
    )
    assert found == ["[2]", "[2]", "True 0 16 True", "False"]


@pytest.fixture(scope="module")
def one_run():
    """What one script is told that does everything wrong, in one swarm after the other."""
    return said(
        """
with join(reuse_grad_buffers=True) as swarm:
    refused(join)
    refused(swarm.contribute, 9)
    refused(swarm.contribute, 0)
    refused(swarm.contribute, 3)
    model(torch.ones(8, 2)).mean().backward()
    model.zero_grad()
    print(bool(model.weight.grad.any()))
    swarm.contribute()
refused(swarm.contribute)
swarm.leave()
model.zero_grad()
print(model.weight.grad)
with join(run_id="another", target_batch_size=10**6) as swarm:  # its epoch does not end
    model(torch.full((3, 2), 2.0)).mean().backward()
    swarm.contribute(3)
    print(swarm._sync.grad_averager.local_accumulators[0].tolist(), model.weight.grad.tolist())
    model(torch.full((8, 2), torch.nan)).mean().backward()
    swarm.contribute()
    print(swarm.lost, swarm._sync.accumulated, swarm.epoch)
    model(torch.ones(8, 2)).mean().backward()
    refused(swarm.tend)
    swarm.contribute()
    swarm._notices.append(WorkerNoticed(AGREES))
    swarm._report = lambda line: print("said", line)
    swarm.tend()
    print(swarm._sync.accumulated)
    def fail(_):
        raise SwarmError(Text("round.round_failed"))
    swarm._sync.tend, swarm._report = fail, bool
    errors = io.StringIO()
    with contextlib.redirect_stdout(errors):
        for _ in range(7):
            refused(swarm.tend)
    print(len(errors.getvalue().splitlines()))
    lookouts = [each for each in threading.enumerate() if each.name in ("ClockWatch", "LinkWatch")]
for each in lookouts:
    each.join(10)
print(len(lookouts), any(map(threading.Thread.is_alive, lookouts)))
refused(join, optimizer=torch.optim.LBFGS)
refused(join, optimizer=lambda parameters: None)
"""
    )


def test_a_second_swarm_at_a_time_is_refused(one_run):
    assert "already" in one_run[0]


def test_a_number_of_samples_that_cannot_be_is_refused(one_run):
    assert all("1 to 8" in line for line in one_run[1:3])
    assert "scaled=True" in one_run[3]


def test_gradients_stay_in_reused_buffers_until_the_end_and_zero_grad_is_restored(one_run):
    assert one_run[4] == "True"
    assert one_run[6] == "None"


def test_a_swarm_that_was_left_takes_nothing_any_more(one_run):
    assert "has left" in one_run[5]


def test_fewer_samples_are_weighted(one_run):
    assert one_run[7] == "[[0.75, 0.75]] [[0.0, 0.0]]"


def test_gradients_of_a_batch_that_are_not_finite_are_lost_alone(one_run):
    assert one_run[8] == "8 3 0"


def test_no_round_takes_place_while_a_batch_waits(one_run):
    assert "wait to be contributed" in one_run[9]
    assert one_run[11] == "11"


def test_a_clock_that_is_off_is_told_by_the_script_and_looked_at_until_it_leaves(one_run):
    assert one_run[10].startswith("said")
    assert "clock" in one_run[10]
    assert one_run[13] == "2 False"


def test_a_state_that_does_not_arrive_is_an_error_each_time_after_some(one_run):
    assert one_run[12] == "3"  # of seven in a row


def test_an_optimizer_that_cannot_step_in_a_swarm_is_refused(one_run):
    assert "LBFGS" in one_run[14]
    assert "NoneType" in one_run[15]


def test_a_delayed_step_that_has_arrived_is_in_the_model_that_is_left():
    found = said(
        """
delays = ("offload_optimizer", "delay_optimizer_step", "delay_state_averaging")
with join(target_batch_size=16, **dict.fromkeys(delays, True)) as swarm:
    while not swarm.epoch:
        model(torch.ones(8, 2)).mean().backward()
        swarm.contribute()
    print(swarm._sync.state_averager.finished_optimizer_step.wait(60))
    before = model.weight.detach().clone()
print([round(each, 3) for each in (before - model.weight).flatten().tolist()])
"""
    )
    assert found == ["True", "[0.1, 0.1]"]


def test_the_port_the_averagers_options_and_the_lines_are_those_that_are_given():
    port = free_port()
    found = said(
        f"""
from skep.training import swarm as module
take_part = module.take_part

def noted(own):
    print(own.bandwidth, own.run.sync.matchmaking_seconds, own.run.sync.averaging_timeout_seconds)
    return take_part(own)

module.take_part = noted
given = dict(bandwidth=0.25, matchmaking_time=3.0, averaging_timeout=21.0, port={port}, target_batch_size=8)
for verbose in (True, False):
    lines = []
    with join(**given, run_id=f"run-{{verbose}}", report=lines.append, verbose=verbose) as swarm:
        print([address.split("/p2p/")[0] for address in swarm.addresses])
        averager = swarm._sync.grad_averager
        print(averager.bandwidth, averager.matchmaking_kwargs["min_matchmaking_time"], swarm._sync.averaging_timeout)
        lines.clear()
        while not swarm.epoch:
            model(torch.ones(8, 2)).mean().backward()
            swarm.contribute()
        print(len(lines))
"""
    )
    one = ["0.25 3.0 21.0", f"['/ip4/127.0.0.1/tcp/{port}']", "0.25 3.0 21.0"]
    assert found == [*one, "1", *one, "0"]
