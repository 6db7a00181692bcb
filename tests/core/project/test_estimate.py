import pytest

from manifests import raw
from skep.core.device import Device, DeviceKind
from skep.core.project.fit import CARD_FLOPS, HOUR, PEERS, PROCESSOR_FLOPS, estimate, lone_processor_rate
from skep.core.project.needs import GB, memory_needed, traffic_per_epoch
from skep.core.text import verbatim
from skep.recipes.registry import parse_manifest

CARD = Device(DeviceKind.NVIDIA, 0, "Example 4090", memory_total=24 * GB)
BROKEN = Device(DeviceKind.AMD, 0, "Example", memory_total=24 * GB, unusable=verbatim("No driver."))


def of(changes=None, devices=(), cores=2):
    plan = parse_manifest(raw(**(changes or {})))
    return plan, estimate(plan, devices, cores=cores)


def test_samples_follow_the_cores():
    plan, two = of()
    assert two.samples == round(lone_processor_rate(plan) * HOUR)
    assert of(cores=8)[1].samples == pytest.approx(4 * two.samples, rel=1e-3)
    assert of(cores=0)[1].samples > 0


def test_a_card_computes_more_and_takes_memory_of_its_own():
    plan, on_card = of(devices=[CARD])
    assert on_card.samples == pytest.approx(of()[1].samples * CARD_FLOPS / PROCESSOR_FLOPS, rel=1e-3)
    assert on_card.device == round(memory_needed(plan, [CARD]).device)
    assert of()[1].device is None
    assert of(devices=[BROKEN]) == of()


def test_memory_and_disk_are_those_of_the_fit():
    _, made = of({"needs__memory_gb": 3, "needs__disk_gb": 7})
    assert (made.memory, made.disk) == (3 * GB, 7 * GB)


def test_traffic_follows_the_epochs_of_a_swarm_of_computers_like_this_one():
    target = 1_000_000
    plan, made = of({"sync__target_batch_size": target})
    epochs = HOUR * PEERS * lone_processor_rate(plan) / target
    assert made.traffic == pytest.approx(traffic_per_epoch(plan) * epochs * (PEERS - 1) / PEERS, rel=1e-6)
    assert of({"sync__target_batch_size": target}, cores=4)[1].traffic == pytest.approx(2 * made.traffic, rel=1e-6)


def test_no_swarm_averages_more_often_than_it_finds_its_peers():
    plan, made = of({"sync__target_batch_size": 2}, devices=[CARD])
    assert made.most == round(traffic_per_epoch(plan) * HOUR / plan.sync.matchmaking_seconds)
    assert made.traffic == pytest.approx(made.most * (PEERS - 1) / PEERS, rel=1e-6)
