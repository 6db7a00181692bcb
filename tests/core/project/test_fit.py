from collections import Counter
from dataclasses import replace

import pytest

from english import in_english
from manifests import lora, raw
from skep.core.device import Device, DeviceKind
from skep.core.project.fit import Fit, Verdict, check, least_rate, limited
from skep.core.project.manifest import PowerSGD
from skep.core.project.needs import GB, device_bytes, host_bytes, optimizer_bytes, parameters_of, traffic_per_epoch
from skep.core.project.sent import gradient_bytes
from skep.core.text import verbatim
from skep.core.traffic import MBIT, Caps
from skep.recipes.registry import parse_manifest

BIG = {"recipe__model": {"type": "gpt2", "layers": 24, "heads": 16, "width": 2048, "vocabulary": 256}}


def gpu(gigabytes, **more):
    return Device(DeviceKind.NVIDIA, 0, "Example 4090", memory_total=gigabytes * GB, **more)


def judged(changes=None, devices=(), memory=16, disk=100):
    return check(parse_manifest(raw(**(changes or {}))), devices, memory=memory * GB, disk_free=disk * GB)


def test_a_small_project_fits():
    assert judged().verdict is Verdict.FITS


def test_what_the_project_says_it_needs_counts():
    fit = judged({"needs__memory_gb": 8}, memory=6)
    assert fit.verdict is Verdict.TOO_BIG
    assert in_english(fit.reasons) == ("Too big: needs 8.0 GB of memory, you have 6.0 GB.",)


def test_what_the_model_needs_counts_even_if_the_project_understates_it():
    count = parameters_of(parse_manifest(raw(**BIG)))
    assert count > 1_000_000_000
    fit = judged(BIG | {"needs__memory_gb": 1, "needs__vram_gb": 1}, devices=[gpu(8)], memory=64)
    assert fit.verdict is Verdict.TOO_BIG
    assert in_english(fit.reasons) == ("Too big: needs 9.7 GB of memory on Example 4090, you have 8.0 GB.",)


def test_on_the_processor_the_model_and_what_trains_it_share_the_memory():
    count = parameters_of(parse_manifest(raw(**BIG)))
    needed = 700_000_000 + 44 * count
    assert judged(BIG, memory=needed / GB).verdict is Verdict.FITS_GENTLY
    assert judged(BIG, memory=(needed - 1) / GB).verdict is Verdict.TOO_BIG


def test_two_amounts_that_round_alike_are_told_apart():
    fit = judged({"needs__memory_gb": 8.04}, memory=8.01)
    assert in_english(fit.reasons) == ("Too big: needs 8.040 GB of memory, you have 8.010 GB.",)


def test_everything_that_is_too_small_is_named():
    fit = judged({"needs__memory_gb": 8, "needs__vram_gb": 12, "needs__disk_gb": 50}, [gpu(8)], memory=4, disk=20)
    assert [reason.split(",")[0] for reason in in_english(fit.reasons)] == [
        "Too big: needs 50 GB of disk space",
        "Too big: needs 8.0 GB of memory",
        "Too big: needs 12 GB of memory on Example 4090",
    ]


def test_of_two_gpus_the_larger_counts():
    assert judged({"needs__vram_gb": 10}, [gpu(8), gpu(24)]).verdict is Verdict.FITS


def test_a_tight_fit_is_said():
    fit = judged({"needs__memory_gb": 13}, memory=16)
    assert fit.verdict is Verdict.FITS_GENTLY
    assert in_english(fit.reasons) == ("It needs 13 GB of memory, and you have 16 GB.",)


def test_too_little_disk_is_named():
    assert in_english(judged({"needs__disk_gb": 50}, disk=20).reasons) == (
        "Too big: needs 50 GB of disk space, you have 20 GB.",
    )


def test_a_gpu_that_cannot_be_used_does_not_count():
    broken = gpu(24, unusable=verbatim("no driver is loaded"))
    assert judged({"needs__vram_gb": 20}, devices=[broken]).verdict is Verdict.FITS


def test_a_gpu_of_unknown_memory_is_not_guessed_at():
    unknown = Device(DeviceKind.AMD, 0, "Example XT")
    assert judged({"needs__vram_gb": 20}, devices=[unknown]).verdict is Verdict.FITS


def test_a_frozen_base_takes_memory_and_disk_but_no_traffic():
    changes = {"recipe": lora(layers=32, heads=32, width=4096, vocabulary=32000, feed_forward=11008)}
    base = 6_738_415_616 - 32000 * 4096
    fit = judged(changes, devices=[gpu(24)], memory=64)
    assert fit.verdict is Verdict.TOO_BIG
    adapters = 32 * 8 * 2 * (4096 + 4096)
    needed = (4 * base + 8 * adapters) / GB
    assert in_english(fit.reasons) == (f"Too big: needs {needed:.0f} GB of memory on Example 4090, you have 24 GB.",)
    assert traffic_per_epoch(parse_manifest(raw(**changes))) == 2 * (2 + 2) * adapters
    assert in_english(judged(changes, memory=64, disk=12).reasons) == (
        "Too big: needs 13 GB of disk space, you have 12 GB.",
    )


@pytest.mark.parametrize(
    ("changes", "device", "host"),
    [
        ({}, 8, 16),
        ({"reuse_grad_buffers": False}, 12, 16),
        ({"offload_optimizer": False, "delay_optimizer_step": False}, 16, 8),
        ({"offload_optimizer": False, "delay_optimizer_step": False, "reuse_grad_buffers": False}, 20, 8),
        ({"powersgd": {"rank": 4, "min_compression_ratio": 0.5}}, 8, 20),
    ],
)
def test_bytes_per_parameter_follow_the_flags(changes, device, host):
    manifest = parse_manifest(raw(**{f"sync__{name}": value for name, value in changes.items()}))
    assert (device_bytes(manifest), host_bytes(manifest)) == (device, host)


@pytest.mark.parametrize(
    ("precision", "bf16", "extra"),
    [
        ("fp16", True, 4),
        ("fp16", None, 4),
        ("auto", False, 4),
        ("auto", True, 0),
        ("auto", None, 0),
        ("bf16", False, 0),
        ("fp32", False, 0),
    ],
)
def test_in_fp16_a_second_set_of_gradients_is_on_the_device(precision, bf16, extra):
    manifest = parse_manifest(raw(precision=precision))
    assert device_bytes(manifest, replace(gpu(24), bf16=bf16)) == 8 + extra
    assert device_bytes(manifest) == (12 if precision == "fp16" else 8)


@pytest.mark.parametrize(
    ("name", "betas", "count"), [("adamw", [0, 0], 8), ("lamb", [0, 0], 8), ("sgd", [0.9, 0], 4), ("sgd", [0, 0.9], 0)]
)
def test_an_optimizer_keeps_what_it_needs(name, betas, count):
    assert optimizer_bytes(parse_manifest(raw(optimizer__name=name, optimizer__betas=betas)).optimizer) == count


def gradients_alone(**sync):
    """Bytes of one set of the example's gradients: 12 layers' matrices of 256 x 256 each, and more."""
    manifest = parse_manifest(raw(**{f"sync__{name}": value for name, value in sync.items()}))
    return gradient_bytes(manifest.sync, manifest.recipe.trained)


def test_each_compression_has_its_bytes():
    count = parameters_of(parse_manifest(raw()))
    assert gradients_alone(grad_compression="none") == 4 * count
    assert gradients_alone(grad_compression="scaled-float16") == 2 * count
    assert gradients_alone(grad_compression="uniform-8bit") == count


def test_the_threshold_of_size_adaptive_compression_is_the_first_large_size():
    large = 4 * (3 + 1 + 4 + 4) * 256 * 256 + 2 * 256 * 256
    small = parameters_of(parse_manifest(raw())) - large
    assert gradients_alone(grad_compression="size-adaptive", size_adaptive_threshold=65536) == large + 2 * small
    assert gradients_alone(grad_compression="size-adaptive", size_adaptive_threshold=2**30) == 2 * (large + small)


def test_powersgd_sends_two_thin_matrices_for_each_that_saves_enough():
    shape, power = (100, 300), PowerSGD(rank=3, min_compression_ratio=0.95)
    sync = replace(parse_manifest(raw()).sync, powersgd=power, grad_compression="float16")
    thin = 3 * 100 * 4 + 3 * 300 * 2
    assert gradient_bytes(sync, Counter({shape: 2, (7,): 1})) == 2 * thin + 7 * 2
    stricter = replace(sync, powersgd=replace(power, min_compression_ratio=0.97))
    assert gradient_bytes(stricter, Counter({shape: 2})) == 2 * 100 * 300 * 2


def test_compression_halves_the_traffic():
    plain = traffic_per_epoch(parse_manifest(raw(sync__grad_compression="none", sync__state_compression="none")))
    half = traffic_per_epoch(parse_manifest(raw()))
    assert half * 2 == plain
    rarer = traffic_per_epoch(parse_manifest(raw(sync__average_state_every=2)))
    assert rarer < half


def test_the_least_rate_lets_a_round_of_four_end_and_no_groupmate_wait_too_long():
    plan = parse_manifest(raw())
    gradients = gradient_bytes(plan.sync, plan.recipe.trained)
    assert least_rate(plan) == pytest.approx(6 * 512 * 1024 / 5)  # the example has parts for each groupmate in 5 s
    slow = parse_manifest(raw(sync__averaging_timeout_seconds=6))
    assert least_rate(slow) == pytest.approx(2 * 0.75 * gradients / (6 - 5))


def test_a_limit_below_it_is_a_reason_and_one_above_is_none():
    plan, fits = parse_manifest(raw()), Fit(Verdict.FITS)
    least = least_rate(plan)
    assert limited(fits, plan, Caps()) == limited(fits, plan, Caps(least, least)) == fits
    found = limited(fits, plan, Caps(0.0, MBIT))
    assert found.verdict is Verdict.FITS_GENTLY
    (reason,) = map(in_english, found.reasons)
    assert reason.startswith("With network.download_mbit at 1 Mbit/s, rounds are likely to fail before they end")
    assert reason.endswith("; 6 Mbit/s are enough among four computers.")
    both = limited(Fit(Verdict.TOO_BIG, (verbatim("x"),)), plan, Caps(1.0, 1.0))
    assert (both.verdict, len(both.reasons)) == (Verdict.TOO_BIG, 3)
