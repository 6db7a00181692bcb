"""What a script gives is checked before anything is started, and refused in one sentence that names it."""

import re
from functools import partial

import pytest
import torch
from hivemind import compression
from hivemind.optim.grad_averager import GradientAverager
from hivemind.optim.power_sgd_averager import PowerSGDGradientAverager

from skep import training
from skep.core.errors import SwarmError
from skep.core.project.manifest import PowerSGD
from skep.core.text import Text
from skep.training.plan import peers_of, plan_of
from skep.training.synchronisation import synchronisation
from skep.training.words import in_words

PEER = "/ip4/203.0.113.7/tcp/31337/p2p/QmcgpsyWgH8Y8ajJz1Cu72KnS5uo2Aa2LpzU7kinSupNKC"
GOOD = {
    "run_id": "run",
    "optimizer": partial(torch.optim.SGD, lr=0.1),
    "target_batch_size": 64,
    "batch_size": 8,
    "report": lambda _: None,
}


def model():
    return torch.nn.Linear(2, 1)


def half():
    return torch.nn.Linear(2, 1).to(torch.bfloat16)


def frozen():
    return torch.nn.Linear(2, 1).requires_grad_(requires_grad=False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"run_id": "a run.1"}, "run_id"),
        ({"batch_size": 0}, "batch_size"),
        ({"optimizer": None}, "no optimizer"),
        ({"target_batch_size": 1}, "target_batch_size"),
        ({"matchmaking_time": 1.0}, "matchmaking_time"),
        ({"averaging_timeout": 5.0}, "longer than matchmaking_time"),
        ({"delay_optimizer_step": True}, "offload_optimizer"),
        ({"delay_grad_averaging": True}, "delay_optimizer_step"),
        ({"grad_compression": compression.BlockwiseQuantization}, "grad_compression"),
        ({"grad_compression": "gzip"}, "grad_compression"),
        ({"grad_averager_factory": GradientAverager}, "PowerSGDGradientAverager"),
        ({"grad_averager_factory": partial(PowerSGDGradientAverager, averager_rank=32)}, "averager_rank"),
        ({"initial_peers": "10.0.0.1:31337"}, "initial_peers"),
        ({"use_local_updates": True}, "use_local_updates"),
        ({"clip_norm": 0.0}, "clip_norm"),
        ({"clip_norm": -1.0}, "clip_norm"),
        ({"clip_norm": float("nan")}, "clip_norm"),
        ({"clip_norm": float("inf")}, "clip_norm"),
        ({"host": "localhost"}, "host"),
        ({"port": 70_000}, "port"),
        ({"bandwidth": 2.0}, "bandwidth"),
        ({"scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau}, "metrics"),
        ({"scheduler": lambda _: None}, "NoneType is no LRScheduler"),
        ({"optimizer": torch.optim.ASGD}, "ASGD"),
        ({"model": half()}, "torch.bfloat16"),
        ({"model": frozen()}, "no parameters"),
        ({"project": "project.json"}, "run_id"),
        ({"project": "project.json"} | dict.fromkeys(("run_id", "optimizer", "target_batch_size")), "project.json"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named_in_a_sentence(changes, words):
    given = {"model": model()} | GOOD | changes
    with pytest.raises(training.TrainingError) as error:
        training.join(**given)
    said = str(error.value)
    assert words in said
    assert said.endswith(".")
    assert "{" not in said


def test_trying_a_schedule_changes_no_group_of_the_script():
    linear = model()
    groups = [{"params": list(linear.parameters()), "lr": 0.1}]
    plan = plan_of(
        linear,
        batch_size=8,
        run_id="run",
        target_batch_size=64,
        optimizer=torch.optim.SGD,
        project="",
        parameters=groups,
        scheduler=partial(torch.optim.lr_scheduler.StepLR, step_size=1, gamma=0.5),
        clip_norm=None,
        options={},
    )
    assert [group["lr"] for group in [*groups, *plan.groups]] == [0.1, 0.1]


def test_trying_a_schedule_changes_no_tensor_of_the_script():
    linear, rate = model(), torch.tensor(0.1)
    plan_of(
        linear,
        batch_size=8,
        run_id="run",
        target_batch_size=64,
        optimizer=partial(torch.optim.AdamW, lr=rate),
        project="",
        parameters=None,
        scheduler=partial(torch.optim.lr_scheduler.StepLR, step_size=1, gamma=0.5),
        clip_norm=None,
        options={},
    )
    assert float(rate) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("title", "hint"),
    [
        (
            Text("swarm.none_project_seed_peers_answers", failures=()),
            Text("swarm.check_computer_internet_connection_firewall"),
        ),
        (Text("swarm.what_answers_not_seed_peer", names=("a peer",)), Text("swarm.may_have_been_restarted_under")),
        (Text("swarm.seed_peers_answer_but_joining", reason="no"), Text("swarm.try_again_later_if_stays")),
        (Text("round.part_skep_averages_others_did"), Text("round.skep_tries_again")),
        (Text("round.model_was_lost"), Text("round.skep_joins_again")),
        (Text("round.no_peer_swarm_hands_over"), Text("round.others_may_have_just_left")),
        (Text("round.round_failed"), Text("peer.trains_another_model_under_same")),
        (Text("watch.part_ended", part=Text("watch.dht")), Text("watch.skep_starts_training_process_again")),
    ],
    ids=lambda text: text.id,
)
def test_a_script_is_told_nothing_that_only_the_app_has_or_does(title, hint):
    with pytest.raises(training.TrainingError) as error, in_words():
        raise SwarmError(title, hint)
    assert not re.search("seed peer|SKEP_PEERS|manifest|publisher|skep (tries|joins|starts)", str(error.value))
    assert "{" not in str(error.value)


def test_a_wait_that_is_too_long_is_told_in_a_sentence():
    with pytest.raises(training.TrainingError, match="in time"), in_words():
        raise TimeoutError


@pytest.mark.parametrize(
    "given",
    [PEER, f" {PEER}, {PEER}", [PEER], (PEER, PEER), f"{PEER} {PEER}"],
    ids=["one", "string", "list", "tuple", "spaces"],
)
def test_peers_are_given_as_a_list_or_a_string(given):
    assert set(peers_of(given, {})) == {PEER}


@pytest.mark.parametrize("name", ["INITIAL_PEERS", "PL_INITIAL_PEERS"])
def test_peers_are_given_by_the_environment(name):
    assert peers_of((), {name: PEER}) == [PEER]
    assert peers_of(PEER, {name: "nonsense"}) == [PEER]  # what is given goes first


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (compression.Float16Compression(), "float16"),
        (compression.NoCompression(), "none"),
        (compression.Uniform8BitQuantization(), "uniform-8bit"),
        (compression.ScaledFloat16Compression(), "scaled-float16"),
        ("size-adaptive", "size-adaptive"),
    ],
)
def test_a_compression_is_given_by_its_object_or_name(given, name):
    made = synchronisation(64, {"grad_compression": given, "state_averaging_compression": given})
    assert made.grad_compression == made.state_compression == name


def test_a_size_adaptive_compression_brings_its_threshold():
    given = compression.SizeAdaptiveCompression(
        threshold=1000, less=compression.Float16Compression(), greater_equal=compression.Uniform8BitQuantization()
    )
    made = synchronisation(64, {"grad_compression": given})
    assert (made.grad_compression, made.size_adaptive_threshold) == ("size-adaptive", 1000)


def test_powersgd_is_given_as_hiveminds_factory():
    factory = partial(PowerSGDGradientAverager, averager_rank=32, min_compression_ratio=0.25)
    assert synchronisation(64, {"grad_averager_factory": factory}).powersgd == PowerSGD(32, 0.25)
