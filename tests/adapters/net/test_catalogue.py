from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from english import in_english, raises
from manifests import signed
from skep.adapters.net.catalogue import FileCatalogue
from skep.adapters.storage import signing
from skep.core.errors import BadInput, ManifestError, StorageError
from skep.core.project import links
from skep.core.project.revisions import NeedsConsent
from web_of_faults import FaultyServer, endless, missing, status, whole

SEED = "/dns4/seed1.example.org/tcp/443/p2p/QmZtmD2qt6fJot32nabSP3CUjicnypEBz7bHVDhPQt9aAy"


@pytest.fixture
def catalogue(tmp_path):
    return FileCatalogue(tmp_path / "projects", now=lambda: datetime(2026, 11, 21, tzinfo=UTC))


@pytest.fixture
def publisher(tmp_path):
    folder = tmp_path / "publisher"
    folder.mkdir()
    return folder


def test_an_added_project_is_found_by_id_and_by_title(catalogue, publisher):
    path = signed(publisher)
    added = catalogue.add(str(path))
    assert added.id == "tiny-code-lm"
    assert added.text == path.read_text()
    assert added.source == str(path)
    assert added.fingerprint.count(" ") == 3
    assert added.manifest.title == "Tiny code model"
    assert catalogue.find("tiny-code-lm") == added
    assert catalogue.find("tiny CODE model") == added
    assert list(catalogue.projects()) == [added]


def test_an_unknown_project_names_the_known_ones(catalogue, publisher):
    with raises(BadInput, match='There is no project "nothing" here') as refused:
        catalogue.find("nothing")
    assert "skep project add" in in_english(refused.value.hint)
    catalogue.add(str(signed(publisher)))
    with pytest.raises(BadInput) as refused:
        catalogue.find("nothing")
    assert in_english(refused.value.hint) == "The known ones are: tiny-code-lm."


def test_a_path_is_no_way_out_of_the_folder(catalogue, publisher):
    catalogue.add(str(signed(publisher)))
    for name in ("../projects/tiny-code-lm", ".", "..", "", "x" * 5000, "a\0b", "\ud800"):
        with raises(BadInput, match="There is no project"):
            catalogue.find(name)


def test_a_title_that_two_projects_share_leads_to_neither(catalogue, publisher):
    catalogue.add(str(signed(publisher)))
    catalogue.add(str(signed(publisher, id="second-one", title="TINY code model")))
    with raises(BadInput, match='Several projects are called "tiny code model"') as refused:
        catalogue.find("tiny code model")
    assert in_english(refused.value.hint) == "Name one by its id: second-one, tiny-code-lm."


def test_the_same_manifest_may_be_added_again(catalogue, publisher):
    path = str(signed(publisher))
    assert catalogue.add(path) == catalogue.add(path)


@pytest.mark.way_in
def test_another_manifest_with_the_same_revision_is_refused(catalogue, publisher):
    catalogue.add(str(signed(publisher)))
    with raises(ManifestError, match="revision 3, and revision 3 is already known"):
        catalogue.add(str(signed(publisher, title="New")))


def test_a_relative_path_and_a_home_are_understood(catalogue, publisher, monkeypatch):
    signed(publisher)
    monkeypatch.chdir(publisher)
    assert catalogue.add("manifest.json").source == str(publisher / "manifest.json")
    monkeypatch.setenv("HOME", str(publisher))
    assert catalogue.add("~/manifest.json").source == str(publisher / "manifest.json")


@pytest.mark.parametrize("path", ["a\0b", "nowhere.json"])
def test_a_path_that_leads_nowhere_is_named(catalogue, path):
    with raises(ManifestError, match="There is no manifest at"):
        catalogue.add(path)


def test_a_path_of_an_unknown_user_is_named(catalogue):
    with raises(BadInput, match="~nobody-of-that-name/manifest.json cannot be used, because there is no such user"):
        catalogue.add("~nobody-of-that-name/manifest.json")


@pytest.mark.way_in
def test_the_publishers_key_is_pinned(catalogue, publisher, tmp_path):
    catalogue.add(str(signed(publisher)))
    impostor = tmp_path / "impostor"
    impostor.mkdir()
    with raises(ManifestError, match="signed by another publisher"):
        catalogue.add(str(signed(impostor, revision=9)))
    assert catalogue.find("tiny-code-lm").revision == 3


@pytest.mark.way_in
def test_a_later_revision_takes_the_place_of_the_earlier_and_an_earlier_does_not(catalogue, publisher):
    catalogue.add(str(signed(publisher)))
    assert in_english(catalogue.add(str(signed(publisher, revision=4, title="New"))).title) == "New"
    with raises(ManifestError, match="revision 3, and revision 4 is already known"):
        catalogue.add(str(signed(publisher)))
    assert catalogue.find("tiny-code-lm").revision == 4


def test_asking_for_more_needs_consent(catalogue, publisher):
    catalogue.add(str(signed(publisher)))
    greedy = str(signed(publisher, revision=4, needs__memory_gb=64))
    with raises(NeedsConsent, match="memory 2 → 64"):
        catalogue.add(greedy)
    assert catalogue.find("tiny-code-lm").revision == 3
    assert catalogue.add(greedy, consent=True).revision == 4


@pytest.mark.way_in
def test_an_expired_manifest_is_not_added(catalogue, publisher):
    with raises(ManifestError, match="expired on 2026-01-01"):
        catalogue.add(str(signed(publisher, expires="2026-01-01T00:00:00Z")))
    assert list(catalogue.projects()) == []


def test_a_damaged_project_is_named_and_hides_no_other(catalogue, publisher, tmp_path):
    catalogue.add(str(signed(publisher)))
    catalogue.add(str(signed(publisher, id="second-one")))
    kept(tmp_path).write_text("{}")
    assert [project.id for project in catalogue.projects()] == ["second-one"]
    sentence = (
        'The stored files of the project "tiny-code-lm" are damaged: project.json is not valid: it is not complete.'
    )
    with pytest.raises(ManifestError) as refused:
        catalogue.find("tiny-code-lm")
    assert in_english(refused.value.title) == sentence
    assert [in_english(problem.title) for problem in catalogue.damaged()] == [sentence]


@pytest.mark.way_in
def test_a_damaged_project_does_not_lose_its_pinned_key(catalogue, publisher, tmp_path):
    catalogue.add(str(signed(publisher)))
    kept(tmp_path).write_bytes(kept(tmp_path).read_bytes()[:-20])
    impostor = tmp_path / "impostor"
    impostor.mkdir()
    with raises(ManifestError, match="are damaged"):
        catalogue.add(str(signed(impostor, revision=9)))


@pytest.mark.way_in
def test_what_is_kept_under_another_projects_name_is_damaged(catalogue, publisher, tmp_path):
    catalogue.add(str(signed(publisher)))
    kept(tmp_path).parent.rename(tmp_path / "projects" / "bank-model")
    with raises(ManifestError, match="it belongs to another project"):
        catalogue.find("bank-model")


@pytest.mark.way_in
@settings(max_examples=150)
@given(place=st.integers(min_value=0), byte=st.integers(0, 255), cut=st.booleans())
def test_whatever_happens_to_a_kept_file_is_noticed(kept_once, place, byte, cut):
    catalogue, path, good, added = kept_once
    at = place % len(good)
    path.write_bytes(good[:at] if cut else good[:at] + bytes([byte]) + good[at + 1 :])
    for found in catalogue.projects():
        assert found.text == added.text
    for problem in catalogue.damaged():
        assert in_english(problem.title).startswith('The stored files of the project "tiny-code-lm" are damaged: ')
    assert len(catalogue.projects()) + len(catalogue.damaged()) == 1


@pytest.fixture(scope="module")
def kept_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    catalogue = FileCatalogue(folder / "projects")
    added = catalogue.add(str(signed(folder)))
    return catalogue, kept(folder), kept(folder).read_bytes(), added


def kept(folder, project_id="tiny-code-lm"):
    return folder / "projects" / project_id / "project.json"


def test_a_folder_that_cannot_be_read_is_said(tmp_path):
    (tmp_path / "projects").write_text("a file")
    with raises(StorageError, match="cannot be read"):
        FileCatalogue(tmp_path / "projects").projects()


def test_no_folder_means_no_projects(catalogue):
    assert list(catalogue.projects()) == []
    assert list(catalogue.damaged()) == []


@pytest.fixture
def web():
    with FaultyServer() as server:
        yield server


def serve(web, path, **scripts):
    web.scripts["tiny.json"] = scripts.get("manifest", [whole(path.read_bytes())])
    web.scripts["tiny.json.sig"] = scripts.get("signature", [whole(signing.signature_path(path).read_bytes())])
    return f"{web.address}/tiny.json"


def test_from_the_web_both_files_are_fetched(catalogue, publisher, web):
    address = serve(web, signed(publisher))
    assert catalogue.add(address).source == address
    assert [name for name, _ in web.asked] == ["tiny.json", "tiny.json.sig"]


def test_the_signature_lies_beside_the_path_and_not_behind_a_query(tmp_path, publisher):
    path, asked = signed(publisher, peers=[SEED]), []

    def fetch(address, what, limit):
        asked.append(address)
        return signing.signature_path(path).read_bytes() if ".sig" in address else path.read_bytes()

    FileCatalogue(tmp_path / "projects", fetch=fetch).add("https://example.org/tiny.json?token=x#top")
    assert asked == ["https://example.org/tiny.json?token=x#top", "https://example.org/tiny.json.sig?token=x"]


@pytest.mark.parametrize(
    ("scripts", "sentence"),
    [
        ({"manifest": [missing]}, "The data server {host} does not have the manifest (HTTP 404)."),
        pytest.param(
            {"signature": [missing]},
            "The data server {host} does not have the manifest's signature (HTTP 404).",
            marks=pytest.mark.way_in,
        ),
        ({"manifest": [endless]}, "The file at {web}/tiny.json is larger than 64 KiB, so it is not the manifest."),
        (
            {"signature": [endless]},
            "The file at {web}/tiny.json.sig is larger than 4 KiB, so it is not the manifest's signature.",
        ),
        pytest.param(
            {"signature": [whole(b"<html>")]},
            "The manifest's signature file is not valid: it is not JSON (line 1).",
            marks=pytest.mark.way_in,
        ),
        ({"manifest": [status(503)]}, "The data server {host} reports an error of its own (HTTP 503)."),
    ],
)
def test_what_the_web_does_wrong_is_said_in_a_sentence(catalogue, publisher, web, scripts, sentence):
    address = serve(web, signed(publisher), **scripts)
    with pytest.raises(ManifestError) as refused:
        catalogue.add(address)
    assert in_english(refused.value.title) == sentence.format(web=web.address, host=web.address.removeprefix("http://"))
    assert in_english(refused.value.hint)
    assert list(catalogue.projects()) == []


def test_a_passing_trouble_of_the_server_is_waited_out(catalogue, publisher, web):
    path = signed(publisher)
    assert catalogue.add(serve(web, path, manifest=[status(503), whole(path.read_bytes())])).id == "tiny-code-lm"


@pytest.mark.parametrize("address", ["http://example.org/tiny.json", "ftp://example.org/a", "https://me@example.org/a"])
def test_a_web_address_that_is_not_https_is_refused(catalogue, address):
    with pytest.raises(ManifestError) as refused:
        catalogue.add(address)
    assert (
        in_english(refused.value.title)
        == f"The address {address} must be an https address (http only on this computer itself)."
    )


def test_a_folder_that_cannot_be_written_is_said(tmp_path, publisher):
    (tmp_path / "projects").write_text("a file")
    with raises(StorageError, match="cannot be stored"):
        FileCatalogue(tmp_path / "projects").add(str(signed(publisher)))


def test_a_join_link_leads_to_its_manifest(catalogue, publisher, web):
    path = signed(publisher)
    address = serve(web, path)
    added = catalogue.add(links.link_to(address, signing.ensure_key(publisher / "publisher.key")))
    assert added.source == address
    assert added.text == path.read_text()


@pytest.mark.way_in
def test_a_manifest_by_another_than_the_links_publisher_is_not_kept(catalogue, publisher, web):
    address = serve(web, signed(publisher))
    with raises(ManifestError, match="not the publisher that the link names"):
        catalogue.add(links.link_to(address, bytes(32)))
    assert list(catalogue.projects()) == []


def test_a_link_that_is_none_is_refused_before_anything_is_fetched(catalogue, web):
    with raises(BadInput, match="The link"):
        catalogue.add(f"skep://join?manifest={web.address}/tiny.json")
    assert not web.asked
