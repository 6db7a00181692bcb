"""Trainers with HivemindStrategy train in one swarm, as processes of their own, and end without a trace."""

import os
import signal

import pytest

from training_scripts import equal_epoch, running

pytest.importorskip("lightning")

STOP_SECONDS = 2.0
NEARLY = 1e-3
"""As many steps of Adam as are between two averages of the parameters, at most."""
OVERLAPPED = {
    "offload_optimizer": True,
    "delay_optimizer_step": True,
    "delay_grad_averaging": True,
    "delay_state_averaging": True,
}
MOST_SENT = {"none": 1.2, "Float16Compression": 0.65, "SizeAdaptive": 0.4, "PowerSGD": 0.8}
"""In parts of all gradients and parameters, which are exchanged in an epoch. PowerSGD leaves the parameters whole."""
LONG = pytest.mark.long
FEATURES = [
    pytest.param({}, {}, id="plain"),
    pytest.param(
        {"grad_compression": "Float16Compression", "state_averaging_compression": "Float16Compression"}
        | {"reuse_grad_buffers": True},
        {"precision": "bf16-mixed", "gradient_clip_val": 1.0},
        id="float16-reuse-bf16-clip",
    ),
    pytest.param(
        {"grad_compression": "SizeAdaptive", "state_averaging_compression": "SizeAdaptive", **OVERLAPPED},
        {},
        id="size-adaptive-overlapped",
        marks=LONG,
    ),
    pytest.param(
        {"grad_averager_factory": "PowerSGD", "offload_optimizer": True, "reuse_grad_buffers": True},
        {},
        id="powersgd-offload-reuse",
        marks=LONG,
    ),
    pytest.param({"scheduler_fn": "Constant"}, {"accumulate_grad_batches": 2}, id="scheduler-accumulation", marks=LONG),
    pytest.param({}, {"fp16": True}, id="fp16", marks=LONG),
]


def compression_of(strategy):
    return strategy.get("grad_averager_factory") or strategy.get("grad_compression", "none")


def sent_in_an_epoch(script, before):
    """What a peer sends in an epoch that it has confirmed, in parts of what it would send without compression.

    An epoch is a round of the gradients and one of the parameters. Either is tried again when it fails, as it may on a
    busy computer, and is sent again.
    """
    after = script.until(lambda line: line["event"] == "epoch" and line["confirmed"] > before["confirmed"])
    # half of the gradients to the other peer, and half of their average back; as much for the parameters
    whole = 2 * 4 * (256 * 256 + 256 + 256 + 1)
    return (after["sent"] - before["sent"]) / whole / ((after["rounds"] - before["rounds"]) / 2)


@pytest.mark.parametrize(("strategy", "trainer"), FEATURES)
def test_two_trainers_train_together_and_confirm_each_other(tmp_path, strategy, trainer):
    trainer = dict(trainer)
    options = {"strategy": strategy, "fp16": trainer.pop("fp16", False), "trainer": trainer}
    with running(tmp_path, "lightning_script.py", seed=1, **options) as first:
        joined = first.event("joined")
        peers = joined["addresses"]
        with running(tmp_path, "lightning_script.py", seed=2, peers=peers, **options) as second:
            second.event("joined")
            ours, theirs = equal_epoch(first, second)
            assert ours["peers"] == theirs["peers"] == 1
            apart = max(abs(a - b) for a, b in zip(ours["values"], theirs["values"], strict=True))
            moved = max(abs(a - b) for a, b in zip(ours["values"], joined["values"], strict=True))
            assert apart < min(NEARLY, moved)
            assert ours["flags"] == {name: strategy.get(name, False) for name in ours["flags"]}
            decay = 0.9 if "scheduler_fn" in strategy else 1.0
            assert ours["rate"] == pytest.approx(1e-3 * decay ** ours["epoch"])
            assert sent_in_an_epoch(second, theirs) < MOST_SENT[compression_of(strategy)]
            for script in (first, second):
                assert script.took_to_leave() < STOP_SECONDS
                left = script.event("left")
                assert not left["own"]
                assert bool(left["scale"]) == options["fp16"]
                assert left["clip"] == trainer.get("gradient_clip_val")
        assert joined["kept"] == strategy.get("reuse_grad_buffers", False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_trainer_that_is_ended_leaves_no_process(tmp_path, number):
    with running(tmp_path, "lightning_script.py", target=64) as script:
        script.event("epoch")
        assert script.end(lambda each: os.kill(each.process.pid, number)) < STOP_SECONDS


def test_the_processes_of_a_data_loader_leave_the_swarm_alone(tmp_path):
    with running(tmp_path, "lightning_script.py", samples=64, workers=1, target=4096) as script:
        assert script.event("pass")["folder"]
        assert script.event("pass")["folder"]
        script.end()
        assert script.event("left")


def test_peers_of_the_environment_are_joined(tmp_path, monkeypatch):
    with running(tmp_path, "lightning_script.py", seed=1) as first:
        monkeypatch.setenv("INITIAL_PEERS", ",".join(first.event("joined")["addresses"]))
        with running(tmp_path, "lightning_script.py", seed=2) as second:
            assert second.until(lambda line: line["event"] == "epoch" and line["confirmed"])["peers"] == 1
