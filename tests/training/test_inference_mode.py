"""A script that calls `tend` in torch's inference mode: what is loaded there could not be changed by later steps."""

from types import SimpleNamespace

import torch

from skep.training.swarm import Swarm


def test_a_state_that_is_loaded_in_a_scripts_inference_mode_can_be_trained_further():
    loaded = []
    sync = SimpleNamespace(finished=False, tend=lambda _hand_over: loaded.append(torch.zeros(2)))
    fields = {"_failures": 0, "_notices": (), "epoch": 3, "_epoch": 3, "_verbose": False}
    swarm = SimpleNamespace(_sync=sync, **fields)
    with torch.inference_mode():
        Swarm._tend(swarm)
        assert torch.is_inference_mode_enabled()
    (state,) = loaded
    state.add_(1.0)
    assert not state.is_inference()
