"""bf16 and fp16 on the processor: what is computed in 16 bits, what is not, and overflows."""

import math

import pytest
import torch

from manifests import raw
from skep.recipes.registry import parse_manifest
from skep.recipes.tensors.batches import text_batch
from skep.worker.training.compute_group import LARGEST_SCALE, LEAST_SCALE, LossScale, add_gradients, keep_norms_in_fp32
from skep.worker.training.device import pick
from skep.worker.training.trainer import Trainer

MODEL = {"type": "gpt2", "layers": 2, "heads": 2, "width": 32, "vocabulary": 256}
MODELS = [MODEL, MODEL | {"type": "llama"}]
HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}


@pytest.fixture(autouse=True)
def one_thread():
    """These matrices are small: on a busy computer, several threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make(wanted, model=MODEL, **changes):
    manifest = parse_manifest(raw(recipe__model=model, recipe__sequence_length=16, precision=wanted, **changes))
    return Trainer(manifest, pick("cpu", manifest.precision))


def some_tokens(count=8, seed=0):
    return text_batch(torch.randint(256, (count, 16), generator=torch.Generator().manual_seed(seed)))


def gradients(made):
    return torch.cat([p.grad.flatten() for p in made.parameters])


def descend(made, steps=40):
    """The losses of training on the same few samples, with a step after each batch."""
    optimizer = torch.optim.AdamW(made.parameters, lr=1e-2)
    losses = []
    for step in range(steps):
        losses.append(made.add_gradients(some_tokens(seed=step % 4), 1.0))
        optimizer.step()
        optimizer.zero_grad()
    return losses


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("wanted", HALVES)
def test_training_in_16_bits_learns_as_in_32(wanted, model):
    full, half = descend(make("fp32", model)), descend(make(wanted, model))
    assert full[-1] < 0.9 * full[0]
    assert half == pytest.approx(full, rel=0.03)
    assert half != full


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("wanted", HALVES)
def test_matrices_are_multiplied_in_16_bits_and_norms_computed_in_32(wanted, model):
    made = make(wanted, model)
    seen = {}

    def note(name):
        def hook(_module, _inputs, out):
            seen[name] = out.dtype if torch.is_tensor(out) else None

        return hook

    for name, module in made.model.named_modules():
        module.register_forward_hook(note(name))
    made.add_gradients(some_tokens(), 1.0)
    norms = [name for name, module in made.model.named_modules() if type(module).__name__.endswith("Norm")]
    projections = [name for name in seen if name.endswith(("c_proj", "q_proj", "mlp.down_proj"))]
    assert len(norms) == 5
    assert len(projections) >= 2
    assert {seen[name] for name in norms} == {torch.float32}
    assert {seen[name] for name in projections} == {HALVES[wanted]}
    with torch.autocast("cpu", HALVES[wanted]):
        for name in norms:
            assert made.model.get_submodule(name)(torch.ones(1, 32, dtype=HALVES[wanted])).dtype is torch.float32
    assert {p.dtype for p in made.parameters} == {p.grad.dtype for p in made.parameters} == {torch.float32}


@pytest.mark.parametrize("half", HALVES.values())
def test_a_norm_that_is_handed_16_bits_computes_in_32_all_the_same(half):
    # as in models whose residual stream begins with a projection
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4))
    large = torch.full((1, 4), 60_000.0)
    with torch.autocast("cpu", half):
        assert model(large).dtype is half
        keep_norms_in_fp32(model)
        assert model(large).dtype is torch.float32


@pytest.mark.parametrize("weight", [1.0, 0.5, 0.25, 3 / 8])
def test_the_scale_leaves_no_trace_in_the_gradients(weight):
    """Within one rounding of fp32: the scales differ only in the small values that fp16 loses."""
    loss_of, parameter = linear(), torch.nn.Parameter(torch.ones(3))
    plain = torch.autograd.grad(loss_of(parameter) * weight, parameter)[0]
    for factor in (2.0**-3, 1.0, 2.0**10, 2.0**20):
        parameter.grad = None
        assert add_gradients(loss_of(parameter), weight, [parameter], LossScale(factor))
        assert torch.allclose(parameter.grad, plain, rtol=2e-7, atol=0)
    if weight in (1.0, 0.5, 0.25):
        assert torch.equal(parameter.grad, plain)  # powers of two cause no rounding


def linear():
    slope = torch.tensor([0.1, -3.7, 1e-6])
    return lambda parameter: (parameter * slope).sum()


def test_micro_batches_in_fp16_add_up_to_the_step_batch():
    batch = some_tokens()
    whole, parts = make("fp16"), make("fp16")
    whole.add_gradients(batch, 1.0)
    first, second = batch.split(4)
    for part in (first, *second.split(2)[:1], *second.split(2)[1].split(1)):
        parts.add_gradients(part, len(part) / 8)
    difference = gradients(whole) - gradients(parts)
    assert difference.norm() < 2e-3 * gradients(whole).norm()  # fp16 has 11 bits


def test_small_gradients_survive_in_fp16_because_the_loss_is_scaled():
    made = make("fp16")
    with torch.no_grad():
        for p in made.parameters:
            p.mul_(0.05)  # the model's outputs become nearly uniform
    made.add_gradients(some_tokens(), 1.0)
    scaled = gradients(made)
    made.model.zero_grad()
    made.loss_scale.factor = 2.0**-12
    made.add_gradients(some_tokens(), 1.0)
    assert (gradients(made) == 0).sum() > 2 * (scaled == 0).sum()


@pytest.mark.parametrize("checkpointing", ["off", "on"])
def test_an_overflow_adds_nothing_counts_nothing_and_halves_the_scale(checkpointing):
    made = make("fp16", activation_checkpointing=checkpointing)
    made.add_gradients(some_tokens(), 1.0)
    before = gradients(made).clone()
    made.loss_scale.factor = 2.0**40
    value = made.add_gradients(some_tokens(seed=1), 1.0)
    assert math.isnan(value)
    assert torch.equal(gradients(made), before)
    assert made.gradients_finite()
    assert made.loss_scale.factor == 2.0**39
    while math.isnan(made.add_gradients(some_tokens(seed=1), 1.0)):
        assert torch.equal(gradients(made), before)
    assert 1.0 < made.loss_scale.factor < 2.0**30
    assert made.gradients_finite()
    assert not torch.equal(gradients(made), before)


def test_the_dry_run_finds_the_scale_before_anything_counts():
    made = make("fp16")
    made.loss_scale.factor = 2.0**40
    made.dry_run(64)
    after = made.loss_scale.factor
    assert after < 2.0**40


def test_the_scale_grows_after_many_good_micro_batches_in_a_row():
    scale, factors = LossScale(4.0, growth_after=3), []
    for finite in (True, True, False, True, True, True, True, True, True):
        scale.learn(finite=finite)
        factors.append(scale.factor)
    assert factors == [4, 4, 2, 2, 2, 4, 4, 4, 8]


def test_the_scale_stays_where_powers_of_two_are_exact():
    scale = LossScale(LARGEST_SCALE, growth_after=1)
    scale.learn(finite=True)
    assert scale.factor == LARGEST_SCALE
    scale.factor = LEAST_SCALE
    scale.learn(finite=False)
    assert scale.factor == LEAST_SCALE


def test_a_parameter_the_loss_does_not_touch_gets_no_gradient():
    used, unused = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
    assert add_gradients(used.sum(), 1.0, [used, unused], LossScale())
    assert unused.grad is None


def test_full_precision_is_left_alone():
    made = make("fp32")
    assert made.loss_scale is None
    assert not any(module._forward_pre_hooks for module in made.model.modules())
