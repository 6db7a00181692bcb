"""Which devices compute, and whether they share one model, on simulated computers; they are looked at in a real fork."""

import os
from unittest import mock

import pytest

from english import in_english
from manifests import raw
from skep.core.device import Device, DeviceKind
from skep.core.errors import DoesNotFit
from skep.core.session.messages import WorkerOptions
from skep.core.text import NOTHING, Text
from skep.recipes.registry import parse_manifest
from skep.worker import joining
from skep.worker.process import processes
from skep.worker.ranks import choice
from skep.worker.ranks.choice import Choice, Found, devices_of
from skep.worker.ranks.others import Others
from skep.worker.training.device import Gpu, TorchFacts

OLD = Gpu("Old card", 8 << 30, bf16=False)
QUICK = Gpu("Quick card", 12 << 30, bf16=False, quick_fp16=True)
NEW = Gpu("New card", 24 << 30, bf16=True)
SMALL = Gpu("New card", 16 << 30, bf16=True)
FULL = Text("device.memory_full")
PLAN = parse_manifest(raw(needs__vram_gb=12))
"""A copy has to have 12 GB; of N cards that share the model each 12/N."""


@pytest.fixture(autouse=True)
def forks():
    processes.use_fork()


@pytest.fixture
def cards(monkeypatch):
    def cards(**gigabytes):
        """Cards by torch's name, with an underscore for the colon."""
        found = {
            name.replace("_", ":"): Device(DeviceKind.NVIDIA, index, name, memory_total=int(size * 1e9))
            for index, (name, size) in enumerate(gigabytes.items())
        }
        look_at = lambda names, _: Found(tuple((name, found[name]) for name in (found if names == ("all",) else names)))  # noqa: E731
        monkeypatch.setattr(choice, "look_at", look_at)

    return cards


@pytest.fixture
def computer(monkeypatch):
    """Has these cards; those of `failing` fail their first computation."""

    def computer(*cards, failing=()):
        monkeypatch.setattr(choice, "look", lambda: TorchFacts(toolkit="CUDA 12.8", gpus=cards))
        monkeypatch.setattr(choice, "try_out", lambda card: FULL if str(card) in failing else NOTHING)

    return computer


def names(found):
    return tuple(name for name, _ in found.devices)


def said(notices):
    return [f"{in_english(each.title)} {in_english(each.hint)}" for each in notices]


@pytest.mark.parametrize(
    ("cards", "precision", "usable", "without"),
    [
        ((NEW, SMALL), "auto", ("cuda:0", "cuda:1"), []),
        ((SMALL, NEW), "auto", ("cuda:1", "cuda:0"), []),
        ((NEW, OLD, SMALL), "auto", ("cuda:0", "cuda:2"), ["Old card (cuda:1)"]),
        ((NEW, OLD, SMALL), "fp32", ("cuda:0", "cuda:2", "cuda:1"), []),
        ((NEW, OLD, SMALL), "bf16", ("cuda:0", "cuda:2"), ["Old card (cuda:1)"]),
        ((NEW, OLD), "auto", (), ["Old card (cuda:1)"]),
        ((QUICK, OLD), "auto", ("cuda:0", "cuda:1"), []),
        ((NEW,), "auto", (), []),
        ((), "auto", (), []),
    ],
)
def test_all_cards_that_have_the_precision_of_the_best_compute(computer, cards, precision, usable, without):
    computer(*cards)
    found = choice.look_at(["all"], precision)
    assert names(found) == usable
    assert [in_english(each.title) for each in found.notices] == [
        f"Training goes on without {each}." for each in without
    ]


def test_a_card_that_fails_is_left_out_and_does_not_decide_the_precision(computer):
    computer(OLD, NEW, OLD, failing=["cuda:1"])
    found = choice.look_at(["all"], "auto")
    assert names(found) == ("cuda:0", "cuda:2")
    assert said(found.notices) == [
        "Training goes on without New card (cuda:1). Training cannot use cuda:1: its memory is full."
    ]


def test_all_is_found_out_in_another_process_and_what_is_left_out_is_told(computer):
    computer(NEW, OLD, SMALL)
    told = []
    assert devices_of("all", PLAN, told.append) == Choice(("cuda:0", "cuda:2"))
    (words,) = said(told)
    assert words == (
        "Training goes on without Old card (cuda:1). "
        "This project computes in bf16, which Old card (cuda:1) does not support."
    )


@pytest.mark.parametrize(
    ("cards", "failing", "precision", "listed", "usable", "without"),
    [
        ((NEW, SMALL), (), "auto", "cuda:1,cuda:0", ("cuda:1", "cuda:0"), []),
        ((NEW, OLD, SMALL), (), "auto", "cuda:0,cuda:1,cuda:2", ("cuda:0", "cuda:2"), ["Old card (cuda:1)"]),
        ((NEW, OLD), (), "auto", "cuda:1,cuda:0", ("cuda:1", "cuda:0"), []),
        ((NEW, OLD), (), "bf16", "cuda:1,cuda:0", ("cuda:0",), ["Old card (cuda:1)"]),
        ((NEW, SMALL), ("cuda:0",), "auto", "cuda:0,cuda:1", ("cuda:1",), ["New card (cuda:0)"]),
        ((NEW, SMALL), (), "auto", "cuda:0,cuda:5,cuda:1", ("cuda:0", "cuda:1"), ["cuda:5"]),
        ((OLD, OLD), (), "bf16", "cuda:0,cuda:1", ("cuda:0", "cuda:1"), []),
    ],
)
def test_cards_of_a_list_that_cannot_compute_are_left_out_unless_none_can(
    computer, cards, failing, precision, listed, usable, without
):
    computer(*cards, failing=failing)
    found = choice.look_at(listed.split(","), precision)
    assert names(found) == usable
    assert [in_english(each.title) for each in found.notices] == [
        f"Training goes on without {each}." for each in without
    ]


def test_only_cards_that_can_compute_are_counted_together(computer):
    computer(NEW, OLD, NEW)
    plan = parse_manifest(raw(needs__vram_gb=40))
    told = []
    assert devices_of("cuda:0,cuda:1,cuda:2", plan, told.append) == Choice(("cuda:0", "cuda:2"), sharded=True)
    assert len(told) == 1


@pytest.mark.parametrize("cards", [(), (NEW,)])
def test_it_is_told_that_all_is_one_device(computer, cards):
    computer(*cards)
    told = []
    assert devices_of("all", PLAN, told.append) == Choice(("",))
    assert [in_english(each.title) for each in told] == [
        "One device trains: there are no two graphics cards here that can train this project together."
    ]


def test_a_driver_that_ends_or_hangs_the_other_process_costs_the_choice_only(monkeypatch):
    monkeypatch.setattr(choice, "look", lambda: os._exit(1))
    assert choice._in_a_fork(["all"], "auto") == Found()
    monkeypatch.setattr(choice, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(choice, "look", lambda: os.read(os.pipe()[0], 1))
    assert choice._in_a_fork(["all"], "auto") == Found()


def test_parameters_of_nccl_are_set_unless_nccl_chooses(monkeypatch):
    for name in choice.NCCL:
        monkeypatch.delenv(name, raising=False)
    choice.set_nccl((0, 0, 0))
    assert not set(choice.NCCL) & set(os.environ)
    monkeypatch.setenv("NCCL_MIN_NCHANNELS", "1")  # so that it is removed after the test
    choice.set_nccl((4, 0, 0))
    assert os.environ["NCCL_MIN_NCHANNELS"] == "4"
    assert "NCCL_SOCKET_NTHREADS" not in os.environ


def test_ranks_are_forked_with_the_parameters_of_nccl(monkeypatch, tmp_path):
    monkeypatch.setenv(choice.NCCL[0], "")  # as it was, after the test
    seen = []
    monkeypatch.setattr(joining.device, "Threads", mock.Mock())  # it would set those of this process
    monkeypatch.setattr(joining, "fork", lambda *_: (seen.append(os.environ[choice.NCCL[0]]), Others([]))[1])
    options = WorkerOptions(manifest="", index=None, run_folder=str(tmp_path), device="cpu*2", nccl=(4, 0, 0))
    made = joining.Joining(options, parse_manifest(raw()), *[mock.Mock()] * 8)
    made._hardware()
    assert seen == ["4"]


def test_more_sockets_than_nccl_can_use_are_refused():
    with pytest.raises(DoesNotFit) as caught:
        choice.set_nccl((0, 16, 5))
    assert in_english(caught.value.title) == (
        "16 threads with 5 sockets each are more than the 64 sockets that NCCL can use."
    )


def test_one_device_is_not_looked_at(monkeypatch):
    monkeypatch.setattr(choice, "look_at", lambda *_: 1 / 0)
    assert devices_of("", PLAN, pytest.fail) == Choice(("",))
    assert devices_of("cuda:1", PLAN, pytest.fail) == Choice(("cuda:1",))


def test_cards_with_room_have_a_copy_each(cards):
    cards(cuda_0=24, cuda_1=16)
    assert devices_of("cuda:1,cuda:0", PLAN, pytest.fail) == Choice(("cuda:1", "cuda:0"))
    assert devices_of("all", PLAN, pytest.fail) == Choice(("cuda:0", "cuda:1"))


def test_cards_of_which_none_has_room_share_the_model(cards):
    cards(cuda_0=8, cuda_1=8)
    assert devices_of("all", PLAN, pytest.fail) == Choice(("cuda:0", "cuda:1"), sharded=True)


def test_as_few_cards_share_it_as_the_fit_has_counted(cards):
    cards(cuda_0=2, cuda_1=8, cuda_2=7)
    assert devices_of("cuda:0,cuda:2,cuda:1", PLAN, pytest.fail) == Choice(("cuda:2", "cuda:1"), sharded=True)


def test_where_they_have_no_room_together_the_shards_are_in_the_hosts_memory(cards):
    cards(cuda_0=2, cuda_1=2)
    large = {"type": "gpt2", "layers": 24, "heads": 16, "width": 2048, "vocabulary": 256}
    plan = parse_manifest(raw(recipe__model=large))
    assert devices_of("all", plan, pytest.fail) == Choice(("cuda:0", "cuda:1"), sharded=True, offload=True)


def test_where_they_have_no_room_together_copies_are_tried(cards):
    cards(cuda_0=2, cuda_1=2)
    assert devices_of("all", PLAN, pytest.fail) == Choice(("cuda:0", "cuda:1"))


def test_ranks_on_the_processor_have_copies():
    assert devices_of("cpu*3", PLAN, pytest.fail) == Choice(("cpu",) * 3)


def test_a_card_that_torch_does_not_find_is_refused_later():
    assert devices_of("cuda:7,cuda:8", PLAN, pytest.fail) == Choice(("cuda:7", "cuda:8"))
