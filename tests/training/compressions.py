"""Hivemind's objects by their names, for options that are JSON."""

from functools import partial

import torch
from hivemind.compression import (
    Float16Compression,
    SizeAdaptiveCompression,
    Uniform8BitQuantization,
)
from hivemind.optim.power_sgd_averager import PowerSGDGradientAverager
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook

OBJECTS = {
    "Float16Compression": Float16Compression(),
    "SizeAdaptive": SizeAdaptiveCompression(
        threshold=2**10 + 1, less=Float16Compression(), greater_equal=Uniform8BitQuantization()
    ),
    "PowerSGD": partial(PowerSGDGradientAverager, averager_rank=32, min_compression_ratio=0.5),
    "fp16": fp16_compress_hook,
    "powersgd": powerSGD_hook,
    "powersgd-state": PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=4),
    "Constant": lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9),
}


def made(options):
    return {name: OBJECTS.get(value, value) if isinstance(value, str) else value for name, value in options.items()}
