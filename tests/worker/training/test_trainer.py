import pytest
import torch

from english import raises
from manifests import raw
from skep.core.errors import DoesNotFit
from skep.core.project.needs import parameters_of
from skep.recipes.registry import parse_manifest
from skep.recipes.tensors.batches import text_batch
from skep.worker.training.device import pick
from skep.worker.training.device_errors import as_does_not_fit
from skep.worker.training.trainer import DRY_RUNS, Trainer, step_batch_for

SMALL = {"recipe__sequence_length": 16}
GPT2 = {"type": "gpt2", "layers": 2, "heads": 2, "width": 16, "vocabulary": 256}
LLAMA = GPT2 | {"type": "llama"}


def make(model=GPT2, kind=Trainer, **changes):
    manifest = parse_manifest(raw(recipe__model=model, **(SMALL | changes)))
    return kind(manifest, pick("cpu", manifest.precision)), manifest


@pytest.mark.parametrize("model", [GPT2, LLAMA])
def test_the_estimate_of_parameters_is_exact(model):
    made, manifest = make(model)
    assert sum(p.numel() for p in made.parameters) == parameters_of(manifest)


@pytest.mark.parametrize("model", [GPT2, LLAMA])
def test_the_same_seed_gives_the_same_parameters_and_another_seed_others(model):
    first, again, other = (make(model, recipe__seed=seed)[0] for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters, again.parameters, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first.parameters, other.parameters, strict=True))


def gradients(made):
    return torch.cat([p.grad.flatten() for p in made.parameters])


def test_micro_batches_add_up_to_the_step_batch_exactly():
    batch = text_batch(torch.randint(256, (8, 16)))
    whole, parts = make()[0], make()[0]
    whole.add_gradients(batch, 1.0)
    for start, size in ((0, 4), (4, 2), (6, 1), (7, 1)):
        parts.add_gradients(text_batch(batch.inputs[start : start + size]), size / 8)
    assert torch.allclose(gradients(whole), gradients(parts), atol=1e-7)


def test_a_loss_that_is_not_finite_adds_nothing():
    made, _ = make()
    batch = text_batch(torch.randint(256, (2, 16)))
    made.add_gradients(batch, 1.0)
    before = gradients(made).clone()
    weights = [p.detach().clone() for p in made.parameters]
    with torch.no_grad():
        made.parameters[0].fill_(float("nan"))
    assert not torch.isfinite(torch.tensor(made.add_gradients(batch, 1.0)))
    assert torch.equal(gradients(made), before)
    assert made.gradients_finite()
    with torch.no_grad():
        made.parameters[0].copy_(weights[0])


def test_gradients_that_are_not_finite_are_noticed():
    made, _ = make()
    made.add_gradients(text_batch(torch.randint(256, (2, 16))), 1.0)
    assert made.gradients_finite()
    made.parameters[-1].grad[0] = float("inf")
    assert not made.gradients_finite()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_parameters_that_are_not_finite_are_noticed(number):
    made, _ = make()
    assert made.parameters_finite()
    with torch.no_grad():
        made.parameters[-1].view(-1)[-1] = number
    assert not made.parameters_finite()


def test_gradients_that_were_measured_are_measured_again_after_others_were_added():
    made, _ = make()
    batch = text_batch(torch.randint(256, (2, 16)))
    made.meanwhile = made.measure_gradients
    made.add_gradients(batch, 1.0)
    made.parameters[-1].grad[0] = float("inf")
    assert made.gradients_finite()  # as they were when they were measured
    assert not made.gradients_finite()
    made.measure_gradients()
    made.meanwhile = lambda: None
    made.parameters[-1].grad[0] = 0.0
    made.add_gradients(batch, 1.0)
    assert made.gradients_finite()


@pytest.mark.parametrize(("target", "batch"), [(2, 1), (64, 1), (512, 8), (1000, 8), (1024, 16), (10**6, 256)])
def test_the_step_batch_is_a_small_part_of_the_target(target, batch):
    assert step_batch_for(target) == batch


class Scarce(Trainer):
    """For the dry run: at most `fitting` samples fit on the device; a micro-batch may take `away_seconds`."""

    fitting, away_seconds, kind = 10**6, 60.0, "cpu"

    def __init__(self, *args):
        super().__init__(*args)
        self.tried = []

    def add_gradients(self, batch, scale):
        self.tried.append(len(batch))
        if len(batch) > self.fitting:
            raise torch.OutOfMemoryError
        return 1.0


class Timed(Trainer):
    """`takes` has the seconds of each attempt for each size; the last one is repeated."""

    def __init__(self, *args):
        super().__init__(*args)
        self.takes = {}

    def _try(self, size, bound):
        seconds = self.takes[size]
        return seconds.pop(0) if len(seconds) > 1 else seconds[0]


def scarce(fitting=10**6, away_seconds=60.0, **changes):
    made, _ = make(kind=Scarce, **changes)
    made.fitting, made.away_seconds = fitting, away_seconds
    return made


def timed(takes):
    made, _ = make(kind=Timed)
    made.takes = takes
    return made


def test_the_dry_run_stops_where_memory_does():
    found = scarce(fitting=3).dry_run(16)
    assert (list(found.seconds), found.limit) == ([1, 2], 2)


def test_the_dry_run_never_exceeds_the_step_batch():
    found = scarce().dry_run(8)
    assert (list(found.seconds), found.limit) == ([1, 2, 4, 8], 8)


def test_the_dry_run_stops_where_a_pause_would_have_to_wait():
    found = scarce(away_seconds=-1.0).dry_run(16)
    assert (list(found.seconds), found.limit) == ([1], 16)


@pytest.mark.parametrize(("away_seconds", "tries"), [(60.0, DRY_RUNS), (-1.0, 1)])
def test_what_takes_far_too_long_is_tried_once(away_seconds, tries):
    made = scarce(away_seconds=away_seconds)
    made.dry_run(1)
    assert made.tried == [1] * tries


def test_the_first_micro_batch_of_a_gpu_is_tried_twice_since_it_loads_kernels():
    made = scarce(away_seconds=-1.0)
    made.kind = "cuda"
    made.dry_run(1)
    assert made.tried == [1] * DRY_RUNS


@pytest.mark.parametrize(("of_four", "tried"), [(0.13, [1, 2, 4, 8]), (0.18, [1, 2, 4])])
def test_what_will_surely_take_too_long_is_not_tried(of_four, tried):
    found = timed({1: [0.06], 2: [0.1], 4: [of_four], 8: [0.21]}).dry_run(16)
    assert (list(found.seconds), found.limit) == (tried, 16)


def test_what_took_surprisingly_long_is_tried_again():
    made = timed({1: [0.04], 2: [0.09, 0.07], 4: [0.13, 0.01]})
    assert made.dry_run(4).seconds == {1: 0.04, 2: 0.07, 4: 0.13}


def test_the_dry_run_stops_where_other_programs_need_the_memory():
    made = scarce()
    assert made.dry_run(16, enough=lambda: 4 not in made.tried).limit == 4
    assert made.dry_run(16, enough=lambda: False).limit == 1  # one sample is always tried


def test_what_does_not_fit_at_all_is_refused_after_recomputing_was_tried():
    made = scarce(fitting=0)
    with raises(DoesNotFit, match="Not even one sample of Tiny code model fits into the memory of CPU"):
        made.dry_run(16)
    assert made.tried == [1, 1]
    assert made.checkpointing


def test_recomputing_is_left_off_when_the_manifest_says_so():
    made = scarce(fitting=0, activation_checkpointing="off")
    with pytest.raises(DoesNotFit):
        made.dry_run(16)
    assert made.tried == [1]
    assert not made.checkpointing


def test_a_model_that_memory_cannot_hold_is_refused_in_words():
    with (
        raises(DoesNotFit, match="Huge model does not fit into the memory of CPU"),
        as_does_not_fit("Huge model", "CPU"),
    ):
        torch.empty(2**58)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError(), MemoryError(), OSError(12, "Cannot allocate memory")])
def test_whoever_lacks_memory_the_words_are_the_same(error):
    with pytest.raises(DoesNotFit), as_does_not_fit("Huge model", "CPU"):
        raise error


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), FileNotFoundError("gone")])
def test_other_errors_are_not_called_a_lack_of_memory(error):
    with pytest.raises(type(error)), as_does_not_fit("Huge model", "CPU"):
        raise error


@pytest.mark.parametrize("model", [GPT2, LLAMA])
def test_recomputing_changes_memory_and_not_gradients(model):
    batch = text_batch(torch.randint(256, (4, 16)))
    plain, saving = make(model, activation_checkpointing="off")[0], make(model, activation_checkpointing="on")[0]
    assert saving.checkpointing
    assert saving.model.is_activation_checkpointing
    plain.add_gradients(batch, 1.0)
    saving.add_gradients(batch, 1.0)
    assert torch.allclose(gradients(plain), gradients(saving), atol=1e-6)


def test_held_out_loss_makes_no_gradients():
    made, _ = make()
    loss = made.loss(text_batch(torch.randint(256, (4, 16))))
    assert 4.0 < loss < 7.0
    assert all(p.grad is None for p in made.parameters)
