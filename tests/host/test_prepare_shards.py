"""`skep project shards`, from an author's files to shards that a worker opens; every mistake causes one sentence."""

import hashlib
import json
import resource
import subprocess

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from english import raises
from recipe_files import tokenizer
from skep.core.errors import BadInput
from skep.core.project.data import ImageLayout, ShardRef, TextLayout
from skep.core.project.shards import parse_index, shard_name
from skep.host.shards import corpus, dataset
from skep.host.shards.prepare import Cut, prepare_images, prepare_text
from skep.worker.training.data import open_shard
from terminals import SKEP

PLAIN = Cut(samples_per_shard=None, held_out=50)


def run(*arguments, **options):
    command = [*SKEP, "project", "shards", *map(str, arguments), "--json"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200, **options)


@pytest.fixture
def texts(tmp_path):
    """60 files in folders; each line contains the numbers of its file and line."""
    folder = tmp_path / "texts"
    for number in range(60):
        path = folder / f"part-{number % 3}" / f"{number:02}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"file {number:02} line {line:03} äö\n" for line in range(number + 20)))
    return folder


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pictures"
    for label, name in enumerate(("bee", "hive")):
        (folder / name).mkdir(parents=True)
        for number in range(40):
            colour = (100 * label, 2 * number, 7)
            Image.new("RGB", (20 + number, 16), colour).save(folder / name / f"{number}.png")
    return folder


def tokens(folder, shards):
    return np.concatenate([load_file(folder / shard_name(shard.sha256))["tokens"] for shard in shards])


# --- end to end


def test_a_folder_of_text_becomes_what_a_worker_opens(texts, tmp_path):
    out = tmp_path / "served"
    said = run(texts, "--out", out, "--sequence-length", "32", "--address", "https://example.org/data/")
    assert (said.returncode, said.stderr) == (0, "")
    body = json.loads(said.stdout)
    raw = (out / "index.json").read_bytes()
    assert body["data"] == {
        "index": "https://example.org/data/index.json",
        "sha256": hashlib.sha256(raw).hexdigest(),
    }
    assert body["recipe"] == {"sequence_length": 32, "vocabulary": 256, "tokenizer": "bytes"}
    index = parse_index(raw, TextLayout(32, 256))
    assert len(index.shards) == body["shards"] == 8
    for shard in (*index.shards, *index.held_out):
        assert len(open_shard(out / shard_name(shard.sha256), shard, index.layout)) == shard.samples
    assert {path.name for path in out.iterdir()} == {"index.json"} | {
        shard_name(shard.sha256) for shard in (*index.shards, *index.held_out)
    }
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_images_in_folders_become_what_a_worker_opens(pictures, tmp_path):
    out = tmp_path / "served"
    said = run(pictures, "--out", out, "--images", "8")
    assert (said.returncode, said.stderr) == (0, "")
    body = json.loads(said.stdout)
    assert body["recipe"] == {"image_size": 8, "channels": 3, "classes": 2, "class_names": ["bee", "hive"]}
    index = parse_index((out / "index.json").read_bytes(), ImageLayout(3, 8, 2))
    assert (body["samples"], body["held_out_samples"]) == (76, 4)
    for shard in (*index.shards, *index.held_out):
        rows = open_shard(out / shard_name(shard.sha256), shard, index.layout)
        assert set(rows.labels.tolist()) == {0, 1}
        for pixels, label in zip(rows.inputs, rows.labels, strict=True):
            assert pixels[0].unique().tolist() == [100 * int(label)]


def test_a_full_disk_is_one_sentence_and_nothing_is_left(texts, tmp_path):
    def no_large_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    said = run(texts, "--out", tmp_path / "served", preexec_fn=no_large_files)
    assert said.returncode == 1
    assert json.loads(said.stdout)["title"].startswith("Training data cannot be written to")
    assert [path.name for path in tmp_path.iterdir()] == ["texts"]


def refused(said):
    assert said.returncode == 2, said.stderr
    assert "Traceback" not in said.stderr
    return json.loads(said.stdout)["title"]


def test_slips_are_told_to_both_kinds_of_reader(texts, tmp_path):
    said = run(texts, "--out", texts)
    assert refused(said) == f"{texts} already exists."
    assert said.stderr.startswith(f"{texts} already exists.")
    assert refused(run(texts, "--out", tmp_path / "x", "--sequence-length", "7")).startswith(
        "--sequence-length must be"
    )


# --- text


def prepared(texts, out, **options):
    return prepare_text([texts], out, **({"tokenizer": "bytes", "length": 16, "cut": PLAIN} | options))


def test_the_same_files_give_the_same_hashes_wherever_they_lie(texts, tmp_path):
    one = prepared(texts, tmp_path / "one")
    moved = texts.rename(tmp_path / "moved")
    assert prepared(moved, tmp_path / "two").sha256 == one.sha256


def test_held_out_text_comes_from_files_of_its_own_and_nothing_else_is_lost(texts, tmp_path):
    made = prepared(texts, tmp_path / "out")
    training = [bytes(row) for row in tokens(made.folder, made.index.shards)]
    held_out = [bytes(row) for row in tokens(made.folder, made.index.held_out)]
    parts = corpus.divide(corpus.find_files([texts]), hold_out=True)
    names = {f"file {segment.path.stem}".encode() for segment in parts.held_out}
    assert len(names) == 3
    assert 0 < len(held_out) <= 50
    assert any(name in b"".join(held_out) for name in names)
    whole = b"".join(segment.path.read_bytes() for segment in parts.training)
    cut = [whole[start : start + 16] for start in range(0, len(whole) - 15, 16)]
    assert sorted(training) == sorted(cut)
    assert not any(name in whole for name in names)


def test_every_shard_has_the_same_mix(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("".join(chr(97 + place * 26 // 100_000) for place in range(100_000)))
    made = prepared(path, tmp_path / "out", cut=Cut(500, 0))
    shares = [np.bincount(tokens(made.folder, [shard]).ravel(), minlength=128) for shard in made.index.shards[:-1]]
    assert len(shares) == 12
    for share in shares:
        assert share[97 : 97 + 26].min() > 0.8 * 8000 / 26


def test_a_single_file_gives_its_beginning_to_what_is_held_out(tmp_path):
    path = tmp_path / "one.txt"
    text = "ä".join(str(number) for number in range(2000)).encode()
    path.write_bytes(text)
    made = prepared(path, tmp_path / "out", cut=Cut(10_000, 100))
    end = next(place for place in range(len(text) // 20, len(text)) if text[place] & 0xC0 != 0x80)

    def cut(part):
        return sorted(part[start : start + 16] for start in range(0, len(part) - 15, 16))

    held_out = tokens(made.folder, made.index.held_out)
    assert sorted(bytes(row) for row in held_out) == cut(text[:end])
    assert sorted(bytes(row) for row in tokens(made.folder, made.index.shards)) == cut(text[end:])


def test_large_files_stream(tmp_path):
    """A file that is read in several pieces is complete, even if characters and lines cross their borders."""
    path = tmp_path / "long.txt"
    path.write_text("".join("äöü" * (number % 70) + "\n" for number in range(15_000)))
    raw = path.read_bytes()
    assert len(raw) > 2.5 * corpus.PIECE
    made = prepared(path, tmp_path / "out", cut=Cut(None, 0))
    rows = [row.tobytes() for row in tokens(made.folder, made.index.shards)]
    assert sorted(rows) == sorted(raw[at : at + 16] for at in range(0, len(raw) - 15, 16))


def test_a_tokenizer_file_makes_the_tokens_and_is_served_beside_them(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a b b\n" * 200)
    made = prepared(path, tmp_path / "out", tokenizer=str(tokenizer(tmp_path)), cut=Cut(1000, 0))
    assert made.index.layout == TextLayout(16, 4)
    found = tokens(made.folder, made.index.shards)
    assert found.dtype == np.int32
    assert np.array_equal(np.sort(found.ravel())[:3], [2, 2, 2])
    assert set(found.ravel().tolist()) == {2, 3}
    assert (made.folder / "tokenizer.json").read_bytes() == (tmp_path / "tokenizer.json").read_bytes()


def test_text_that_is_not_utf8_is_named(texts, tmp_path):
    (texts / "part-1" / "latin.txt").write_bytes("Bär ".encode("latin-1") * 10)
    with raises(BadInput, match=r"latin\.txt is not UTF-8 text near byte 1\."):
        prepared(texts, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (lambda folder: folder / "gone", {}, "There is no file or folder"),
        (lambda folder: (folder / "empty").mkdir() or folder / "empty", {}, "There are no files in"),
        (lambda folder: (folder / "a").write_text("abc") and folder / "a", {}, "The files contain too little text"),
        (lambda folder: folder / "texts", {"tokenizer": "gone.json"}, "There is no tokenizer gone.json."),
        (lambda folder: folder / "texts", {"tokenizer": __file__}, "is not a tokenizer: The tokenizer cannot be read"),
        (lambda folder: folder / "texts", {"cut": Cut(10**7, 0)}, "A shard may hold 1 to 262144 samples"),
    ],
)
def test_what_cannot_become_shards_is_one_sentence(texts, tmp_path, make, options, said):
    with raises(BadInput, match=said):
        prepared(make(tmp_path), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_text_that_repeats_itself_is_refused(tmp_path):
    path = tmp_path / "same.txt"
    path.write_text("abcdefgh" * 1000)
    with raises(Exception, match=r"This data cannot be turned into a dataset: .* is listed twice"):
        prepared(path, tmp_path / "out")


def test_the_stride_meets_every_sample_once():
    for count in (1, 2, 3, 10, 97, 1000, 4096):
        step = dataset._step(count)
        assert sorted(np.arange(count) * step % count) == list(range(count))


# --- images


def test_grey_images_and_the_same_hashes(pictures, tmp_path):
    one, _ = prepare_images(pictures, tmp_path / "one", 8, 1, PLAIN)
    two, _ = prepare_images(pictures, tmp_path / "two", 8, 1, PLAIN)
    assert one.sha256 == two.sha256
    shard: ShardRef = one.index.shards[0]
    assert open_shard(one.folder / shard_name(shard.sha256), shard, one.index.layout).inputs.shape[1:] == (1, 8, 8)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("note.txt", b"hello", r"note\.txt is not an image"), ("cut.png", None, r"cut\.png cannot be (used|read)")],
)
def test_a_file_that_is_no_image_is_named(pictures, tmp_path, name, content, said):
    whole = (pictures / "bee" / "1.png").read_bytes()
    (pictures / "bee" / name).write_bytes(content or whole[: len(whole) // 2])
    with raises(BadInput, match=said):
        prepare_images(pictures, tmp_path / "out", 8, 3, PLAIN)
    assert not (tmp_path / "out").exists()


def test_images_without_folders_for_classes_are_refused(pictures, tmp_path):
    with raises(BadInput, match="does not contain a folder for each of two or more classes"):
        prepare_images(pictures / "bee", tmp_path / "out", 8, 3, PLAIN)
    with raises(BadInput, match="There is no folder"):
        prepare_images(tmp_path / "gone", tmp_path / "out", 8, 3, PLAIN)
    with raises(BadInput, match="An image has 1 or 3 channels, not 2"):
        prepare_images(pictures, tmp_path / "out", 8, 2, PLAIN)
