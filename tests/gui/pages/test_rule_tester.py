"""The rule tester: the same answer as explain --if, immediately, with a link to the setting of each rule."""

from dataclasses import replace
from datetime import UTC

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QAbstractButton, QLabel

import snapshots as shots
from english import in_english
from skep.core.session.explain import WORDS, explained
from skep.core.settings.settings import DEFAULTS
from skep_gui.app.main_window import MainWindow
from skep_gui.words.settings import OPPOSITES, RuleWords, without_opposite
from skep_gui.words.speaker import english
from skep_gui.words.translation import Translation

TESTER = RuleWords()


def test_everything_that_can_be_imagined_is_offered_once():
    offered = list(TESTER.cases())
    assert len(offered) == len(set(offered))
    assert {*offered, "film"} == set(WORDS)  # the rules treat a film as a call


@pytest.mark.parametrize("word", list(TESTER.cases()))
def test_the_answer_is_that_of_explain(word):
    body = explained(shots.TRAINING, (word,), shots.NOW, UTC)
    answer = TESTER.answer(shots.TRAINING, (word,), shots.NOW, UTC)
    assert answer.sentence.startswith(in_english(body["allowance"]["reason"]))
    assert [each.sentence for each in answer.consequences] == in_english(
        [each["allowance"]["reason"] for each in body["holding"]]
    )
    assert [each.key for each in answer.consequences] == [each["setting"] for each in body["holding"]]


def test_leaving_the_swarm_is_said():
    answer = TESTER.answer(shots.TRAINING, ("metered",), shots.NOW, UTC)
    assert answer.sentence == "On a metered connection. skep leaves the swarm meanwhile."


def test_settings_that_contradict_each_other_are_remarked_on():
    settings = dict(DEFAULTS) | {"compute.share_away": 0.1, "compute.share_using": 0.5}
    answer = TESTER.answer(replace(shots.TRAINING, settings=settings), ("input",), shots.NOW, UTC)
    assert "the lower one counts" in answer.remarks[0]


def test_opposites_exclude_each_other():
    for one, other in OPPOSITES:
        assert without_opposite((one, "call"), other) == ("call",)
    assert without_opposite(("input", "battery"), "hot") == ("input", "battery")


# --- on the page


@pytest.fixture
def settings(dressed, qtbot):
    window = MainWindow(Translation(english))
    qtbot.addWidget(window)
    window.show()
    window.go_to(window.settings)
    window.show_snapshot(shots.TRAINING, shots.history(), shots.NOW)
    yield window.settings
    window.close()


def texts(widget):
    QCoreApplication.processEvents()
    return [label.text() for label in widget.findChildren(QLabel) if label.isVisible()]


def test_at_first_nothing_is_imagined(settings):
    assert "Choose a situation." in texts(settings.tester)


def test_a_tick_is_answered_at_once_and_leads_to_the_setting(settings, qtbot):
    tester = settings.tester
    qtbot.keyClick(tester.boxes["input"], Qt.Key.Key_Space)
    assert "20 % while you use this computer." in texts(tester)
    link = next(
        each
        for each in tester.findChildren(QAbstractButton)
        if each.accessibleName() == "Setting of the rule: 20 % while you use this computer."
    )
    link.click()
    QCoreApplication.processEvents()
    slider = settings.rows["compute.share_using"].control
    assert slider.isVisible()
    assert settings.focusWidget() is slider


def test_a_tick_takes_its_opposite_away(settings):
    tester = settings.tester
    tester.boxes["battery"].click()
    tester.boxes["call"].click()
    tester.boxes["mains"].click()
    assert set(tester.chosen()) == {"call", "mains"}


def test_a_changed_setting_changes_the_answer(settings):
    settings.tester.choose(("input",))
    changed = replace(shots.TRAINING, settings=dict(DEFAULTS) | {"compute.share_using": 0.35})
    settings.tester.show_snapshot(changed, shots.NOW)
    assert "35 % while you use this computer." in texts(settings.tester)


def test_the_tester_is_found_from_the_top(settings):
    settings.what_if.click()
    assert settings.focusWidget() is settings.tester.boxes["input"]
    assert settings.tester.boxes["input"].visibleRegion().boundingRect().height() > 0
