"""Which device is picked on simulated computers, and the messages that refuse the others."""

import os
import time
import warnings

import pytest
import torch

from english import in_english, raises
from skep.core.errors import DoesNotFit
from skep.core.text import NOTHING, Text
from skep.worker.training import device
from skep.worker.training.device import Gpu, TorchFacts

CUDA = torch.device("cuda", 0)
OLD = Gpu("Old card", 8 << 30, bf16=False)
NEW = Gpu("New card", 24 << 30, bf16=True)
TWO_GPUS = TorchFacts(toolkit="CUDA 12.8", gpus=(OLD, NEW))
NO_CUDA = TorchFacts()


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def picked_on_trial(wanted, precision, facts, **failures):
    """The picked device if the trial computations fail as in `failures`; a test machine lacks the GPUs for it."""
    return device.pick(wanted, precision, facts, lambda each: failures.get(each.type + str(each.index), NOTHING))


FULL = Text("device.memory_full")


def test_the_processor_can_always_be_wanted():
    picked = device.pick("cpu", "auto", TWO_GPUS)
    assert (picked.device, picked.name, picked.precision) == (device.CPU, "CPU", "fp32")


def test_without_a_gpu_the_best_device_is_the_processor():
    assert device.pick("", "auto", NO_CUDA).device == device.CPU


def test_the_best_gpu_is_the_one_with_the_most_memory():
    picked = picked_on_trial("", "auto", TWO_GPUS)
    assert (str(picked.device), picked.name, picked.precision) == ("cuda:1", "New card", "bf16")


def test_a_gpu_that_fails_its_first_computation_is_passed_over():
    assert picked_on_trial("", "auto", TWO_GPUS, cuda1=FULL).name == "Old card"
    assert picked_on_trial("", "auto", TWO_GPUS, cuda1=FULL, cuda0=FULL).device == device.CPU


def test_a_mac_trains_on_its_gpu():
    picked = picked_on_trial("", "auto", TorchFacts(mps_built=True, mps_available=True))
    assert (picked.device.type, picked.name, picked.precision) == ("mps", "Apple GPU", "fp32")


@pytest.mark.parametrize(
    ("wanted", "facts", "words"),
    [
        ("cuda:0", NO_CUDA, "this PyTorch was built without CUDA"),
        ("cuda:0", TorchFacts(toolkit="CUDA 12.8"), "this PyTorch is built for CUDA 12.8 and finds no working GPU"),
        (
            "cuda:0",
            TorchFacts(toolkit="CUDA 12.8", complaint="The NVIDIA driver on your system is too old"),
            "CUDA 12.8 does not start (The NVIDIA driver on your system is too old)",
        ),
        ("cuda:1", TorchFacts(toolkit="ROCm 6.4", gpus=(OLD,)), "there is only one GPU"),
        ("cuda:2", TWO_GPUS, "there are only 2 GPUs"),
        ("mps", NO_CUDA, "this PyTorch was built without Apple GPU support"),
        ("mps", TorchFacts(mps_built=True), "this Mac or its macOS does not offer its GPU to PyTorch"),
        ("meta", TWO_GPUS, "skep does not know this kind of device"),
    ],
)
def test_a_wanted_device_is_refused_with_the_reason(wanted, facts, words):
    with pytest.raises(DoesNotFit) as caught:
        device.pick(wanted, "auto", facts)
    assert in_english(caught.value.title) == f"Training cannot use {wanted}: {words}."
    assert in_english(caught.value.hint) == "Choose another in the setting compute.device, or leave it empty."
    assert caught.value.remedy == "setting:compute.device"


def test_a_wanted_gpu_that_does_not_compute_is_refused_not_replaced():
    with raises(DoesNotFit, match="Training cannot use cuda:0: its memory is full"):
        picked_on_trial("cuda:0", "auto", TWO_GPUS, cuda0=FULL)


@pytest.mark.parametrize("wanted", ["gpu", "cuda:x", "cuda:-1", "the fast one", "\x00"])
def test_a_name_that_names_no_device_is_refused(wanted):
    with raises(DoesNotFit, match="is not the name of a device") as caught:
        device.pick(wanted, "auto", TWO_GPUS)
    assert "cuda:0" in in_english(caught.value.hint)


TURING = Gpu("Turing card", 6 << 30, bf16=False, quick_fp16=True)
THREE_GPUS = TorchFacts(toolkit="CUDA 12.8", gpus=(OLD, NEW, TURING))
MPS = torch.device("mps")


@pytest.mark.parametrize(
    ("wanted", "on", "expected"),
    [
        ("auto", torch.device("cuda", 0), "fp32"),
        ("auto", torch.device("cuda", 1), "bf16"),
        ("auto", torch.device("cuda", 2), "fp16"),
        ("auto", device.CPU, "fp32"),
        ("auto", MPS, "fp32"),
        *((each, torch.device("cuda", 1), each) for each in ("fp32", "bf16", "fp16")),
        *((each, device.CPU, each) for each in ("fp32", "bf16", "fp16")),
        ("fp16", torch.device("cuda", 0), "fp16"),
        ("fp16", MPS, "fp16"),
    ],
)
def test_a_precision_is_taken_as_named_and_auto_by_the_device(wanted, on, expected):
    assert device.choose_precision(wanted, on, THREE_GPUS) == expected


@pytest.mark.parametrize(
    ("on", "facts", "name"),
    [
        (CUDA, THREE_GPUS, "Old card"),
        (torch.device("cuda", 2), THREE_GPUS, "Turing card"),
        (MPS, TorchFacts(mps_built=True, mps_available=True), "Apple GPU"),
    ],
)
def test_a_precision_that_a_device_lacks_is_refused_in_one_sentence(on, facts, name):
    with pytest.raises(DoesNotFit) as caught:
        device.choose_precision("bf16", on, facts)
    assert in_english(caught.value.title) == f"This project computes in bf16, which {name} does not support."
    choice = "Choose another project, or choose the processor in the setting compute.device, which is slow."
    assert in_english(caught.value.hint) == choice
    assert caught.value.remedy == "setting:compute.device"


def test_a_newer_mac_computes_in_bf16():
    assert device.choose_precision("bf16", MPS, TorchFacts(mps_available=True, mps_bf16=True)) == "bf16"


def test_of_two_gpus_the_one_that_has_the_precision_is_picked():
    large = Gpu("Large old card", 48 << 30, bf16=False)
    facts = TorchFacts(toolkit="CUDA 12.8", gpus=(large, NEW))
    assert picked_on_trial("", "bf16", facts).name == "New card"
    assert picked_on_trial("", "fp16", facts).name == "Large old card"
    with raises(DoesNotFit, match="Large old card does not support"):
        picked_on_trial("cuda:0", "bf16", facts)


def test_the_first_computation_works_on_the_processor():
    assert not device.try_out(device.CPU)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 MiB"), "its memory is full"),
        (
            RuntimeError("CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors"),
            "this PyTorch was not built for this model of card",
        ),
        (RuntimeError("CUDA error: unknown error\nFor debugging"), "CUDA error: unknown error"),
        (RuntimeError(), "PyTorch gives no reason"),
    ],
)
def test_a_failed_first_computation_is_told_in_one_phrase(error, words):
    assert in_english(device.failure_words(error)) == words


def test_what_torch_complains_about_is_kept_as_one_sentence(monkeypatch):
    def complain():
        warnings.warn("CUDA initialization: The driver is too old\n(found 11040). Please update it.", stacklevel=1)
        return False

    monkeypatch.setattr(torch.cuda, "is_available", complain)
    assert device.look().complaint == "CUDA initialization: The driver is too old (found 11040)"


def test_cards_are_numbered_as_the_engine_lists_them(monkeypatch):
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "")  # so that it is restored afterwards
    del os.environ["CUDA_DEVICE_ORDER"]
    device.look()
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


@pytest.mark.parametrize(
    ("physical", "allowed", "expected"), [(8, 16, 4), (2, 4, 1), (1, 2, 1), (None, 1, 1), (64, 4, 2)]
)
def test_automatic_threads_are_half_the_cores_this_process_may_use(monkeypatch, threads, physical, allowed, expected):
    monkeypatch.setattr(device.psutil, "cpu_count", lambda logical=True: physical)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(allowed)), raising=False)
    device.Threads(0).use(present=False)
    assert torch.get_num_threads() == expected


@pytest.mark.parametrize(("cores", "away", "present"), [(1, 1, 1), (2, 1, 1), (8, 4, 1), (16, 8, 2), (64, 32, 8)])
def test_automatic_threads_are_fewer_while_somebody_uses_the_computer(threads, cores, away, present):
    chosen = device.Threads(0, cores)
    chosen.use(present=True)
    assert torch.get_num_threads() == present
    chosen.use(present=False)
    assert torch.get_num_threads() == away


@pytest.mark.parametrize("present", [True, False])
def test_asked_threads_are_taken_as_asked(threads, present):
    device.Threads(3).use(present=present)
    assert torch.get_num_threads() == 3


def test_a_gpu_is_timed_by_the_clock_on_the_wall():
    watch = device.TrainingDevice(CUDA, "New card", "fp32").stopwatch
    begun = watch()
    time.sleep(0.02)
    assert watch() - begun > 0.015
