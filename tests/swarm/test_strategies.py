"""Every valid combination of flags, with two real peers: parameters change according to the exact mean gradient.

Invalid combinations are refused when a manifest is read; tests/core tests all thirty-two.
"""

import pytest
import torch

from skep.core.session.messages import ContributionConfirmed
from swarm_peers import finish_together, manifest_of, together

FLAGS = ("offload_optimizer", "reuse_grad_buffers", "delay_optimizer_step", "delay_grad_averaging")
FLAGS = (*FLAGS, "delay_state_averaging")
CORNERS = ["11101"]
"""The flags of the example manifest; the others take long and are tested by make test-long."""
OTHERS = ["00000", "00001", "01000", "01001", "10000", "10001", "11000", "11001", "10101", "10111", "11111"]
SHARES = [(8, 8, 5), (8, 3)]
"""Samples of each peer in its step batches; the last batch is incomplete."""
TARGET = sum(map(sum, SHARES))
RATE, MOMENTUM = 0.1, 0.5
SCHEDULE = {"kind": "linear", "warmup_epochs": 1, "total_epochs": 3}
FACTORS = [0.5, 1.0]
"""The resulting factors of the learning rate in the first epochs; the next epoch has 0.5 again."""


def flags_of(code):
    return {f"sync__{name}": digit == "1" for name, digit in zip(FLAGS, code, strict=True)}


def some_tensors(generator):
    return [torch.randn(3, 4, generator=generator), torch.randn(5, generator=generator)]


def exact_steps(start, epochs):
    """The parameters that plain torch reaches from `start` with the mean gradient of each epoch."""
    parameters = [torch.nn.Parameter(value.clone()) for value in start]
    optimizer = torch.optim.SGD(parameters, lr=RATE, momentum=MOMENTUM)
    for factor, gradients in zip(FACTORS, epochs, strict=False):
        optimizer.param_groups[0]["lr"] = RATE * factor
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient.clone()
        optimizer.step()
    return [parameter.detach() for parameter in parameters]


def mean_of(batches):
    """The mean gradient over all samples of (gradients, samples)."""
    total = sum(samples for _, samples in batches)
    return [sum(g * n for g, n in zip(of_one, counts, strict=True)) / total for of_one, counts in _columns(batches)]


def _columns(batches):
    counts = [samples for _, samples in batches]
    return [(column, counts) for column in zip(*(gradients for gradients, _ in batches), strict=True)]


def close(ours, exact):
    return all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(ours, exact, strict=True))


def memory_of(tensors):
    return {tensor.data_ptr() for tensor in tensors}


def assert_tensors_lie_where_the_flags_say(peer, sync):
    stepped = memory_of(p for group in peer.optimizer.opt.param_groups for p in group["params"])
    assert stepped.isdisjoint(memory_of(peer.parameters)) == sync.offload_optimizer
    summed, beside = [p.grad for p in peer.parameters], peer.optimizer.grad_averager.local_accumulators
    assert [bool(each.any()) for each in summed] == [sync.reuse_grad_buffers] * len(summed)
    assert [bool(each.any()) for each in beside] == ([] if sync.reuse_grad_buffers else [True] * len(summed))


def run_epoch(peers, epoch, batches, sync):
    together(*(peer.settle_in for peer in peers))
    for peer, mine in zip(peers, batches, strict=True):
        for gradients, samples in mine:
            peer.contribute(gradients, samples)
        assert_tensors_lie_where_the_flags_say(peer, sync)
    ends = finish_together(peers, epoch)
    assert [type(end) for end in ends] == [ContributionConfirmed] * 2, ends
    assert [(end.samples, end.peers) for end in ends] == [(sum(share), 1) for share in SHARES]


@pytest.mark.parametrize("code", [*CORNERS, *(pytest.param(code, marks=pytest.mark.long) for code in OTHERS)])
def test_two_peers_move_by_the_exact_mean_of_their_gradients_and_then_to_the_mean_of_their_states(swarm, code):
    manifest = manifest_of(
        f"flags-{code}",
        TARGET,
        **flags_of(code),
        sync__average_state_every=2,
        optimizer__learning_rate=RATE,
        optimizer__betas=[MOMENTUM, 0],
        schedule=SCHEDULE,
    )
    generator = torch.Generator().manual_seed(int(code, 2))
    starts = [some_tensors(generator) for _ in SHARES]
    batches = [[[(some_tensors(generator), n) for n in share] for share in SHARES] for _ in range(2)]
    means = [mean_of([batch for mine in epoch for batch in mine]) for epoch in batches]
    with swarm.peers(manifest, starts) as peers:
        run_epoch(peers, 0, batches[0], manifest.sync)
        # the states are averaged every other epoch: after the first, each peer's values depend on its own start
        for peer, start in zip(peers, starts, strict=True):
            exact = exact_steps(start, means[:1])
            peer.take_up_until(lambda peer=peer, exact=exact: close(peer.values(), exact))
        run_epoch(peers, 1, batches[1], manifest.sync)
        ends = [exact_steps(start, means) for start in starts]
        middle = [(a + b) / 2 for a, b in zip(*ends, strict=True)]
        for peer in peers:
            peer.take_up_until(lambda peer=peer: close(peer.values(), middle))
        assert all(not p.grad.any() for peer in peers for p in peer.parameters)
