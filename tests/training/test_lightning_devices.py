"""A Trainer with several devices: a process each inside the computer, of which one takes part in the swarm."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest
import torch

from families import lives
from training_scripts import HERE, PATIENCE, equal_epoch, running

pytest.importorskip("lightning")

STOP_SECONDS = 2.0
NEARLY = 1e-3
"""As many steps of Adam as are between two averages of the parameters, at most."""
TWO = {"devices": 2}
OVERLAPPED = {
    "offload_optimizer": True,
    "delay_optimizer_step": True,
    "delay_grad_averaging": True,
    "delay_state_averaging": True,
}
LONG = pytest.mark.long


# --- what is handed over, without a swarm


def told(**options):
    """The lines of a script with two devices in a swarm of nobody, by event, its exit status, and its stderr."""
    done = subprocess.run(
        [sys.executable, HERE / "lightning_devices_script.py", json.dumps(options)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=4 * PATIENCE,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {name: [line for line in lines if line["event"] == name] for name in EVENTS}, done.returncode, done.stderr


EVENTS = ("joined", "wrapped", "contributed", "backward", "batch", "left", "done")
# Lightning's sampler draws them in another order each time
SAMPLES = [float(each) for each in (1, 2, 1, 4, 1, 6, 1, 8, 3, 3, 5, 5)]


def test_the_samples_of_both_devices_are_contributed_with_their_mean():
    seen, code, errors = told(samples=SAMPLES)
    assert code == 0, errors[-3000:]
    assert seen["joined"] == [{"event": "joined", "batch_size": 8}]  # 4 of each device
    assert [each["samples"] for each in seen["contributed"]] == [8, 4]
    # the last batch has half as many samples, so half of the weight
    assert sum(each["gradient"] for each in seen["contributed"]) == sum(SAMPLES) / 8
    assert len(seen["left"]) == 1


def test_accumulated_batches_of_both_devices_are_contributed_together():
    seen, code, errors = told(samples=SAMPLES, trainer={"accumulate_grad_batches": 2})
    assert code == 0, errors[-3000:]
    assert seen["joined"][0]["batch_size"] == 16
    assert [(each["samples"], each["gradient"]) for each in seen["contributed"]] == [(12, sum(SAMPLES) / 16)]


@pytest.mark.parametrize("static_graph", [False, True])
def test_devices_communicate_in_the_last_of_accumulated_batches_only(static_graph):
    # of powers of two, no two batches have the same sum: equal gradients on both devices have been averaged
    samples, trainer = [2.0**each for each in range(16)], {"accumulate_grad_batches": 2, "max_epochs": 2}
    seen, code, errors = told(samples=samples, trainer=trainer, ddp={"static_graph": static_graph})
    assert code == 0, errors[-3000:]
    assert seen["wrapped"][0]["static_graph"] is static_graph
    alike = [first == second for first, second in (each["gradients"] for each in seen["backward"])]
    # torch learns a static graph from the first pass, in which it has to communicate
    assert alike == [static_graph, True, False, True]
    assert [(each["samples"], each["gradient"]) for each in seen["contributed"]] == [(16, sum(samples) / 16)] * 2


def test_the_other_device_gets_the_parameters_of_the_swarm_and_every_step():
    seen, code, errors = told(samples=SAMPLES * 2)
    assert code == 0, errors[-3000:]
    assert [each["weights"] for each in seen["batch"]] == [[100.0] * 2, [99.0] * 2, [99.0] * 2]


def test_kept_gradients_are_cleared_on_the_other_device_too():
    seen, code, errors = told(samples=[2.0] * 32, reuse_grad_buffers=True)
    assert code == 0, errors[-3000:]
    assert [each["gradient"] for each in seen["contributed"]] == [2.0, 4.0, 2.0, 4.0]


def test_the_end_of_a_run_ends_the_training_of_both():
    seen, code, errors = told(samples=[2.0] * 64, last=2, trainer={"max_epochs": -1})
    assert code == 0, errors[-3000:]
    assert len(seen["contributed"]) == 2
    assert len(seen["done"]) == 1


def test_the_options_and_the_hook_reach_the_devices():
    ddp = {"find_unused_parameters": True, "gradient_as_bucket_view": True, "bucket_cap_mb": 3}
    seen, code, errors = told(samples=[0.1] * 24, unused=True, hook=True, ddp=ddp)
    assert code == 0, errors[-3000:]  # without the first option, torch ends at the second batch
    (wrapped,) = seen["wrapped"]
    assert wrapped["find_unused_parameters"]
    assert wrapped["gradient_as_bucket_view"]
    assert (wrapped["static_graph"], wrapped["bucket_bytes_cap"]) == (False, 3 * 2**20)
    halved = torch.tensor(0.1 / 2).half() * 2  # each device's part of the mean is rounded to 16 bits
    assert [each["gradient"] for each in seen["contributed"]] == [float(halved)] * 3


def test_gradients_that_overflow_in_fp16_on_one_device_are_contributed_by_none():
    seen, code, errors = told(samples=[2.0] * 31 + [1e38], fp16=True)
    assert code == 0, errors[-3000:]
    assert [(each["samples"], each["gradient"]) for each in seen["contributed"]] == [(8, 2.0)] * 3


def test_without_a_swarm_lightnings_devices_may_drift_apart_between_two_averages():
    done = subprocess.run(
        [sys.executable, HERE / "lightning_local_script.py"],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=4 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line)["weights"] for line in done.stdout.splitlines() if line.startswith("{")]
    equal = [number for number, (first, second) in enumerate(lines) if first == second]
    assert len(lines) == 10
    assert equal == [0, 1, 2, 5, 8]  # two sums of gradients, and then an average after each third step


@pytest.mark.parametrize("seconds", [0.0, 3.0])
def test_a_process_that_ends_ends_the_script_with_a_sentence(seconds):
    seen, code, errors = told(samples=[2.0] * 64, fails_on_rank=1, ends_after=seconds)
    assert code != 0
    assert not seen["done"]
    assert "The process of device 1 has ended with exit code 7" in errors


def test_a_process_that_hangs_ends_the_script_with_a_sentence():
    seen, code, errors = told(samples=[2.0] * 64, stops_on_rank=1, timeout=8)
    assert code != 0
    assert not seen["done"]
    assert "A device of this computer has not answered for 8 s" in errors


def test_the_other_process_waits_longer_for_what_the_swarm_does():
    seen, code, errors = told(samples=[2.0] * 16, timeout=8, round_seconds=10)
    assert code == 0, errors[-3000:]
    assert len(seen["contributed"]) == 2


# --- in a swarm


FEATURES = [
    pytest.param({}, id="plain"),
    pytest.param({"reuse_grad_buffers": True, "gradient_as_bucket_view": True}, id="reuse", marks=LONG),
    pytest.param({"ddp_comm_hook": "fp16", "grad_compression": "float16"}, id="fp16-hook", marks=LONG),
    pytest.param({"ddp_comm_hook": "powersgd", "ddp_comm_state": "powersgd-state"}, id="powersgd-hook", marks=LONG),
    pytest.param(OVERLAPPED, id="overlapped", marks=LONG),
]


@pytest.mark.parametrize("strategy", FEATURES)
def test_a_computer_with_two_devices_and_one_with_one_confirm_each_other(tmp_path, strategy):
    common = {name: value for name, value in strategy.items() if not name.startswith(("ddp_", "gradient_as"))}
    with running(tmp_path, "lightning_script.py", seed=1, strategy=strategy, trainer=TWO) as first:
        peers = first.event("joined")["addresses"]
        with running(tmp_path, "lightning_script.py", seed=2, strategy=common, peers=peers) as second:
            ours, theirs = equal_epoch(first, second)
            assert ours["peers"] == theirs["peers"] == 1
            assert ours["alike"]
            assert max(abs(a - b) for a, b in zip(ours["values"], theirs["values"], strict=True)) < NEARLY


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_trainer_with_two_devices_that_is_ended_leaves_no_process(tmp_path, number):
    with running(tmp_path, "lightning_script.py", target=64, trainer=TWO) as script:
        script.event("epoch")
        assert script.end(lambda each: os.kill(each.process.pid, number)) < STOP_SECONDS


def test_a_device_whose_process_is_killed_ends_the_script_with_a_sentence(tmp_path):
    with running(tmp_path, "lightning_script.py", target=64, trainer=TWO) as script:
        (number,) = script.event("joined")["ranks"]
        killed, family = psutil.Process(number), script.family()
        listening = {each.laddr.ip for each in killed.net_connections() if each.status == psutil.CONN_LISTEN}
        assert listening <= {"127.0.0.1", "::1"}
        killed.kill()
        assert script.process.wait(PATIENCE)
        assert "The process of device 1 has ended with exit code -9" in script.errors
        psutil.wait_procs(family, timeout=STOP_SECONDS)
        assert not any(map(lives, family))
