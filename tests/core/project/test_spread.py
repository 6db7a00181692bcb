"""A model that fits no single card, over several: 1/N of it on each, and the part that computes."""

from dataclasses import dataclass, replace

import pytest

from english import in_english
from manifests import images, lora, masked, raw
from skep.core.device import Device, DeviceKind
from skep.core.project.data import Recipe, Shapes, TextLayout, values
from skep.core.project.fit import Verdict, check, estimate
from skep.core.project.needs import GB, cards_used, memory_needed, offloads, parameters_of, spread_over
from skep.core.project.spread import bytes_each, chosen_together
from skep.core.text import verbatim
from skep.language.translator import translator
from skep.recipes.registry import parse_manifest

LARGE = {"recipe__model": {"type": "gpt2", "layers": 24, "heads": 16, "width": 2048, "vocabulary": 256}}
LAYER = 12 * 2048 * 2048 + 13 * 2048
ACTIVATIONS = 256 * 2048 * (24 + 28) + 3 * 256 * 256


def card(gigabytes, index=0, **more):
    memory = None if gigabytes is None else int(gigabytes * GB)
    return Device(DeviceKind.NVIDIA, index, f"Card {index}", memory_total=memory, **more)


def plan(**changes):
    return parse_manifest(raw(**LARGE, **changes))


def judged(cards, together=None, memory=128, **changes):
    all_of_them = cards if together is None else together
    return check(plan(**changes), cards, memory=int(memory * GB), disk_free=100 * GB, together=all_of_them)


@pytest.mark.parametrize(("half", "size"), [(False, 4), (True, 2)])
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_device_has_its_share_and_one_block(ranks, half, size):
    count = parameters_of(plan())
    expected = 8 * count / ranks + LAYER * (2 * size + 4) + ACTIVATIONS * size
    assert bytes_each(plan().recipe, ranks, half=half) == pytest.approx(expected)


def test_in_fp16_a_micro_batchs_gradients_are_apart():
    count, apart = parameters_of(plan()), [card(24), card(24, 1, bf16=False)]
    more = memory_needed(plan(), apart).device - memory_needed(plan(), [card(24)] * 2).device
    assert more == pytest.approx(4 * count / 2)
    assert memory_needed(plan(precision="fp16"), [card(24)] * 2).device == memory_needed(plan(), apart).device


def test_a_card_that_may_compute_in_fp16_or_fp32_needs_the_larger_of_both():
    apart = [card(24)] * 19 + [card(24, 1, bf16=False)]
    needed = {precision: memory_needed(plan(precision=precision), apart).device for precision in ("fp16", "fp32")}
    assert memory_needed(plan(), apart).device == needed["fp32"] > needed["fp16"]


def test_what_does_not_fit_one_card_fits_both_together():
    assert judged([card(8)]).verdict is Verdict.TOO_BIG
    assert len(judged([card(8)], together=[]).reasons) == 1
    fit = judged([card(8), card(8, 1)])
    assert fit.verdict is Verdict.FITS_GENTLY
    each = bytes_each(plan().recipe, 2, half=True) / GB
    assert in_english(fit.reasons)[0] == (
        f"No single card has room for it, but it fits on both cards together, with {each:.1f} GB on each."
    )
    assert "auf beide Karten zusammen passt es" in translator("de").say(fit.reasons[0])


def test_what_another_setting_would_allow_is_said():
    fit = judged([card(8), card(6, 1)], together=[])
    assert fit.verdict is Verdict.TOO_BIG
    assert in_english(fit.reasons)[1] == "All cards together have room for it, with compute.device set to all."
    assert len(judged([card(8), card(0.5, 1)], together=[]).reasons) == 1
    assert len(judged([], memory=1).reasons) == 1


@pytest.mark.parametrize(
    ("wanted", "indices"),
    [("", []), ("all", [0, 1, 2]), ("cuda:2,cuda:0", [0, 2]), ("cuda:1", []), ("cuda:1,cuda:7", []), ("cpu*2", [])],
)
def test_the_setting_says_which_cards_compute_together(wanted, indices):
    cards = [card(8, index) for index in range(3)]
    assert [each.index for each in chosen_together(cards, wanted)] == indices


def test_the_fewest_cards_are_used_and_the_smallest_of_them_counts():
    three = [card(3.8, 2), card(8), card(4, 1)]
    assert cards_used(plan(), three, three) == (three[1], three[2], three[0])
    assert "fits on 3 cards together" in in_english(judged(three).reasons)[0]
    assert [each.index for each in cards_used(plan(), three, [card(7, 5), *three])] == [0, 5]
    small = [card(8), card(0.5, 1)]
    assert cards_used(plan(), small, small) == (small[0],)
    assert "needs 9.7 GB of memory on Card 0" in in_english(judged(small).reasons)[0]


def test_a_larger_card_that_is_not_among_the_chosen_ones_does_not_count():
    cards = [card(24), card(8, 1), card(8, 2)]
    assert cards_used(plan(), cards, cards[1:]) == tuple(cards[1:])


def test_a_worker_spreads_the_model_over_the_cards_that_were_counted_together():
    cards = [card(1, 2), card(8), card(8, 1)]
    assert spread_over(plan(), cards) == tuple(cards[1:])
    assert spread_over(plan(), [card(24), card(8, 1)]) == ()
    assert spread_over(plan(), [card(8), card(0.5, 1)]) == ()


def test_shares_for_which_the_cards_have_no_room_together_are_in_the_hosts_memory():
    small = {"needs__vram_gb": 1}
    cards, count = [card(3), card(1, 2), card(0.5, 3), card(2, 1)], parameters_of(plan(**small))
    used = cards_used(plan(**small), cards, cards)
    assert [each.index for each in used] == [0, 1, 2]  # as many as have room for a part: each does less then
    assert offloads(plan(**small), used)
    assert not offloads(plan(**small), [card(8), card(8, 1)])
    assert not offloads(plan(**small), [card(1)])
    needed = memory_needed(plan(**small), used)
    on_each = (8 + 6 / 3) * LAYER + 2 * ACTIVATIONS
    assert needed.device == pytest.approx(on_each)
    assert needed.memory == 3 * 700_000_000 + (44 + 8) * count
    fit = judged(cards, **small)
    assert fit.verdict is Verdict.FITS_GENTLY
    assert in_english(fit.reasons)[0] == (
        "No single card has room for it, nor have all together, but it fits if its parameters stay in main memory, with "
        f"{on_each / GB:.1f} GB on each of 3 cards. That is slower."
    )
    assert judged(cards, memory=needed.memory / GB - 1, **small).verdict is Verdict.TOO_BIG
    assert judged(cards, needs__vram_gb=40).verdict is Verdict.TOO_BIG  # what the publisher says counts


def test_a_card_with_room_for_all_of_it_trains_alone():
    two = [card(24), card(8, 1)]
    assert cards_used(plan(), two, two) == (two[0],)
    assert judged(two).verdict is Verdict.FITS


@pytest.mark.parametrize(
    "other",
    [
        card(None, 1),
        card(8, 1, unusable=verbatim("no driver")),
        replace(card(8, 1), kind=DeviceKind.AMD),
        replace(card(8, 1), kind=DeviceKind.CPU),
    ],
)
def test_cards_that_cannot_take_a_share_are_left_out(other):
    assert judged([card(8), other]).verdict is Verdict.TOO_BIG


def test_without_a_card_nothing_is_spread():
    assert cards_used(plan(), [], []) == ()
    processor = Device(DeviceKind.CPU, 0, "CPU", memory_total=8 * GB)
    assert cards_used(plan(), [processor], [processor, processor]) == ()


def test_the_whole_model_is_in_the_hosts_memory_and_each_card_has_a_process():
    count, two = parameters_of(plan()), [card(8), card(8, 1)]
    needed = memory_needed(plan(), two)
    assert needed.memory == 2 * 700_000_000 + 44 * count
    assert judged(two, memory=needed.memory / GB - 1).verdict is Verdict.TOO_BIG
    assert estimate(plan(), two, cores=2, together=two).device == round(needed.device)


def test_of_what_the_publisher_says_each_card_needs_its_share():
    assert memory_needed(plan(needs__vram_gb=40), [card(24)] * 2).device == 20 * GB


@pytest.mark.parametrize(
    ("recipe", "largest"),
    [
        (masked("bert", width=32), 12 * 32 * 32 + 13 * 32),
        (masked("bert", vocabulary=257, width=8), 257 * 8),
        (masked("albert", embedding_width=64), 257 * 64),
        (images(classes=1000), 17 * 1000),
        (lora("gpt2", ["c_attn"], width=64, heads=2), 12 * 64 * 64 + 13 * 64 + 8 * (64 + 3 * 64)),
        (lora(vocabulary=256), 256 * 16),
    ],
)
def test_the_largest_part_is_a_block_or_an_embedding(recipe, largest):
    assert values(parse_manifest(raw(recipe=recipe)).recipe.largest_part) == largest


@dataclass(frozen=True)
class Plain(Recipe):
    """A recipe that does not say of which parts its model is."""

    model_type = "table"
    layout = TextLayout(8, 4)
    positions = 8
    trained = Shapes({(4, 4): 1})
    frozen = Shapes({(2,): 1})

    def check(self):
        pass


def test_a_recipe_that_names_no_parts_counts_as_one():
    plain = Plain("plain")
    assert (values(plain.largest_part), plain.activations) == (18, 0)
    assert bytes_each(plain, 2, half=False) == (8 * 16 + 4 * 2) / 2 + 18 * 12
