import itertools
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from english import in_english, raises
from manifests import EXAMPLE, PEER, REMOVED, example, images, lora, masked, raw
from skep.core.errors import ManifestError
from skep.core.plain_text import plain
from skep.core.project.addresses import Reach
from skep.core.project.data import FileRef, ImageLayout, TextLayout
from skep.core.project.manifest import Manifest, check_expiry, check_reach, fingerprint
from skep.recipes.registry import parse_manifest


def refusal(data):
    with pytest.raises(ManifestError) as refused:
        parse_manifest(data)
    assert refused.value.exit_code == 2
    assert in_english(refused.value.hint)
    return in_english(refused.value.title)


def test_a_project_need_not_have_a_homepage():
    assert parse_manifest(raw(homepage="")).homepage == ""


def test_the_example_is_read_whole():
    manifest = parse_manifest(raw())
    assert manifest.id == "tiny-code-lm"
    assert manifest.expires == datetime(2097, 12, 31, tzinfo=UTC)
    assert manifest.recipe.model.width == 256
    assert manifest.optimizer.betas == (0.9, 0.95)
    assert manifest.sync.matchmaking_seconds == 5.0
    assert manifest.sync.powersgd is None
    assert manifest.peers[1] == PEER


def test_a_manifest_of_before_there_were_signed_checkpoints_is_one_that_demands_none():
    assert parse_manifest(raw(initial_state=REMOVED)) == parse_manifest(raw(initial_state="swarm"))


def at(field, phrase):
    return f"The manifest is not valid: {field} {phrase}."


WHOLE = "must be a whole number from {} to {}"

REFUSED = [
    # top level
    ({"format": 2}, at("format", "must be 1")),
    ({"format": REMOVED}, at("format", "is missing")),
    ({"surprise": 1}, at("surprise", "is not a known field")),
    ({"id": "A b"}, at("id", "must be 3 to 40 lower-case letters, digits and dashes")),
    ({"id": "with.dots"}, at("id", "must be 3 to 40 lower-case letters, digits and dashes")),
    ({"id": "tiny\n"}, at("id", "must be 3 to 40 lower-case letters, digits and dashes")),
    ({"revision": 0}, at("revision", WHOLE.format(1, 2**31))),
    ({"revision": True}, at("revision", WHOLE.format(1, 2**31))),
    ({"revision": 1.0}, at("revision", WHOLE.format(1, 2**31))),
    ({"title": ""}, at("title", "must be text of 1 to 80 characters")),
    ({"title": "\u202e\u200b"}, at("title", "must be text of 1 to 80 characters")),
    ({"title": "x" * 81}, at("title", "must be text of 1 to 80 characters")),
    ({"summary": 3}, at("summary", "must be text")),
    (
        {"homepage": "http://example.org"},
        at("homepage", "must be an https address (http only on this computer itself)"),
    ),
    ({"homepage": "javascript:x"}, at("homepage", "must be an https address (http only on this computer itself)")),
    ({"expires": "2027-12-31"}, at("expires", "must be a time such as 2027-12-31T00:00:00Z")),
    ({"expires": "\uff12027-12-31T00:00:00Z"}, at("expires", "must be a time such as 2027-12-31T00:00:00Z")),
    ({"expires": "2027-13-31T00:00:00Z"}, at("expires", "must be a time such as 2027-12-31T00:00:00Z")),
    ({"membership": "closed"}, at("membership", 'must be "open", "invited" or "moderated"')),
    ({"initial_state": "any"}, at("initial_state", 'must be "swarm" or "signed"')),
    ({"precision": "int8"}, at("precision", 'must be "auto", "fp32", "bf16" or "fp16"')),
    ({"activation_checkpointing": True}, at("activation_checkpointing", 'must be "auto", "on" or "off"')),
    # publisher
    ({"publisher": "me"}, at("publisher", "must be an object")),
    ({"publisher__key": "ed25519:AAAA"}, at("publisher.key", 'must be "ed25519:" and 32 bytes in base64')),
    ({"publisher__key": "rsa:AAAA"}, at("publisher.key", 'must be "ed25519:" and 32 bytes in base64')),
    ({"publisher__email": "a@b"}, at("publisher.email", "is not a known field")),
    # peers
    ({"peers": []}, at("peers", "must be a list of 1 to 64 values")),
    ({"peers": [PEER] * 65}, at("peers", "must be a list of 1 to 64 values")),
    ({"peers": PEER}, at("peers", "must be a list of 1 to 64 values")),
    *(
        ({"peers": [PEER, bad]}, at("peers[1]", "must be an address such as /ip4/203.0.113.7/tcp/31337/p2p/Qm…"))
        for bad in (
            5,
            "",
            "203.0.113.7:31337",
            "/ip4/203.0.113.7/tcp/31337",
            "/ip4/999.0.0.1/tcp/1/p2p/" + PEER.split("/")[-1],
            "/ip6/::zz/tcp/1/p2p/" + PEER.split("/")[-1],
            "/ip6/fe80::1%eth0/tcp/1/p2p/" + PEER.split("/")[-1],
            "/ip4/127.0.0.1/tcp/1/onward/p2p/" + PEER.split("/")[-1],
            "/dns4/a b/tcp/1/p2p/" + PEER.split("/")[-1],
            "/onion/abc/tcp/1/p2p/" + PEER.split("/")[-1],
            "/ip4/127.0.0.1/tcp/0/p2p/" + PEER.split("/")[-1],
            "/ip4/127.0.0.1/tcp/65536/p2p/" + PEER.split("/")[-1],
            "/ip4/127.0.0.1/sctp/1/p2p/" + PEER.split("/")[-1],
            "/ip4/127.0.0.1/tcp/1/$(x)/p2p/" + PEER.split("/")[-1],
            PEER + "0",
            PEER + " ",
        )
    ),
    # recipe
    ({"recipe__name": "poem"}, at("recipe.name", 'must be "causal-lm", "masked-lm", "image-classifier" or "lora"')),
    ({"recipe__model__type": "mamba"}, at("recipe.model.type", 'must be "gpt2" or "llama"')),
    ({"recipe__model__layers": 0}, at("recipe.model.layers", WHOLE.format(1, 128))),
    ({"recipe__model__heads": "4"}, at("recipe.model.heads", WHOLE.format(1, 256))),
    ({"recipe__model__width": 10**9}, at("recipe.model.width", WHOLE.format(8, 16384))),
    ({"recipe__model__width": 258}, at("recipe.model.width", "must be a multiple of heads")),
    (
        {"recipe__model": {"type": "llama", "layers": 1, "heads": 4, "width": 12, "vocabulary": 256}},
        at("recipe.model.width", "must be an even multiple of heads for llama"),
    ),
    ({"recipe__model__vocabulary": 257}, at("recipe.model.vocabulary", "must be 256 with the tokenizer bytes")),
    ({"recipe__model__trust_remote_code": True}, at("recipe.model.trust_remote_code", "is not a known field")),
    ({"recipe__sequence_length": 4}, at("recipe.sequence_length", WHOLE.format(8, 32768))),
    ({"recipe__tokenizer": "gpt2"}, at("recipe.tokenizer", 'must be "bytes", or an object with url and sha256')),
    ({"recipe__tokenizer": {"url": "https://example.org"}}, at("recipe.tokenizer.sha256", "is missing")),
    ({"recipe__seed": -1}, at("recipe.seed", WHOLE.format(0, 2**32 - 1))),
    ({"recipe": []}, at("recipe", "must be an object")),
    ({"recipe__base": None}, at("recipe.base", "does not belong to causal-lm")),
    ({"recipe__model__patch_size": 4}, at("recipe.model.patch_size", "is not a known field")),
    ({"recipe": masked("bert", embedding_width=8)}, at("recipe.model.embedding_width", "does not belong to bert")),
    ({"recipe": masked("gpt2")}, at("recipe.model.type", 'must be "albert" or "bert"')),
    ({"recipe": masked(vocabulary=256)}, at("recipe.model.vocabulary", "must be 257 with the tokenizer bytes")),
    ({"recipe": images() | {"tokenizer": "bytes"}}, at("recipe.tokenizer", "does not belong to image-classifier")),
    ({"recipe": images(vocabulary=256)}, at("recipe.model.vocabulary", "is not a known field")),
    ({"recipe": images(patch_size=3)}, at("recipe.model.image_size", "must be a multiple of patch_size")),
    ({"recipe": images(heads=3)}, at("recipe.model.width", "must be a multiple of heads")),
    ({"recipe": lora("gpt2", ["q_proj"])}, at("recipe.adapters.targets", 'has "q_proj", which gpt2 does not have')),
    ({"recipe": lora(targets=["q_proj"] * 2)}, at("recipe.adapters.targets", "names a target twice")),
    ({"recipe": lora(targets=[])}, at("recipe.adapters.targets", "must be a list of 1 to 7 values")),
    ({"recipe": lora(positions=64)}, at("recipe.model.positions", "does not belong to llama")),
    (
        {"recipe": lora("gpt2", ["c_attn"], positions=16)},
        at("recipe.sequence_length", "must not be above the base's positions"),
    ),
    ({"recipe": lora(key_value_heads=4)}, at("recipe.model.key_value_heads", "must divide heads")),
    (
        {"recipe": lora() | {"base": {"url": "ftp://x", "sha256": "0" * 64, "bytes": 1}}},
        at("recipe.base.url", "must be an https address (http only on this computer itself)"),
    ),
    ({"recipe": {name: each for name, each in lora().items() if name != "base"}}, at("recipe.base", "is missing")),
    # optimizer and schedule
    ({"optimizer__name": "adam"}, at("optimizer.name", 'must be "adamw", "sgd" or "lamb"')),
    ({"optimizer__learning_rate": 0}, at("optimizer.learning_rate", "must be a number above 0 and up to 10")),
    ({"optimizer__learning_rate": "fast"}, at("optimizer.learning_rate", "must be a number above 0 and up to 10")),
    ({"optimizer__betas": [0.9]}, at("optimizer.betas", "must be a list of 2 values")),
    ({"optimizer__betas": [0.9, 1]}, at("optimizer.betas[1]", "must be a number from 0 to 0.99999")),
    ({"optimizer__weight_decay": -1}, at("optimizer.weight_decay", "must be a number from 0 to 10")),
    ({"optimizer__clip_norm": 0}, at("optimizer.clip_norm", "must be a number above 0 and up to 1e+06")),
    ({"schedule__kind": "magic"}, at("schedule.kind", 'must be "constant", "linear", "cosine" or "exponential"')),
    ({"schedule__warmup_epochs": 2000}, at("schedule.warmup_epochs", "must be below total_epochs")),
    # sync
    ({"sync__target_batch_size": 1}, at("sync.target_batch_size", WHOLE.format(2, 10_000_000))),
    ({"sync__offload_optimizer": 1}, at("sync.offload_optimizer", "must be true or false")),
    (
        {"sync__grad_compression": "zip"},
        at(
            "sync.grad_compression",
            'must be "none", "float16", "scaled-float16", "uniform-8bit" or "size-adaptive"',
        ),
    ),
    (
        {"sync__powersgd": {"rank": 4, "min_compression_ratio": 1}},
        at("sync.powersgd.min_compression_ratio", "must be a number above 0 and up to 0.99"),
    ),
    (
        {"sync__powersgd": {"rank": 200, "min_compression_ratio": 0.5}},
        at("sync.powersgd.rank", "is too high: it does not save at least 50% on any matrix of this model"),
    ),
    ({"sync__powersgd": {"rank": 0, "min_compression_ratio": 0.5}}, at("sync.powersgd.rank", WHOLE.format(1, 1024))),
    ({"sync__mode": "anarchy"}, at("sync.mode", 'must be "global"')),
    (
        {"sync__matchmaking_seconds": 1},
        at(
            "sync.matchmaking_seconds",
            "must be a number from 2 to 600, because a peer may need most of a second to answer",
        ),
    ),
    ({"sync__averaging_timeout_seconds": 4}, at("sync.averaging_timeout_seconds", "must be a number from 5 to 3600")),
    ({"sync__average_state_every": 0}, at("sync.average_state_every", WHOLE.format(1, 1000))),
    ({"sync__size_adaptive_threshold": -1}, at("sync.size_adaptive_threshold", WHOLE.format(1, 2**31))),
    ({"sync__use_local_updates": True}, at("sync.use_local_updates", "is not a known field")),
    (
        {"sync__averaging_timeout_seconds": 5},
        at("sync.averaging_timeout_seconds", "must be longer than matchmaking_seconds"),
    ),
    # combinations that cannot train
    (
        {"sync__delay_grad_averaging": True, "sync__delay_optimizer_step": False},
        at("sync.delay_grad_averaging", "needs delay_optimizer_step: without it there is no gradient for the step yet"),
    ),
    (
        {"sync__offload_optimizer": False},
        at("sync.delay_optimizer_step", "needs offload_optimizer: the step runs beside training"),
    ),
    (
        {"sync__delay_state_averaging": False},
        at("sync.delay_optimizer_step", "needs delay_state_averaging: the state follows the step"),
    ),
    # data and needs
    (
        {"data__index": "http://example.org/i"},
        at("data.index", "must be an https address (http only on this computer itself)"),
    ),
    (
        {"data__index": "https://user@example.org/i"},
        at("data.index", "must be an https address (http only on this computer itself)"),
    ),
    ({"data__sha256": "A" * 64}, at("data.sha256", "must be a SHA-256 in 64 lower-case hex digits")),
    ({"needs__memory_gb": -1}, at("needs.memory_gb", "must be a number from 0 to 4096")),
]

LATER = [
    ({"sync__mode": "local"}, "sync.mode", '"local"'),
]


@pytest.mark.parametrize(("changes", "sentence"), REFUSED)
def test_what_is_wrong_is_refused_in_one_sentence_that_names_the_field(changes, sentence):
    assert refusal(raw(**changes)) == sentence


@pytest.mark.parametrize(("changes", "field", "what"), LATER)
def test_what_comes_later_is_refused_in_words_and_never_ignored(changes, field, what):
    assert refusal(raw(**changes)) == f"The manifest's {field} {what} comes with a later version of skep."


def test_what_can_never_work_is_said_before_what_does_not_work_yet():
    changes = {"sync__delay_state_averaging": False, "sync__mode": "local"}
    assert "delay_optimizer_step needs delay_state_averaging" in refusal(raw(**changes))
    assert "needs.memory_gb must be" in refusal(raw(sync__mode="local", needs__memory_gb=-1))


@pytest.mark.parametrize(
    ("data", "phrase"),
    [
        (b"", "it is not JSON (line 1)"),
        (b"[]", "it is not a JSON object"),
        (b"\xff\xfe", "it is not UTF-8 text"),
        (b" " * 65537, "it is larger than 64 KiB"),
        (b'{"id": 1, "id": 2}', "id appears twice"),
        (b'{"publisher": {"key": 1, "key": 1}}', "key appears twice"),
        (b'{"id": NaN}', "NaN is not a number"),
        (b'{"id": -Infinity}', "-Infinity is not a number"),
        (b'{"id": ' + b"9" * 5000 + b"}", "a number in it is far too large"),
        (b'{"id": ' + b"[" * 30 + b"]" * 30 + b"}", "it is nested too deeply"),
        (b'{"id": ' + b"[" * 30000 + b"]" * 30000 + b"}", "it is nested too deeply"),
        (b'{"\\u202ebad\\n": 1}', "?bad? is not a known field"),
    ],
)
def test_bytes_that_are_no_manifest_are_refused(data, phrase):
    assert refusal(data) == f"The manifest is not valid: {phrase}."


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_no_depth_of_nesting_is_too_much_for_the_reader(opening, closing):
    for depth in [*range(8, 20), *range(450, 1100, 5), 10_000]:
        data = b'{"id": ' + opening * depth + b"1" + closing * depth + b"}"
        assert refusal(data) == "The manifest is not valid: it is nested too deeply."


@pytest.mark.parametrize("name", [name for name in EXAMPLE if name != "initial_state"])
def test_every_field_of_before_there_were_signed_checkpoints_is_needed(name):
    assert refusal(raw(**{name: REMOVED})) == at(name, "is missing")


@pytest.mark.parametrize("inner", ["publisher", "recipe", "optimizer", "schedule", "sync", "data", "needs"])
def test_every_inner_field_is_needed(inner):
    for name in EXAMPLE[inner]:
        assert refusal(raw(**{f"{inner}__{name}": REMOVED})) == at(f"{inner}.{name}", "is missing")


TOKENIZER = {"url": "https://example.org/tokenizer.json", "sha256": "c" * 64}


def test_every_recipe_says_what_its_shards_hold_and_which_files_it_needs():
    plain = parse_manifest(raw()).recipe
    assert (plain.layout, plain.files) == (TextLayout(256, 256), ())
    assert parse_manifest(raw(recipe__tokenizer=TOKENIZER, recipe__model__vocabulary=5000)).recipe.files == ()
    hiding = parse_manifest(raw(recipe=masked("albert"))).recipe
    assert (hiding.layout, hiding.files) == (TextLayout(32, 257), ())
    words = parse_manifest(raw(recipe=masked(vocabulary=5000) | {"tokenizer": TOKENIZER})).recipe
    assert words.files == (FileRef("tokenizer", "c" * 64, 0, TOKENIZER["url"]),)
    pictures = parse_manifest(raw(recipe=images())).recipe
    assert (pictures.layout, pictures.files) == (ImageLayout(3, 8, 4), ())
    adapting = parse_manifest(raw(recipe=lora("gpt2", ["c_attn"]))).recipe
    assert adapting.layout == TextLayout(32, 256)
    assert adapting.files == (
        FileRef("base weights", "b" * 64, 13_000_000_000, "https://example.org/base.safetensors"),
    )


def test_files_count_for_the_run_by_their_hash_alone():
    def run_id(**file):
        recipe = lora()
        return parse_manifest(raw(recipe=recipe | {"base": recipe["base"] | file})).run_id

    assert run_id() == run_id(url="https://mirror.example.org/base.safetensors")
    assert run_id() != run_id(sha256="d" * 64)


def test_hidden_characters_never_reach_the_screen():
    assert parse_manifest(raw(title="Tiny\u202e\u200b\x07 model\u2028")).title == "Tiny model"
    assert plain("e\u0301\ttwo\nlines") == "é two lines"
    assert plain("\u3164\u2800model\u115f\ud800") == "model"


@given(st.text())
def test_plain_text_is_stable_and_has_no_hidden_characters(text):
    once = plain(text)
    assert plain(once) == once
    assert once.isprintable()


@pytest.mark.parametrize(
    "address",
    [
        "/ip6/2001:db8::1/tcp/443/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN",
        "/dns4/seed.example.org/tcp/443/wss/p2p/" + PEER.split("/")[-1],
        "/ip4/203.0.113.7/udp/4001/quic-v1/p2p/" + PEER.split("/")[-1],
    ],
)
def test_the_usual_kinds_of_addresses_are_accepted(address):
    assert parse_manifest(raw(peers=[address])).peers == (address,)


def test_run_ids_differ_where_peers_could_not_average():
    same = parse_manifest(raw())
    assert (
        same.run_id == parse_manifest(raw(revision=9, title="Other", peers=[PEER], sync__matchmaking_seconds=9)).run_id
    )
    assert same.run_id == "tiny-code-lm-2c6012a9"  # as before there was `initial_state`
    assert "." not in same.run_id
    for changes in (
        {"recipe__model__layers": 5},
        {"recipe__seed": 1},
        {"publisher__key": "ed25519:" + "B" * 42 + "A="},
        {"optimizer__name": "lamb"},
        {"optimizer__learning_rate": 0.5},
        {"optimizer__betas": [0, 0]},
        {"optimizer__weight_decay": 0.2},
        {"optimizer__clip_norm": None},
        {"schedule__warmup_epochs": 21},
        {"schedule__kind": "linear"},
        {"schedule__total_epochs": 2001},
        {"sync__target_batch_size": 513},
        {"sync__average_state_every": 2},
        {"sync__grad_compression": "uniform-8bit"},
        {"sync__state_compression": "none"},
        {"sync__powersgd": {"rank": 4, "min_compression_ratio": 0.5}},
    ):
        assert parse_manifest(raw(**changes)).run_id != same.run_id


@pytest.mark.parametrize(
    ("common", "change", "differ"),
    [
        # the threshold matters only for size-adaptive; a state can be loaded with any compression
        ({}, {"sync__size_adaptive_threshold": 9}, False),
        ({"sync__load_compression": "size-adaptive"}, {"sync__size_adaptive_threshold": 9}, False),
        ({"sync__grad_compression": "size-adaptive"}, {"sync__size_adaptive_threshold": 9}, True),
        ({}, {"sync__load_compression": "uniform-8bit"}, False),
        # peers that began with different states average together
        ({}, {"initial_state": "signed"}, False),
        ({}, {"sync__offload_optimizer": False, "sync__delay_optimizer_step": False}, False),
        # a constant learning rate does not depend on the run's length
        ({"schedule__kind": "constant"}, {"schedule__total_epochs": 2001}, False),
        ({"schedule__kind": "constant"}, {"schedule__warmup_epochs": 21}, True),
        ({"sync__powersgd": {"rank": 4, "min_compression_ratio": 0.5}}, {"sync__powersgd__rank": 8}, True),
    ],
)
def test_what_need_not_be_equal_is_no_part_of_the_run_id(common, change, differ):
    before, after = parse_manifest(raw(**common)), parse_manifest(raw(**common, **change))
    assert (before.run_id != after.run_id) is differ


def test_whole_numbers_may_be_written_with_a_fraction():
    ids = {parse_manifest(raw(optimizer__weight_decay=decay)).run_id for decay in (1, 1.0)}
    assert len(ids) == 1


@pytest.mark.parametrize("flags", list(itertools.product([False, True], repeat=5)))
def test_of_the_combinations_of_flags_those_that_train_are_accepted(flags):
    """Offload, reuse, and the delay of the step, of gradients and of the state: twelve combinations train exactly."""
    names = ("offload_optimizer", "reuse_grad_buffers", *(f"delay_{what}" for what in DELAYS))
    code = "".join(str(int(flag)) for flag in flags)
    said = said_of(raw(**{f"sync__{name}": flag for name, flag in zip(names, flags, strict=True)}))
    assert (said == "") is (code in TRAINING), said
    assert said == "" or said.startswith("The manifest is not valid: sync.delay_")


DELAYS = ("optimizer_step", "grad_averaging", "state_averaging")
TRAINING = ["00000", "00001", "01000", "01001", "10000", "10001", "11000", "11001", "10101", "10111", "11101", "11111"]


def test_a_fingerprint_is_read_in_groups_of_four():
    assert fingerprint(bytes(32)) == "6668 7aad f862 bd77"


@pytest.mark.way_in
def test_an_expired_manifest_is_refused():
    manifest = parse_manifest(raw(expires="2026-01-01T00:00:00Z"))
    check_expiry(manifest, datetime(2025, 12, 31, tzinfo=UTC))
    with raises(ManifestError, match=r'The manifest of "Tiny code model" expired on 2026-01-01\.'):
        check_expiry(manifest, datetime(2026, 1, 1, tzinfo=UTC))


def said_of(data):
    """The sentence that refuses the bytes; empty if they are a valid manifest."""
    try:
        assert isinstance(parse_manifest(data), Manifest)
    except ManifestError as error:
        return in_english(error.title)
    return ""


@given(st.binary(max_size=300))
def test_any_bytes_are_a_manifest_or_a_sentence(data):
    assert said_of(data).endswith(".")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
PATHS = [name for name in EXAMPLE if not isinstance(EXAMPLE[name], dict)] + [
    f"{outer}__{inner}" for outer in EXAMPLE if isinstance(EXAMPLE[outer], dict) for inner in EXAMPLE[outer]
]


RELATED = {"total_epochs": "warmup_epochs", "matchmaking_seconds": "averaging_timeout_seconds"}


@settings(max_examples=300)
@given(st.sampled_from(PATHS), JSON)
def test_one_changed_field_is_accepted_or_named(path, value):
    said = said_of(json.dumps(example(**{path: value})).encode())
    field = path.split("__")[-1]
    named = (field, RELATED.get(field, "delay_optimizer_step"), "sync.powersgd.", "nested too deeply", "far too large")
    assert not said or any(name in said for name in named)


SEED = EXAMPLE["peers"][0]


@pytest.mark.parametrize(
    ("changes", "field", "host"),
    [
        ({"data__index": "https://192.168.1.1/index.json"}, "data.index", "192.168.1.1"),
        ({"data__index": "http://127.0.0.1/index.json"}, "data.index", "127.0.0.1"),
        ({"homepage": "https://[fd00::1]/"}, "homepage", "fd00::1"),
        (
            {"recipe": masked(vocabulary=5000) | {"tokenizer": TOKENIZER | {"url": "https://nas.local/t.json"}}},
            "recipe",
            "nas.local",
        ),
        ({"recipe": lora(), "recipe__base__url": "https://2130706433/base"}, "recipe", "2130706433"),
        ({"peers": [SEED, PEER]}, "peers[1]", "127.0.0.1"),
        ({"peers": [SEED.replace("seed1.example.org", "localhost")]}, "peers[0]", "localhost"),
        ({"peers": ["/ip6/fe80::1" + SEED.removeprefix("/dns4/seed1.example.org")]}, "peers[0]", "fe80::1"),
    ],
)
def test_a_manifest_from_the_internet_names_hosts_on_the_internet_only(changes, field, host):
    manifest = parse_manifest(raw(**({"peers": [SEED]} | changes)))
    check_reach(manifest, Reach.ANY)
    with pytest.raises(ManifestError) as refused:
        check_reach(manifest, Reach.GLOBAL)
    assert f"names {host} in {field}," in in_english(refused.value.title)
    assert "add the project from there" in in_english(refused.value.hint)


@pytest.mark.parametrize("homepage", ["", "https://example.org"])
def test_a_manifest_that_names_others_only_is_fine_from_anywhere(homepage):
    check_reach(parse_manifest(raw(peers=[SEED], homepage=homepage, recipe=lora())), Reach.GLOBAL)
