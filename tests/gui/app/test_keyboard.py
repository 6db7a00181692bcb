"""Every control can be used by keyboard and has a name for screen readers: every page, in every state."""

from collections import Counter

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QListWidget,
    QProgressBar,
    QScrollBar,
    QWidget,
)

import snapshots as shots
from skep_gui.app.main_window import MainWindow
from skep_gui.pages.first_run import FirstRun
from skep_gui.widgets import theme
from skep_gui.widgets.charts import CellButton, DomeMeter, LivePlot
from skep_gui.words.now import History
from skep_gui.words.speaker import english
from skep_gui.words.translation import Translation
from window_sight import settle, show_all, spoken

VOICE = Translation(english)
CONTROLS = (QAbstractButton, QLineEdit, QComboBox, QAbstractSlider, QAbstractSpinBox, QListWidget)
PICTURES = (QProgressBar, DomeMeter, LivePlot)
STATES = (shots.IDLE, shots.JOINING, shots.TRAINING, shots.PAUSED, shots.RECOVERING, shots.LEAVING)


@pytest.fixture
def window(dressed, qtbot):
    made = MainWindow(VOICE)
    qtbot.addWidget(made)
    made.show()
    qtbot.waitExposed(made)
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow, timeout=5000)
    return made


def fill(window, snapshot):
    window.projects.show_projects(shots.KNOWN, snapshot)
    window.stats.show_record(shots.record(), window.projects.titles())
    window.show_snapshot(snapshot, shots.history() if snapshot.progress else History(), shots.NOW)
    settle()


def seen(window, kinds):
    """The visible widgets of these kinds, without the parts of spin boxes and scroll areas."""
    found = [each for each in window.findChildren(QWidget) if isinstance(each, kinds) and each.isVisible()]
    whole = [each for each in found if not isinstance(each.parent(), QAbstractSpinBox | QLineEdit)]
    return [each for each in whole if not isinstance(each, QScrollBar)]


@pytest.mark.parametrize("snapshot", STATES, ids=lambda each: each.phase)
def test_everything_that_matters_has_a_name_of_its_own(window, snapshot):
    fill(window, snapshot)
    for page in show_all(window):
        widgets = seen(window, CONTROLS + PICTURES)
        unnamed = [f"{type(each).__name__} {each.objectName()}" for each in widgets if not spoken(each)]
        assert not unnamed, f"on the page {page}"
        twice = [name for name, count in Counter(map(spoken, seen(window, CONTROLS))).items() if count > 1]
        assert not twice, f"on the page {page}"


def test_the_first_steps_have_names(dressed, qtbot):
    steps = FirstRun(VOICE.devices)
    qtbot.addWidget(steps)
    steps.show_devices(shots.DEVICES)
    steps.show()
    for _ in range(3):
        settle()
        assert all(spoken(each) for each in seen(steps, CONTROLS))
        steps.next.click()


@pytest.mark.parametrize("snapshot", STATES, ids=lambda each: each.phase)
def test_tab_reaches_everything_from_top_to_bottom(window, snapshot):
    fill(window, snapshot)
    for page in show_all(window):
        window.rail.setFocus()
        reached = walk(window)
        # Tab stops at one of several adjacent bars; the arrow keys move between them
        usable = [each for each in seen(window, CONTROLS) if each.isEnabled() and not is_passed_by(each)]
        assert set(usable) <= set(reached), f"on the page {page}: {[spoken(e) for e in set(usable) - set(reached)]}"
        places = [(place(each, window), spoken(each)) for each in reached[1:] if not in_strip(window, each)]
        assert [name for _, name in places] == [name for _, name in sorted(places, key=lambda each: each[0])], page


def walk(window):
    """The focused widgets after each press of Tab, until the first one is reached again."""
    reached = [QApplication.focusWidget()]
    for _ in range(200):
        assert QApplication.focusWidget() is not None, f"nobody has the keyboard after {spoken(reached[-1])}"
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        if (focused := QApplication.focusWidget()) in reached:
            return reached
        reached.append(focused)
    raise AssertionError("Tab never comes around")


def is_passed_by(widget):
    return isinstance(widget, CellButton) and not widget.focusPolicy() & Qt.FocusPolicy.TabFocus


def place(widget, window):
    """Sort key: rows from the top, and left to right in each; widgets in a row may differ by a few pixels in height."""
    middle = widget.mapTo(window, widget.rect().center())
    return (middle.y() // 24, middle.x())


def in_strip(window, widget):
    return window.strip.isAncestorOf(widget)


@pytest.mark.parametrize("colours", ["LIGHT", "DARK"])
def test_who_has_the_keyboard_can_be_seen(window, colours, qapp):
    theme.apply(qapp, getattr(theme, colours))
    fill(window, shots.SLOWED)
    try:
        for page in show_all(window):
            for each in (
                e for e in seen(window, CONTROLS) if e.isEnabled() and e.focusPolicy() & Qt.FocusPolicy.TabFocus
            ):
                window.setFocus()
                without = each.grab().toImage()
                each.setFocus(Qt.FocusReason.TabFocusReason)
                assert each.grab().toImage() != without, f"{spoken(each)} on the page {page}"
    finally:
        theme.apply(qapp, theme.LIGHT)


def test_who_has_the_keyboard_keeps_it_when_the_cards_are_made_anew(window):
    fill(window, shots.IDLE)
    window.go_to(window.projects)
    button = next(each for each in seen(window, QAbstractButton) if spoken(each) == "Look and join: Tiny code model")
    button.setFocus()
    fill(window, shots.IDLE)
    again = QApplication.focusWidget()
    assert again is not button
    assert spoken(again) == "Look and join: Tiny code model"


class Shown(QObject):
    """Records the windows that were shown."""

    def __init__(self):
        super().__init__()
        self.windows = []

    def eventFilter(self, watched, event):  # noqa: N802 - Qt's name
        if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            self.windows.append(type(watched).__name__)
        return False


def test_no_window_flashes_up_while_pages_are_made(qapp, dressed, qtbot):
    watch = Shown()
    qapp.installEventFilter(watch)
    made = MainWindow(VOICE)
    qtbot.addWidget(made)
    made.show()
    fill(made, shots.SLOWED)
    for _ in show_all(made):
        settle()
    qapp.removeEventFilter(watch)
    assert watch.windows == ["MainWindow"]


def test_pages_and_search_by_shortcut(window, qtbot):
    fill(window, shots.IDLE)
    for number, page in enumerate((window.now, window.projects, window.stats, window.settings), start=1):
        qtbot.keyClick(window, getattr(Qt.Key, f"Key_{number}"), Qt.KeyboardModifier.ControlModifier)
        assert window.pages.currentWidget() is page
        assert window.rail.hasFocus()
    window.go_to(window.now)
    qtbot.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert window.settings.search.hasFocus()
    with qtbot.waitSignal(window.quit_wanted, timeout=1000):
        qtbot.keyClick(window, Qt.Key.Key_Q, Qt.KeyboardModifier.ControlModifier)


def test_escape_goes_back_from_what_a_project_may_do(window, qtbot):
    fill(window, shots.IDLE)
    window.go_to(window.projects)
    window.projects.open("tiny-code-lm")
    window.projects.permission.join.setFocus()
    qtbot.keyClick(window.projects.permission.join, Qt.Key.Key_Escape)
    assert window.projects.currentWidget() is window.projects.list


def test_a_project_is_joined_by_keys_alone(window, qtbot):
    fill(window, shots.IDLE)
    qtbot.keyClick(window, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    press_on(window, "Look and join: Tiny code model")
    assert window.projects.currentWidget() is window.projects.permission
    with qtbot.waitSignal(window.projects.join_wanted, timeout=1000) as caught:
        press_on(window, "Join")
    assert caught.args == ["tiny-code-lm"]


def press_on(window, name):
    """Press Tab until the widget has the focus, then space."""
    for _ in range(60):
        if spoken(QApplication.focusWidget()) == name:
            QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Space)
            return
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    raise AssertionError(f"Tab never comes to {name}")
