from manifests import lora, raw
from skep.core.fit import GB, Verdict, check, parameters_of, traffic_per_epoch
from skep.core.manifest import parse
from skep.core.model import Device, DeviceKind

BIG = {"recipe__model": {"type": "gpt2", "layers": 24, "heads": 16, "width": 2048, "vocabulary": 256}}


def gpu(gigabytes, **more):
    return Device(DeviceKind.NVIDIA, 0, "Example 4090", memory_total=gigabytes * GB, **more)


def judged(changes=None, devices=(), memory=16, disk=100):
    return check(parse(raw(**(changes or {}))), devices, memory=memory * GB, disk_free=disk * GB)


def test_a_small_project_fits():
    assert judged().verdict is Verdict.FITS


def test_what_the_project_says_it_needs_counts():
    fit = judged({"needs__memory_gb": 8}, memory=6)
    assert fit.verdict is Verdict.TOO_BIG
    assert fit.reasons == ("Too big: needs 8.0 GB of memory, you have 6.0 GB.",)


def test_what_the_model_needs_counts_even_if_the_project_understates_it():
    count = parameters_of(parse(raw(**BIG)))
    assert count > 1_000_000_000
    fit = judged(BIG | {"needs__memory_gb": 1, "needs__vram_gb": 1}, devices=[gpu(8)], memory=64)
    assert fit.verdict is Verdict.TOO_BIG
    assert fit.reasons == ("Too big: needs 9.7 GB of memory on Example 4090, you have 8.0 GB.",)


def test_on_the_processor_the_model_and_what_trains_it_share_the_memory():
    count = parameters_of(parse(raw(**BIG)))
    needed = 700_000_000 + 44 * count
    assert judged(BIG, memory=needed / GB).verdict is Verdict.FITS_GENTLY
    assert judged(BIG, memory=(needed - 1) / GB).verdict is Verdict.TOO_BIG


def test_two_amounts_that_round_alike_are_told_apart():
    fit = judged({"needs__memory_gb": 8.04}, memory=8.01)
    assert fit.reasons == ("Too big: needs 8.040 GB of memory, you have 8.010 GB.",)


def test_everything_that_is_too_small_is_named():
    fit = judged({"needs__memory_gb": 8, "needs__vram_gb": 12, "needs__disk_gb": 50}, [gpu(8)], memory=4, disk=20)
    assert [reason.split(",")[0] for reason in fit.reasons] == [
        "Too big: needs 50 GB of disk space",
        "Too big: needs 8.0 GB of memory",
        "Too big: needs 12 GB of memory on Example 4090",
    ]


def test_of_two_gpus_the_larger_counts():
    assert judged({"needs__vram_gb": 10}, [gpu(8), gpu(24)]).verdict is Verdict.FITS


def test_a_tight_fit_is_said():
    fit = judged({"needs__memory_gb": 13}, memory=16)
    assert fit.verdict is Verdict.FITS_GENTLY
    assert fit.reasons == ("It needs 13 GB of memory, and you have 16 GB.",)


def test_too_little_disk_is_named():
    assert judged({"needs__disk_gb": 50}, disk=20).reasons == ("Too big: needs 50 GB of disk space, you have 20 GB.",)


def test_a_gpu_that_cannot_be_used_does_not_count():
    broken = gpu(24, unusable="no driver is loaded")
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
    assert fit.reasons == (f"Too big: needs {needed:.0f} GB of memory on Example 4090, you have 24 GB.",)
    assert traffic_per_epoch(parse(raw(**changes))).up == 2 * (2 + 2) * adapters
    assert judged(changes, memory=64, disk=12).reasons == ("Too big: needs 13 GB of disk space, you have 12 GB.",)


def test_compression_halves_the_traffic():
    plain = traffic_per_epoch(parse(raw(sync__grad_compression="none", sync__state_compression="none")))
    half = traffic_per_epoch(parse(raw()))
    assert half.up * 2 == plain.up
    rarer = traffic_per_epoch(parse(raw(sync__average_state_every=2)))
    assert rarer.up < half.up
