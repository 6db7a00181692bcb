"""A worker whose own invitation expires."""

import queue
import threading

import pytest

from english import in_english
from fakes import make_index
from invitations import Project, identity
from skep.core.session.messages import RevocationsArrived, WorkerOptions
from skep.core.text import Problem, verbatim
from skep.worker.connection import revoked
from skep.worker.main import Volunteer

SOON = 20


class LastWords(queue.SimpleQueue):
    """A link that blocks its sender, so that it does not depart: that would end this process."""

    def send(self, message):
        self.put(message)
        threading.Event().wait()


def volunteer(text, link):
    return Volunteer(WorkerOptions("", make_index(), invitation=text), link)


def test_a_worker_leaves_for_good_when_its_invitation_expires(tmp_path):
    text = Project().invite(identity(tmp_path, "one").peer_id, since=1, days=1 + 2 / 86_400)
    link = LastWords()
    volunteer(text, link)._leave_when_uninvited("Tiny code model")
    told = link.get(timeout=SOON)
    assert (
        in_english(told.problem.title)
        == "This computer's invitation to Tiny code model has expired, so the swarm does not answer it."
    )
    assert not told.retry


def test_a_worker_leaves_for_good_when_its_invitation_is_revoked(tmp_path):
    project, peer = Project(), identity(tmp_path, "one").peer_id
    link = LastWords()
    options = WorkerOptions(
        project.text, make_index(), invitation=project.invite(peer, since=1, days=9), run_folder=str(tmp_path)
    )
    leaving = Volunteer(options, link)
    leaving._hear(RevocationsArrived(project.revoke(identity(tmp_path, "two").peer_id)))
    assert (tmp_path / revoked.NAME).exists()
    threading.Thread(target=leaving._hear, args=[RevocationsArrived(project.revoke(peer))], daemon=True).start()
    told = link.get(timeout=SOON)
    assert in_english(told.problem.title) == (
        "The publisher has revoked this computer's invitation to Tiny code model, so the swarm does not answer it."
    )
    assert not told.retry


@pytest.mark.parametrize("is_told_to_stop", [False, True])
def test_what_fails_while_a_worker_ends_is_not_reported(is_told_to_stop, monkeypatch):
    link = LastWords()
    leaving = volunteer("", link)
    if is_told_to_stop:  # and the training thread has a moment to end it itself
        leaving._stop.set()
        monkeypatch.setattr(leaving, "depart", lambda *_: None)
    else:
        leaving._departing.acquire()  # as the thread that ends the process does
    problem = Problem(verbatim("A process is gone."), verbatim("Wait."))
    threading.Thread(target=leaving.fail, args=[problem], kwargs={"retry": True}, daemon=True).start()
    with pytest.raises(queue.Empty):
        link.get(timeout=0.5)


@pytest.mark.way_in
def test_a_list_of_another_project_is_not_taken(tmp_path):
    project, peer = Project(), identity(tmp_path, "one").peer_id
    options = WorkerOptions(
        project.text, make_index(), invitation=project.invite(peer, since=1, days=9), run_folder=str(tmp_path)
    )
    link = LastWords()
    news = RevocationsArrived(Project(id="another").revoke(peer))
    threading.Thread(target=Volunteer(options, link)._hear, args=[news], daemon=True).start()
    with pytest.raises(queue.Empty):
        link.get(timeout=0.5)
    assert not (tmp_path / revoked.NAME).exists()


class EarlyNews(LastWords):
    """A link whose reader has a message at once."""

    def __init__(self, message):
        super().__init__()
        self._message = message

    def listen(self, heard, _closed):
        heard(self._message)


def test_a_newer_list_is_not_followed_by_the_one_from_the_start(tmp_path):
    project, one, two = Project(), identity(tmp_path, "one").peer_id, identity(tmp_path, "two").peer_id
    older = project.revoke(one)
    newer = project.revoke(one, two)
    own = project.invite(identity(tmp_path, "three").peer_id)
    options = WorkerOptions(project.text, make_index(), invitation=own, run_folder=str(tmp_path), revocations=older)
    Volunteer(options, EarlyNews(RevocationsArrived(newer))).listen()
    assert (tmp_path / revoked.NAME).read_text() == newer


@pytest.mark.parametrize("days", [None, 3])
def test_otherwise_it_stays(tmp_path, days):
    text = Project().invite(identity(tmp_path, "one").peer_id, days=days) if days else ""
    link = LastWords()
    volunteer(text, link)._leave_when_uninvited("Tiny code model")
    with pytest.raises(queue.Empty):
        link.get(timeout=0.5)
