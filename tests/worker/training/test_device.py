import time

import pytest
import torch

from english import in_english, raises
from skep.core.errors import DoesNotFit
from skep.worker.training.device import CPU, Threads, choose_precision, look, pick, why_not

ON_CPU = pytest.mark.skipif(torch.cuda.is_available(), reason="says what a computer without CUDA is told")


@ON_CPU
def test_without_a_gpu_the_processor_is_picked():
    picked = pick("", "auto")
    assert (picked.device, picked.name, picked.precision) == (CPU, "CPU", "fp32")


@ON_CPU
@pytest.mark.parametrize("wanted", ["cuda:0", "mps", "meta"])
def test_a_device_torch_cannot_use_is_refused_with_the_reason(wanted):
    with raises(DoesNotFit, match=f"Training cannot use {wanted}: "):
        pick(wanted, "auto")


def test_a_name_that_is_no_device_is_refused():
    with raises(DoesNotFit, match='"toaster" is not the name of a device'):
        pick("toaster", "auto")


@pytest.mark.skipif(torch.version.cuda is not None, reason="says what a build without CUDA is told")
def test_a_build_without_cuda_says_so():
    assert in_english(why_not(torch.device("cuda", 0), look())) == "this PyTorch was built without CUDA"


def test_fp32_stays_fp32():
    assert choose_precision("fp32", torch.device("cuda", 0), look()) == "fp32"
    assert choose_precision("auto", CPU, look()) == "fp32"


def test_on_the_processor_only_our_own_time_counts():
    device = pick("cpu", "auto")
    begun = device.stopwatch()
    time.sleep(0.2)
    assert device.stopwatch() - begun < 0.1


def test_ranks_on_the_processor_share_the_threads_and_take_those_of_a_lost_one():
    before, ranks = torch.get_num_threads(), [4]
    threads = Threads(0, cores=16, ranks=lambda: ranks[0])
    for count, expected in ((4, 2), (3, 2), (1, 8), (16, 1)):
        ranks[0] = count
        threads.use(present=False)
        assert torch.get_num_threads() == expected
    torch.set_num_threads(before)


@pytest.mark.parametrize(("wanted", "present", "count"), [(0, True, 2), (0, False, 8), (3, True, 3), (3, False, 3)])
def test_threads_are_what_was_asked_or_half_the_cores_and_few_while_somebody_is_there(wanted, present, count):
    before = torch.get_num_threads()
    Threads(wanted, cores=16).use(present=present)
    assert torch.get_num_threads() == count
    torch.set_num_threads(before)
