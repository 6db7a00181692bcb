"""A `.skep` file contains one join link and nothing else; other sources are not changed."""

import pytest

from english import raises
from skep.adapters.net.catalogue import resolved
from skep.core.errors import BadInput
from skep.core.project.links import EXAMPLE, LENGTH_LIMIT


def test_the_link_in_a_file_is_found_by_path_and_by_address(tmp_path):
    file = tmp_path / "my project.skep"
    file.write_text(f"{EXAMPLE}\n")
    assert resolved(str(file)) == EXAMPLE
    assert resolved(file.as_uri()) == EXAMPLE


def test_other_sources_stay_what_they_are(tmp_path):
    for source in (EXAMPLE, "https://example.org/a.skep", "/somewhere/project.json", "tiny"):
        assert resolved(source) == source
    assert resolved((tmp_path / "a b.json").as_uri()) == str(tmp_path / "a b.json")


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"https://example.org/project.json", b"\xff\xfe", b"skep:" + b"a" * LENGTH_LIMIT]
)
def test_a_file_without_a_link_is_refused_in_a_sentence(tmp_path, content):
    file = tmp_path / "bad.skep"
    file.write_bytes(content)
    with raises(BadInput, match="contains no join link"):
        resolved(str(file))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with raises(BadInput, match="cannot be read"):
        resolved(str(tmp_path / "gone.skep"))
