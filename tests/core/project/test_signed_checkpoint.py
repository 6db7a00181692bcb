import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from english import in_english
from manifests import raw
from skep.core.errors import CheckpointError
from skep.core.project import signed_checkpoint
from skep.core.project.signed_checkpoint import LIMIT, CheckpointFile, check, draft, file_of, later, missing, read
from skep.recipes.registry import parse_manifest

NOW = datetime(2026, 5, 1, 12, 0, 0, 500, tzinfo=UTC)
SOON = timedelta(seconds=1)
MANIFEST = parse_manifest(raw(initial_state="signed"))
FILE = CheckpointFile(MANIFEST.run_id, 40, "ab" * 32, 12_345)


def sign(message):
    """A simple signature for tests: any change of the message changes it."""
    return (str(hash(message)).encode() * 64)[:64]


def verify(key, signature, message):
    return key == MANIFEST.publisher.key and signature == sign(message)


def signed(plain):
    return replace(plain, signature=sign(plain.signed_bytes))


def made(earlier=None, now=NOW, **changes):
    return signed(draft(MANIFEST, earlier, replace(FILE, **changes), now))


def refusal(call, *arguments):
    with pytest.raises(CheckpointError) as raised:
        call(*arguments)
    assert raised.value.exit_code == 2
    assert in_english(raised.value.title).endswith(".")
    assert in_english(raised.value.hint).endswith(".")
    return in_english(raised.value.title)


def test_what_was_drafted_and_signed_is_read_back_and_names_the_file():
    found = read(made().text.encode(), verify)
    assert found == made()
    check(found, MANIFEST)
    assert signed_checkpoint.address(MANIFEST) == "https://example.org/tiny/tiny-code-lm.checkpoint.json"
    file = file_of(found, MANIFEST)
    assert (file.sha256, file.bytes) == (FILE.sha256, FILE.size)
    assert file.address == f"https://example.org/tiny/{FILE.sha256}.safetensors"


def test_a_project_demands_a_checkpoint_where_its_manifest_says_so():
    assert MANIFEST.begins_signed
    assert not parse_manifest(raw()).begins_signed


def test_nothing_but_a_note_is_ever_signed_by_these_bytes():
    assert made().signed_bytes.startswith(b"skep checkpoint v1\n{")


def test_only_a_checkpoint_of_the_manifests_run_is_signed():
    assert "The checkpoint is of the run other, and" in refusal(lambda: made(run_id="other"))


def test_a_later_note_counts_as_later_even_where_the_publishers_clock_went_back():
    first = made()
    second = made(first, NOW - timedelta(days=1), epoch=41)
    assert second.issued == first.issued + SOON
    assert later(first, second) == second


@pytest.mark.way_in
def test_a_step_back_is_refused():
    old, new = made(), made(now=NOW + timedelta(days=1), epoch=80)
    assert later(None, old) == old
    assert later(old, old) == old
    assert later(old, new) == new
    assert refusal(later, new, old).startswith("The signed checkpoint is of 2026-05-01, and a later one, of 2026-05-02")
    assert refusal(later, new, signed(replace(new, epoch=81))).startswith("The signed checkpoint is of 2026-05-02")


@pytest.mark.way_in
@pytest.mark.parametrize(
    "change",
    [
        {"project": "other-project"},
        {"run_id": "other-run"},
        {"epoch": 41},
        {"sha256": "cd" * 32},
        {"size": 1},
        {"issued": "2099-01-01T00:00:00Z"},
        {"signature": "A" * 86 + "=="},
    ],
)
def test_whatever_is_changed_afterwards_is_noticed(change):
    body = json.loads(made().text) | change
    assert refusal(read, json.dumps(body).encode(), verify).endswith("was changed after it was signed.")


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        (b"", "it is not JSON (line 1)"),
        (b" " * (LIMIT + 1), "it is larger than 4 KiB"),
        (b'{"format": 2}', "project is missing"),
        (made().text.replace('"format": 1', '"format": 2').encode(), "format must be 1"),
        (made().text.replace(FILE.sha256, "AB").encode(), "sha256 must be a SHA-256 in 64 lower-case hex digits"),
        (made().text.replace('"epoch": 40', '"epoch": -1').encode(), "epoch must be a whole number from 0 to 10000000"),
        (made().text.replace('"epoch"', '"epoche"').encode(), "epoche is not a known field"),
    ],
)
def test_what_is_no_note_is_refused_in_one_sentence(content, phrase):
    assert refusal(read, content, verify) == f"The note of the signed checkpoint is not valid: {phrase}."


def test_the_largest_note_is_not_too_large():
    full = replace(made(), project="p" * 40, run_id="r" * 60, epoch=10_000_000, size=signed_checkpoint.MOST_BYTES)
    assert len(signed(full).text) < LIMIT
    assert read(signed(full).text.encode(), verify) == signed(full)


@pytest.mark.way_in
def test_only_the_note_of_this_project_publisher_and_run_is_used():
    assert "of another project" in refusal(check, replace(made(), project="other-project"), MANIFEST)
    assert "signed with another key" in refusal(check, replace(made(), publisher=b"k" * 32), MANIFEST)
    assert "of another run, tiny-code-lm-0" in refusal(check, replace(made(), run_id="tiny-code-lm-0"), MANIFEST)


def test_a_project_without_a_first_note_says_who_signs_it():
    error = missing(MANIFEST)
    assert in_english(error.title) == (
        "Tiny code model begins with its publisher's signed checkpoint only, and there is none at "
        "https://example.org/tiny/tiny-code-lm.checkpoint.json."
    )
    assert "skep project checkpoint" in in_english(error.hint)
