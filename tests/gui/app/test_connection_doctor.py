"""The connection doctor opens from a problem and from a project's card, and shows what the checks find."""

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from gui_starts import remember, started, wait
from manifests import signed
from skep import bootstrap
from skep.core.session import messages as m
from skep.core.text import Problem, Remedy, verbatim
from skep.services.doctor.case import WITHIN_SECONDS

CHECKED = int((WITHIN_SECONDS + 10) * 1000)
"""Milliseconds for all checks."""
NO_SEED = Problem(verbatim("No seed answers."), verbatim("Wait."), Remedy.CONNECTION.value)


@pytest.fixture
def app(dressed, qtbot, home, tmp_path):
    remember(home)
    bootstrap.catalogue(home).add(str(signed(tmp_path)))
    with started(dressed, qtbot, home) as running:
        wait(qtbot, lambda: running.window is not None and running.window.isVisible())
        yield running


def rows(app):
    return [each.text() for each in app.projects.doctor.dialog.findChildren(QLabel) if each.isVisible()]


def test_a_problem_with_the_swarm_offers_the_check_which_ends_with_a_summary(app, qtbot):
    app.commands.post(m.ProblemArose(NO_SEED))
    wait(qtbot, app.window.strip.isVisible)
    assert app.window.strip.act_button.text() == "Check the connection"
    app.window.strip.act_button.click()
    dialog = app.projects.doctor.dialog
    assert dialog.windowTitle() == "This computer"
    wait(qtbot, dialog.again.isEnabled, CHECKED)
    wait(qtbot, lambda: "The time is plausible." in rows(app))  # Qt shows a new row a moment after it is added
    dialog.again.click()
    assert not dialog.again.isEnabled()
    wait(qtbot, dialog.again.isEnabled, CHECKED)
    wait(qtbot, lambda: "The time is plausible." in rows(app))
    assert rows(app).count("The time is plausible.") == 1
    dialog.close()


def test_a_project_s_card_has_the_check(app, qtbot):
    page = app.window.projects
    wanted = []
    page.check_wanted.disconnect()
    page.check_wanted.connect(wanted.append)
    wait(qtbot, lambda: page._known)
    name = "Check the connection to Tiny code model"
    wait(qtbot, lambda: any(each.accessibleName() == name for each in page.findChildren(QPushButton)))
    next(each for each in page.findChildren(QPushButton) if each.accessibleName() == name).click()
    assert wanted == ["tiny-code-lm"]
