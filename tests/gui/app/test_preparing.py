"""A join that is being prepared: cancelled in time, refused, and beside the look at the compute pack."""

import threading

import pytest

from english import raises
from fakes import make_project
from gui_starts import wait
from skep.core.errors import DoesNotFit, SkepError
from skep.core.text import verbatim
from skep_gui.app import controller as module
from skep_gui.app.actions import ProjectActions
from skep_gui.app.background import Background
from skep_gui.app.controller import Controller
from skep_gui.words.projects import PRACTICE


class Practice:
    """A practice swarm that is ready at once."""

    def __init__(self, *_):
        self.ended = False

    def start(self):
        pass

    def manifest(self, asked_to_stop):
        return None if asked_to_stop() else "/manifest"

    def end(self, _within):
        self.ended = True


@pytest.fixture
def swarms(monkeypatch):
    """The practice swarms that were started."""
    made = []

    def start(*_):
        made.append(Practice())
        return made[-1]

    monkeypatch.setattr(module, "PracticeProcess", start)
    return made


@pytest.fixture
def controller(home, swarms, monkeypatch):
    monkeypatch.setattr(module.bootstrap, "catalogue", lambda _home: Catalogue())
    monkeypatch.setattr(module.joining, "check_fit", lambda *_: None)
    monkeypatch.setattr(module.joining, "check_invitation", lambda *_: None)
    made = Controller(str(home.root))
    yield made
    made.end_practice()


class Catalogue:
    def add(self, source, *, consent):
        return make_project(PRACTICE)


def test_the_practice_swarm_runs_until_it_is_ended(controller, swarms):
    assert controller.prepare(PRACTICE).id == PRACTICE
    (swarm,) = swarms
    assert not swarm.ended
    controller.end_practice()
    assert swarm.ended


def test_one_that_was_cancelled_while_the_pack_was_tried_is_not_started(controller, swarms, monkeypatch):
    monkeypatch.setattr(controller, "ready_pack", controller.cancel_practice)
    with raises(SkepError, match="practice swarm was not started"):
        controller.prepare(PRACTICE)
    assert swarms == []


def test_nor_one_that_is_prepared_when_skep_ends(controller, swarms, monkeypatch):
    monkeypatch.setattr(controller, "ready_pack", controller.close)
    with raises(SkepError, match="practice swarm was not started"):
        controller.prepare(PRACTICE)
    assert swarms == []


def test_a_cancel_counts_for_one_join_only(controller):
    controller.cancel_practice()
    with raises(SkepError, match="practice swarm was not started"):
        controller.prepare(PRACTICE)
    controller.may_practise()
    assert controller.prepare(PRACTICE).id == PRACTICE


def test_the_swarm_of_a_refused_join_does_not_go_on_computing(controller, swarms, monkeypatch):
    def refuse(*_):
        raise DoesNotFit(verbatim("It does not fit."))

    monkeypatch.setattr(module.joining, "check_fit", refuse)
    with raises(DoesNotFit, match="does not fit"):
        controller.prepare(PRACTICE)
    assert [each.ended for each in swarms] == [True]
    monkeypatch.setattr(module.joining, "check_fit", lambda *_: None)
    controller.prepare(PRACTICE)
    assert [each.ended for each in swarms] == [True, False]


def test_a_second_look_at_the_pack_waits_for_the_first(controller):
    begun, going, looks = threading.Event(), threading.Event(), []

    class Packs:
        own_stack = False

        def check(self):
            looks.append(threading.current_thread().name)
            begun.set()
            assert going.wait(10)

    controller.packs = Packs()
    threads = [threading.Thread(target=controller.ready_pack, name=name) for name in ("first", "second")]
    threads[0].start()
    assert begun.wait(10)
    threads[1].start()
    threads[1].join(0.2)
    assert looks == ["first"]
    going.set()
    for each in threads:
        each.join(10)
    assert looks == ["first", "second"]


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_join_that_was_cancelled_while_it_was_prepared_is_not_begun(qapp, qtbot, cancelled):
    background, going, ended = Background(qapp), threading.Event(), threading.Event()

    class Preparing:
        def prepare(self, project_id):
            assert going.wait(10)
            return make_project(project_id)

        def cancel_practice(self):
            pass

        may_practise = cancel_practice

        end_practice = staticmethod(ended.set)

    actions, begun = ProjectActions(background, qapp), []
    actions.controller = Preparing()
    actions.joining.connect(begun.append)
    try:
        actions.join("tiny")
        assert not cancelled or actions.cancel()
        going.set()
        wait(qtbot, lambda: ended.is_set() if cancelled else begun)
        assert [each.project.id for each in begun] == [] if cancelled else ["tiny"]
        assert not actions.cancel()
    finally:
        background.close()
        actions.deleteLater()
