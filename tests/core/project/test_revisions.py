import pytest

from english import in_english, raises
from manifests import raw
from skep.core.errors import ManifestError
from skep.core.project.revisions import NeedsConsent, check_revision, rising
from skep.recipes.registry import parse_manifest

OLD = parse_manifest(raw())


def later(**changes):
    return parse_manifest(raw(**({"revision": 4} | changes)))


def test_a_higher_revision_by_the_same_publisher_is_taken():
    check_revision(OLD, later(title="New name"), same_bytes=False, consent=False)


def test_the_same_file_again_is_fine():
    check_revision(OLD, OLD, same_bytes=True, consent=False)


@pytest.mark.way_in
@pytest.mark.parametrize("revision", [2, 3])
def test_an_older_or_equal_revision_is_refused(revision):
    with raises(ManifestError, match=f"is revision {revision}, and revision 3 is already known"):
        check_revision(OLD, later(revision=revision, title="x"), same_bytes=False, consent=True)


@pytest.mark.way_in
def test_another_publisher_is_refused_even_with_consent():
    with raises(ManifestError, match="signed by another publisher"):
        check_revision(OLD, later(publisher__key="ed25519:" + "B" * 42 + "A="), same_bytes=False, consent=True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"needs__memory_gb": 4}, "memory 2 → 4"),
        ({"needs__vram_gb": 4}, "GPU memory 2 → 4"),
        ({"needs__disk_gb": 5}, "disk space 1 → 5"),
        ({"needs__upload_mbit": 9}, "upload 5 → 9"),
        ({"sync__grad_compression": "none"}, "traffic per 1000 samples"),
        ({"sync__target_batch_size": 256}, "traffic per 1000 samples"),
        ({"recipe__model__layers": 8}, "traffic per 1000 samples"),
    ],
)
def test_asking_for_more_needs_a_new_click(changes, words):
    with raises(NeedsConsent, match=words):
        check_revision(OLD, later(**changes), same_bytes=False, consent=False)
    check_revision(OLD, later(**changes), same_bytes=False, consent=True)


@pytest.mark.parametrize("changes", [{"needs__memory_gb": 1}, {"sync__target_batch_size": 1024}])
def test_asking_for_less_needs_none(changes):
    check_revision(OLD, later(**changes), same_bytes=False, consent=False)


def test_everything_that_rose_is_listed_with_what_it_was():
    assert in_english(rising(OLD, later(needs__memory_gb=4, needs__disk_gb=2, sync__grad_compression="none"))) == [
        "memory 2 → 4",
        "disk space 1 → 2",
        "traffic per 1000 samples 51.4 → 77.1 MB",
    ]
