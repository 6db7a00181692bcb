"""The list of revoked invitations, from a real web server."""

import queue

import pytest

from downloads import wait_for
from english import in_english
from invitations import Project, identity
from skep.adapters.net.revocations import PublishedRevocations
from skep.core.project import revocation
from skep.core.project.addresses import Reach
from skep.core.session.messages import ProblemArose, RevocationsArrived
from skep.host.server.file_server import serving

SOON = 20.0


@pytest.fixture
def web(tmp_path):
    """A web server's folder, and the address of its index."""
    folder = tmp_path / "web"
    folder.mkdir()
    with serving(folder) as address:
        yield folder, f"{address}/index.json"


@pytest.fixture
def project(web):
    return Project(data__index=web[1])


@pytest.fixture
def peer(tmp_path):
    return identity(tmp_path, "peer").peer_id


@pytest.fixture
def posted():
    return queue.SimpleQueue()


@pytest.fixture
def watch(tmp_path, posted, project):
    made = []

    def start(**pauses):
        made.append(PublishedRevocations(tmp_path / "kept", **({"every": 0.05, "retry": 0.05} | pauses)))
        return made[-1].watch(project.manifest, Reach.ANY, posted.put)

    yield start
    for each in made:
        each.close()


def publish(web, project, text):
    """At once: the server must not read half of it."""
    written = web[0] / "written"
    written.write_text(text)
    written.replace(web[0] / revocation.file_name(project.manifest))


def kept(tmp_path, project):
    return tmp_path / "kept" / revocation.file_name(project.manifest)


def test_it_is_fetched_at_the_start_and_again_and_kept_for_the_next_start(web, project, peer, watch, posted, tmp_path):
    first, second = project.revoke(since=1), project.revoke(peer)
    publish(web, project, first)
    assert watch() == ""
    assert posted.get(timeout=SOON) == RevocationsArrived(first)
    publish(web, project, second)
    assert posted.get(timeout=SOON) == RevocationsArrived(second)
    web[0].joinpath(revocation.file_name(project.manifest)).unlink()
    assert watch() == second
    with pytest.raises(queue.Empty):
        posted.get(timeout=0.3)
    assert kept(tmp_path, project).read_text() == second


@pytest.mark.way_in
@pytest.mark.parametrize(
    ("false", "words"),
    [
        (lambda project, peer: project.revoke(peer, since=2), "and a later one"),
        (lambda project, peer: Project().revoke(peer), "signed with another key"),
        (lambda project, peer: "rubbish", "it is not JSON"),
        (lambda project, peer: " " * (revocation.LIMIT + 1), "larger than 512 KiB"),
    ],
)
def test_what_is_older_or_not_the_publishers_is_not_used_and_said_once(
    web, project, peer, watch, posted, tmp_path, false, words
):
    held = project.revoke(peer, since=1)
    publish(web, project, held)
    watch()
    assert posted.get(timeout=SOON) == RevocationsArrived(held)
    publish(web, project, false(project, peer))
    told = posted.get(timeout=SOON)
    assert isinstance(told, ProblemArose)
    assert words in in_english(told.problem.title)
    with pytest.raises(queue.Empty):
        posted.get(timeout=0.3)
    assert watch() == held  # also after a new start


def test_an_open_project_has_none(web, tmp_path, posted):
    lists = PublishedRevocations(tmp_path / "kept")
    assert lists.watch(Project("open", data__index=web[1]).manifest, Reach.ANY, posted.put) == ""
    lists.close()
    assert not (tmp_path / "kept").exists()


def test_a_list_that_cannot_be_kept_counts_all_the_same(web, project, peer, watch, posted, tmp_path):
    (tmp_path / "kept").write_text("a file where the folder would be")
    publish(web, project, project.revoke(peer))
    watch()
    assert isinstance(posted.get(timeout=SOON), RevocationsArrived)


def test_a_list_that_could_not_be_kept_is_kept_when_it_can_be(web, project, peer, watch, posted, tmp_path):
    (tmp_path / "kept").write_text("a file where the folder would be")
    publish(web, project, project.revoke(peer))
    watch()
    arrived = posted.get(timeout=SOON)
    (tmp_path / "kept").unlink()
    wait_for(kept(tmp_path, project).exists)
    assert kept(tmp_path, project).read_text() == arrived.text
    assert posted.empty()


def test_a_damaged_kept_list_is_replaced(web, project, peer, watch, posted, tmp_path):
    kept(tmp_path, project).parent.mkdir()
    kept(tmp_path, project).write_text("{")
    publish(web, project, project.revoke(peer))
    assert watch() == ""
    arrived = posted.get(timeout=SOON)
    assert kept(tmp_path, project).read_text() == arrived.text
