"""What a worker does when its own invitation runs out."""

import queue

import pytest

from english import in_english
from fakes import make_index
from invitations import Project, identity
from skep.core.session.messages import WorkerOptions
from skep.worker.volunteer import Volunteer

SOON = 20


class Mute:
    """A link nobody listens at."""

    def send(self, message):
        pass


@pytest.fixture
def leaving(monkeypatch):
    """What the volunteer said when it left."""
    said = queue.SimpleQueue()
    monkeypatch.setattr(
        Volunteer, "fail", lambda _self, problem, *, retry: said.put((in_english(problem.title), retry))
    )
    return said


def volunteer(text):
    return Volunteer(WorkerOptions("", make_index(), invitation=text), Mute())


def test_a_worker_leaves_for_good_when_its_invitation_expires(tmp_path, leaving):
    text = Project().invite(identity(tmp_path, "one").peer_id, since=1, days=1 + 2 / 86_400)
    volunteer(text)._leave_when_uninvited("Tiny code model")
    title, retry = leaving.get(timeout=SOON)
    assert title == "This computer's invitation to Tiny code model expired, so the swarm no longer answers it."
    assert not retry


@pytest.mark.parametrize("days", [None, 3])
def test_otherwise_it_stays(tmp_path, leaving, days):
    text = Project().invite(identity(tmp_path, "one").peer_id, days=days) if days else ""
    volunteer(text)._leave_when_uninvited("Tiny code model")
    with pytest.raises(queue.Empty):
        leaving.get(timeout=0.5)
