"""What HivemindStrategy cannot do is refused in one sentence, before anything is started."""

import warnings

import pytest
import torch

from skep.training import TrainingError

pytest.importorskip("lightning")

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.plugins.precision import MixedPrecision
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import (
    allreduce_hook,
    bf16_compress_hook,
    bf16_compress_wrapper,
    fp16_compress_hook,
    fp16_compress_wrapper,
)
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook

from skep.lightning import HivemindStrategy, strategy
from skep.lightning.comm_hooks import options_of
from skep.lightning.contributing import remade
from skep.worker.ranks.hooks import Compress, PowerSGD


class Module(LightningModule):
    def __init__(self, **options):
        super().__init__()
        self.layer, self.made_with = torch.nn.Linear(2, 1), options
        self.automatic_optimization = not options.get("manual")

    def training_step(self, batch, _number):
        return self.layer(batch).mean()

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        if self.made_with.get("none"):
            return None
        if self.made_with.get("schedule"):
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]
        return optimizer


def fit(module, strategy, **options):
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning's, about the number of its workers for example
        trainer = Trainer(
            **{"strategy": strategy, "accelerator": "cpu", "devices": 1, "max_epochs": 1} | quiet | options
        )
        trainer.fit(module, torch.utils.data.DataLoader(torch.randn(8, 2), batch_size=4))


@pytest.mark.parametrize(
    ("module", "trainer", "strategy", "words"),
    [
        ({"schedule": True}, {}, {}, "scheduler_fn"),
        ({"manual": True}, {}, {}, "automatic_optimization"),
        ({"none": True}, {}, {}, "one optimizer"),
        ({}, {}, {"averager_opts": {"bandwidth": "much"}}, "bandwidth"),
        ({}, {"gradient_clip_val": 1.0, "gradient_clip_algorithm": "value"}, {}, "norm"),
        ({}, {"plugins": [MixedPrecision("16-mixed", "cpu")]}, {"reuse_grad_buffers": True}, "bf16-mixed"),
        ({}, {"precision": "bf16-true"}, {}, "torch.float32"),
        ({}, {"sync_batchnorm": True}, {}, "sync_batchnorm"),
        ({}, {}, {"target_batch_size": 1}, "target_batch_size"),
        ({}, {}, {"delay_optimizer_step": True}, "delay_state_averaging"),
        ({}, {}, {"initial_peers": "somewhere"}, "initial_peers"),
        ({}, {}, {"project": "project.json"}, "target_batch_size"),
    ],
)
def test_what_a_swarm_cannot_do_is_refused_in_a_sentence(module, trainer, strategy, words):
    given = {"target_batch_size": 64, "host_maddrs": ["/ip4/127.0.0.1/tcp/0"]} | strategy
    with pytest.raises(TrainingError, match=words) as error:
        fit(Module(**module), HivemindStrategy(**given), **trainer)
    assert str(error.value).endswith(".")


def with_state(**options):
    return {"ddp_comm_hook": powerSGD_hook, "ddp_comm_state": PowerSGDState(None, 2, 5, **options)}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"host_maddrs": ["/ip4/0.0.0.0/tcp/1", "/ip4/0.0.0.0/tcp/2"]}, "host_maddrs"),
        ({"host_maddrs": ["/ip6/::/udp/1/quic"]}, "host_maddrs"),
        ({"averager_opts": {"request_timeout": 1.0}}, "request_timeout"),
        ({"ddp_comm_hook": fp16_compress_hook, "reuse_grad_buffers": True}, "reuse_grad_buffers"),
        ({"ddp_comm_hook": allreduce_hook}, "not known"),
        ({"ddp_comm_hook": powerSGD_hook}, "not known"),
        ({"ddp_comm_hook": powerSGD_hook, "ddp_comm_state": PowerSGDState(None, 0)}, "rank"),
        ({"ddp_comm_state": PowerSGDState(None, 1)}, "not known"),
        (with_state(orthogonalization_epsilon=1e-6), "orthogonalization_epsilon"),
        (with_state(batch_tensors_with_same_shape=True), "batch_tensors_with_same_shape"),
        (with_state(compression_stats_logging_frequency=10), "compression_stats_logging_frequency"),
        (with_state(random_seed=3), "random_seed"),
        ({"ddp_comm_hook": post_localSGD_hook, "ddp_comm_state": PostLocalSGDState(None, None, 100)}, "each device"),
    ],
)
def test_an_argument_that_is_skeps_own_is_refused_in_a_sentence(options, words):
    with pytest.raises(TrainingError, match=words):
        HivemindStrategy(target_batch_size=64, **options)


def test_it_is_said_that_options_of_several_devices_have_no_effect_on_one(monkeypatch):
    said = []
    monkeypatch.setattr(strategy, "rank_zero_info", said.append)
    options = {"ddp_comm_hook": fp16_compress_hook, "find_unused_parameters": True, "bucket_cap_mb": None}
    with pytest.raises(TrainingError, match="initial_peers"):
        fit(Module(), HivemindStrategy(target_batch_size=64, initial_peers="somewhere", **options))
    assert said == ["There is one device, so these options have no effect: ddp_comm_hook, find_unused_parameters."]


def test_an_optimizer_is_made_again_with_its_groups_and_options():
    first, second = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1))
    given = torch.optim.AdamW(
        [{"params": [first], "weight_decay": 0.0}, {"params": [second], "lr": 0.5}], lr=0.1, betas=(0.8, 0.9)
    )
    made = remade(given)([dict(group) for group in given.param_groups])
    assert type(made) is torch.optim.AdamW
    assert [(group["lr"], group["weight_decay"], group["betas"]) for group in made.param_groups] == [
        (0.1, 0.0, (0.8, 0.9)),
        (0.5, 0.01, (0.8, 0.9)),
    ]


@pytest.mark.parametrize(
    ("hook", "state", "wrapper", "options"),
    [
        (None, None, None, None),
        (fp16_compress_hook, None, None, Compress("fp16")),
        (bf16_compress_hook, None, None, Compress("bf16")),
        (powerSGD_hook, PowerSGDState(None, 2, 5), None, PowerSGD(2, 5)),
        (powerSGD_hook, PowerSGDState(None, 2, 5), fp16_compress_wrapper, PowerSGD(2, 5, wrapper="fp16")),
        (powerSGD_hook, PowerSGDState(None, 2, 5), bf16_compress_wrapper, PowerSGD(2, 5, wrapper="bf16")),
        (
            powerSGD_hook,
            PowerSGDState(None, 2, 0, 0.5, use_error_feedback=False, warm_start=False),
            None,
            PowerSGD(2, 0, warm_start=False, use_error_feedback=False, min_compression_rate=0.5),
        ),
    ],
)
def test_a_hook_is_given_as_lightnings_own_strategy_takes_it(hook, state, wrapper, options):
    assert options_of(hook, state, wrapper) == options
