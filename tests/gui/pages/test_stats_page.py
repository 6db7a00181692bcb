"""The page Stats with a real ledger, and by keyboard: the terminal's numbers; each segment links to its setting."""

import json
import subprocess
import sys
import time

import pytest
from PySide6.QtCore import QLocale, QPoint, Qt
from PySide6.QtWidgets import QLabel

import snapshots as shots
from skep.adapters.storage.ledger_sqlite import SqliteLedger
from skep.core.policy.allowance import Change
from skep.core.record.contributions import Contribution, ContributionState
from skep.core.record.usage import Quarter, Spent, Unit, quarter_of
from skep.core.text import NOTHING, Text
from skep_gui.app.controller import Controller
from skep_gui.pages.stats_page import StatsPage
from skep_gui.widgets.charts import axis_number
from skep_gui.words.speaker import english
from skep_gui.words.stats import Asked, Measure, Record
from skep_gui.words.translation import Translation


@pytest.fixture
def page(dressed, qtbot):
    made = StatsPage(Translation(english))
    qtbot.addWidget(made)
    made.resize(800, 1300)
    made.show()
    made.show_record(shots.record(), {"tiny-code-lm": "Tiny code model"})
    qtbot.waitUntil(lambda: made.bars.buttons[-1].width() > 10)
    return made


def texts(widget):
    return [label.text() for label in widget.findChildren(QLabel) if label.isVisible()]


def asked_for(qtbot, page, act):
    with qtbot.waitSignal(page.wanted):
        act()
    return page.asked


# --- the same numbers as the terminal


def fill(home):
    ledger, now = SqliteLedger(home.ledger_file), time.time()
    for number in range(9):
        state = ContributionState.LOST if number % 4 == 3 else ContributionState.CONFIRMED
        reason, swarm = (Text("round.no_other_peer"), 0) if state is ContributionState.LOST else (NOTHING, 2_000)
        ledger.record(
            "one" if number < 6 else "two", Contribution(str(number), number, 100 + number, state, reason, 1, swarm)
        )
    ledger.record("two", Contribution("p", 10, 7, ContributionState.PENDING))
    ledger.add_usage(Quarter("one", quarter_of(now), Spent(900.0, 800.0, 700.0, 90_000.0, 600.0)))
    ledger.record_change(Change(now - 3600, "one", 1.0, "away", Text("rule.training_full_share")))
    ledger.record_change(Change(now - 1800, "one", 0.0, "battery", Text("rule.on_battery")))
    ledger.close()


def terminal(home, *words):
    ran = subprocess.run(
        [sys.executable, "-m", "skep.cli.main", "--home", str(home.root), "--json", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(ran.stdout)


def test_the_page_and_the_terminal_agree(home, dressed, qtbot):
    fill(home)
    told = terminal(home, "stats", "--by", "day")
    record = Controller(str(home.root)).record(Asked(Unit.DAY))
    page = StatsPage(Translation(english))
    qtbot.addWidget(page)
    page.resize(900, 1200)
    page.show()
    page.show_record(record, {})
    whole = told["all"]
    share = f"{whole['swarm']['share'] * 100:.2g}\u2009%"
    qtbot.waitUntil(lambda: share in texts(page))  # the table's layout is delayed
    shown = texts(page)
    assert f"{whole['confirmed']['samples']}" in shown
    assert whole["confirmed"]["samples"] == 726
    assert f"{whole['lost']['samples']}\u00a0lost".replace("\u00a0", " ") in [
        each.replace("\u00a0", " ") for each in shown
    ]
    assert whole["energy"] == {"joules": 90_000.0, "measured_seconds": 600.0}
    assert "25.0\u2009Wh" in shown
    assert "13\u2009min" in shown  # 800 s of training, in whole minutes
    assert whole["seconds"]["training"] == 800.0
    assert whole["lost_reasons"] == {"no other peer": {"contributions": 2, "samples": 210}}
    assert "No other peer: 210 samples in 2 epochs" in shown
    for name in ("one", "two"):
        assert record.projects[name].totals.confirmed.samples == told["projects"][name]["confirmed"]["samples"]
    periods = told["by"]["periods"]
    # sums, since midnight may be between the two readings
    assert sum(each["confirmed"] for each in periods) == sum(each.confirmed for each in record.past) == 726
    assert sum(each["spent"]["training"] for each in periods) == sum(each.spent.training for each in record.past)


# --- mouse and keyboard


def test_a_stretch_leads_to_its_setting_by_mouse_and_by_keys(page, qtbot):
    call = next(each for each in page.day.strip.buttons if "call or film" in each.accessibleName())
    with qtbot.waitSignal(page.setting_wanted) as caught:
        qtbot.mouseClick(call, Qt.MouseButton.LeftButton, pos=QPoint(call.width() // 2, 50))
    assert caught.args == ["when.call_pause"]
    call.setFocus()
    qtbot.keyClick(call, Qt.Key.Key_Right)
    walked = page.focusWidget()
    assert walked is page.day.strip.buttons[page.day.strip.buttons.index(call) + 1]
    assert page.day.said.text() == walked.accessibleName()
    with qtbot.waitSignal(page.setting_wanted) as caught:
        qtbot.keyClick(walked, Qt.Key.Key_Return)
    assert caught.args == [walked.cell.key]


def test_a_strip_is_one_stop_of_the_tab_key(page, qtbot):
    for strip in (page.bars, page.day.strip):
        stops = [each for each in strip.buttons if each.focusPolicy() & Qt.FocusPolicy.TabFocus]
        assert stops == [strip.buttons[-1]]
    last = page.bars.buttons[-1]
    last.setFocus()
    qtbot.keyClick(last, Qt.Key.Key_Home)
    assert page.focusWidget() is page.bars.buttons[0]
    qtbot.keyClick(page.bars.buttons[0], Qt.Key.Key_Left)
    assert page.focusWidget() is page.bars.buttons[0]
    qtbot.keyClick(page.bars.buttons[0], Qt.Key.Key_End)
    assert page.focusWidget() is last


def test_the_persons_own_pause_leads_to_no_setting(page, qtbot):
    pause = next(each for each in page.day.strip.buttons if "Paused until" in each.accessibleName())
    with qtbot.assertNotEmitted(page.setting_wanted):
        pause.click()


def test_a_rule_of_the_list_leads_to_its_setting(page, qtbot):
    link = next(each for each in page.day.findChildren(type(page.export)) if "Battery" in each.accessibleName())
    with qtbot.waitSignal(page.setting_wanted) as caught:
        link.click()
    assert caught.args == ["when.battery_pause"]


def test_a_bar_opens_the_timeline_of_its_day(page, qtbot):
    assert asked_for(qtbot, page, page.bars.buttons[-3].click).back == 2
    assert asked_for(qtbot, page, page.day.earlier.click).back == 1  # the page still shows today
    assert not page.day.later.isEnabled()


def test_the_unit_is_asked_for_and_the_measure_is_not(page, qtbot):
    assert asked_for(qtbot, page, lambda: page.unit.setCurrentIndex(2)).unit is Unit.WEEK
    before = [each.cell.height for each in page.bars.buttons]
    with qtbot.assertNotEmitted(page.wanted):
        page.measure.setCurrentIndex(list(Measure).index(Measure.HOURS))
    assert [each.cell.height for each in page.bars.buttons] != before


def test_fewer_bars_leave_none_behind(page):
    page.show_record(shots.record(Unit.HOUR), {})
    assert len(page.bars.buttons) == 24
    page.show_record(shots.record(Unit.WEEK), {})
    assert len(page.bars.buttons) == 12
    page.show_record(Record(), {})
    assert page.bars.buttons == []
    assert page.empty.isVisible()


def test_a_hidden_page_asks_for_nothing(page):
    assert page._again.isActive()
    page.hide()
    assert not page._again.isActive()


def test_nothing_is_cut_in_a_narrow_window(page, qtbot):
    page.resize(600, 1300)

    def cut():
        labels = [each for each in page.findChildren(QLabel) if each.isVisible() and each.text()]
        narrow = [each for each in labels if not each.wordWrap() and each.width() < each.sizeHint().width() - 1]
        outside = [each for each in labels if each.mapTo(page, each.rect().topRight()).x() > page.width()]
        return [each.text() for each in (*narrow, *outside)]

    qtbot.waitUntil(lambda: not cut())


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.5, "0.5"), (2_000.0, "2\u2009000"), (150_000.0, "150\u2009k"), (2e6, "2\u2009M")]
)
def test_an_axis_has_short_numbers(value, text):
    assert axis_number(value) == text


def test_an_axis_has_the_decimal_point_of_its_language():
    before = QLocale()
    QLocale.setDefault(QLocale("de_DE"))
    try:
        assert [axis_number(value) for value in (0.5, 2_000.0, 12_500.0, 2.5e6)] == [
            "0,5",
            "2\u2009000",
            "12,5\u2009k",
            "2,5\u2009M",
        ]
    finally:
        QLocale.setDefault(before)
