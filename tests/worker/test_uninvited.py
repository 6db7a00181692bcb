"""A worker whose own invitation expires."""

import queue
import threading

import pytest

from english import in_english
from fakes import make_index
from invitations import Project, identity
from skep.core.session.messages import WorkerOptions
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


@pytest.mark.parametrize("days", [None, 3])
def test_otherwise_it_stays(tmp_path, days):
    text = Project().invite(identity(tmp_path, "one").peer_id, days=days) if days else ""
    link = LastWords()
    volunteer(text, link)._leave_when_uninvited("Tiny code model")
    with pytest.raises(queue.Empty):
        link.get(timeout=0.5)
