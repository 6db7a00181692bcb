"""Each page as a function of the snapshot: its contents, its controls and its requests."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QCoreApplication, QLocale, QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit, QSlider, QWidget

import snapshots as shots
from english import in_english
from skep.core.sandbox import Guard, Sandbox
from skep.core.settings.settings import DEFAULTS, SETTINGS
from skep.core.text import Problem, Text, verbatim
from skep_gui.app.main_window import MainWindow
from skep_gui.app.tray import Tray
from skep_gui.pages.first_run import FirstRun
from skep_gui.pages.projects_page import ProjectCard
from skep_gui.pages.setting_row import Number
from skep_gui.widgets import icons
from skep_gui.widgets.parts import unbroken
from skep_gui.words import mark
from skep_gui.words.mark import Look, State
from skep_gui.words.now import SPAN, History
from skep_gui.words.settings import LIMITS
from skep_gui.words.speaker import english
from skep_gui.words.stats import Record
from skep_gui.words.translation import Translation

VOICE = Translation(english)
CARDS = (("cuda:0", "RTX 4070"), ("cuda:1", "RTX 3060"))


@pytest.fixture
def window(dressed, qtbot):
    made = MainWindow(VOICE)
    qtbot.addWidget(made)
    made.show()
    return made


FINISHED = replace(shots.IDLE, finished=verbatim("The model is finished."), last_project=shots.PROJECT)


def show(window, snapshot, known=shots.KNOWN):
    window.projects.show_projects(known, snapshot)
    window.now.show_kept([shots.PROJECT.id])
    window.show_snapshot(snapshot, shots.history() if snapshot.progress else History(), shots.NOW)


def texts(widget):
    settle()
    return [label.text() for label in widget.findChildren(QLabel) if label.isVisible()]


def settle():
    for _ in range(3):
        QCoreApplication.processEvents()


def buttons(widget):
    settle()
    return [each.text() for each in widget.findChildren(QAbstractButton) if each.isVisible() and each.text()]


def signal(qtbot, wanted, act):
    with qtbot.waitSignal(wanted, timeout=1000) as caught:
        act()
    return caught.args


# --- Now


def test_while_the_model_is_saved_no_figures_of_training_are_shown(window):
    now = window.now
    saving = replace(shots.LEAVING, saving=True, leaving_until=shots.NOW + 95)
    for snapshot, shown in ((shots.LEAVING, True), (saving, False)):
        show(window, snapshot)
        settle()
        widgets = (now.share, now.asked, now.figures, now.plot_card, now.epoch_card, now.rules_card)
        assert {each.isVisible() for each in widgets} == {shown}
    assert "Leave now" in buttons(now)


@pytest.mark.parametrize(
    ("snapshot", "offered"),
    [
        (shots.IDLE, ["Choose a project"]),
        (shots.JOINING, ["Cancel"]),
        (shots.TRAINING, ["Pause", "Leave", "Setting"]),
        (shots.SLOWED, ["Pause", "Leave", "Setting", "Setting"]),
        (shots.PAUSED, ["Resume", "Leave", "Setting"]),
        (replace(shots.TRAINING, waiting=Text("wait.data")), ["Pause", "Leave"]),
        (shots.RECOVERING, ["Pause", "Cancel"]),
        (shots.LEAVING, ["Leave now", "Setting"]),
        (FINISHED, ["Choose a project", "Save the model …"]),
        (replace(FINISHED, last_project=shots.BIG), ["Choose a project"]),
    ],
)
def test_now_offers_what_makes_sense(window, snapshot, offered):
    show(window, snapshot)
    assert sorted(buttons(window.now)) == sorted(offered)
    primary = [
        each for each in window.now.findChildren(QAbstractButton) if each.isVisible() and each.objectName() == "primary"
    ]
    assert len(primary) <= 1


def test_now_shows_the_sentence_the_figures_and_the_epoch(window):
    show(window, shots.TRAINING)
    shown = texts(window.now)
    for text in (
        "Training at full share.",
        "184\u2009320",
        "41.3",
        "67\u2009°C",
        "epoch 128 · 3 peers · 41 of 64 thousand samples",
    ):
        assert text in shown
    assert unbroken("512\u00a0pending\n3\u2009072\u00a0lost") in shown
    assert window.now.epoch.value() == round(1000 * 41.2 / 64)


def test_now_never_says_training_while_nothing_is_trained(window):
    show(window, replace(shots.TRAINING, waiting=Text("wait.data")))
    assert not [text for text in texts(window.now) if "Training" in text]
    show(window, shots.TRAINING)
    assert [text for text in texts(window.now) if "Training" in text]


def test_now_joining_shows_the_checklist_alone(window):
    show(window, shots.JOINING)
    assert "about 20 s" in texts(window.now)
    assert not window.now.figures.isVisible()
    assert not window.now.plot_card.isVisible()
    show(window, shots.RECOVERING)
    assert "!" in texts(window.now.checklist)


def test_now_shows_no_figures_of_a_computer_that_found_the_run_finished_when_it_came(window):
    show(window, replace(shots.LEAVING, finished=verbatim("Over.")))
    assert window.now.figures.isVisible()
    show(window, replace(shots.LEAVING, finished=verbatim("Over."), joined=False))
    assert [text for text in texts(window.now) if "sends its result" in text]
    assert not window.now.figures.isVisible()
    assert not window.now.share.isVisible()
    assert window.now.leave_now.isVisible()


def test_what_a_person_asks_for_on_now(window, qtbot):
    show(window, shots.TRAINING)
    now = window.now
    assert signal(qtbot, now.left, now.leave.click) == [False]
    show(window, shots.JOINING)
    assert signal(qtbot, now.left, now.checklist.cancel.click) == [True]
    show(window, shots.PAUSED)
    assert signal(qtbot, now.resumed, now.resume.click) == []
    show(window, shots.IDLE)
    assert signal(qtbot, now.projects_wanted, now.choose.click) == []


def test_the_pause_menu_counts_from_when_it_is_chosen(window, qtbot):
    show(window, shots.TRAINING)
    menu = window.now.pause.menu()
    menu.aboutToShow.emit()
    assert menu.actions()[0].text() == "For 15 minutes"
    (until,) = signal(qtbot, window.now.pause_chosen, menu.actions()[3].trigger)
    assert until is None


def test_each_of_several_devices_is_shown_with_what_holds_it_back(window):
    show(window, shots.SEVERAL)
    found = [unbroken(each) for each in texts(window.now.devices_card)]
    assert found == [
        *("Devices", "NVIDIA GeForce RTX 4070", unbroken("98\u2009%")),
        unbroken("67\u2009°C · 142\u2009W · 5.4\u2009GB free · Limited to 180 W."),
        *("NVIDIA GeForce RTX 3060", unbroken("44\u2009%")),
        unbroken("82\u2009°C · 142\u2009W · 2.4\u2009GB free · 45 % at most, to stay below 80 °C."),
    ]
    show(window, replace(shots.SEVERAL, devices=shots.SEVERAL.devices[:1]))
    settle()
    assert not window.now.devices_card.isVisible()


def test_a_rule_leads_to_its_setting(window, qtbot):
    show(window, shots.SLOWED)
    settle()
    links = [each for each in window.now.findChildren(QAbstractButton) if each.text() == "Setting" and each.isVisible()]
    assert signal(qtbot, window.now.setting_wanted, links[0].click) == ["compute.share_using"]


def test_the_plot_is_drawn_only_where_it_can_be_seen(window, qtbot):
    show(window, shots.TRAINING)
    window.resize(960, 1200)
    picture = window.now.plot.grab().toImage()
    fill = {picture.pixelColor(x, y).name() for x in range(picture.width()) for y in range(0, picture.height(), 3)}
    assert len(fill) > 3
    window.hide()
    before = window.now.plot._points
    window.show_snapshot(shots.SLOWED, History(), shots.NOW)
    assert window.now.plot._points is before


def test_history_keeps_ten_minutes_and_each_report_once():
    history = History()
    history.see(shots.TRAINING, shots.NOW)
    history.see(shots.TRAINING, shots.NOW + 1)
    assert len(history.points) == 1
    again = replace(shots.TRAINING, progress=replace(shots.PROGRESS))
    history.see(again, shots.NOW + SPAN + 1)
    assert [point.at for point in history.points] == [shots.NOW + SPAN + 1]


# --- Projects


def test_cards_with_the_practice_swarm_first(window):
    window.go_to(window.projects)
    show(window, shots.IDLE)
    assert window.projects.findChildren(ProjectCard)[0].heading.text() == "Practice swarm"
    assert {"Fits", "Fits, with limits", "Too big"} <= set(texts(window.projects))


def test_the_permission_page_says_what_this_system_keeps_the_training_process_from(window, qtbot):
    window.go_to(window.projects)
    show(window, shots.IDLE)
    with qtbot.waitSignal(window.projects.protection_wanted, timeout=1000):
        window.projects.open("tiny-code-lm")
    assert "The training process is kept from" not in texts(window.projects.permission)
    window.projects.show_protection(Sandbox({Guard.SERVICES: "switched off"}))
    shown = texts(window.projects.permission)
    assert {"The training process is kept from", "other processes"} <= set(shown)
    assert any("Not on this system: sockets" in each and "switched off" in each for each in shown)
    window.projects.open("tiny-code-lm")
    assert "The training process is kept from" not in texts(window.projects.permission)


def test_before_joining_the_permission_page_is_read(window, qtbot):
    window.go_to(window.projects)
    show(window, shots.IDLE)
    window.projects.open("tiny-code-lm")
    assert "It downloads" in texts(window.projects)
    assert signal(qtbot, window.projects.join_wanted, window.projects.permission.join.click) == ["tiny-code-lm"]


def test_too_big_a_project_cannot_be_joined(window):
    show(window, shots.IDLE)
    window.projects.open("big-lm")
    assert not window.projects.permission.join.isEnabled()


def test_one_project_at_a_time(window, qtbot):
    show(window, shots.TRAINING)
    window.projects.open("tiny-code-lm")
    assert not window.projects.permission.join.isEnabled()
    assert "one at a time" in window.projects.permission.why_not.text()


def test_the_active_project_can_be_left_from_its_card(window, qtbot):
    show(window, shots.TRAINING)
    leave = next(
        each
        for each in window.projects.findChildren(QAbstractButton)
        if each.accessibleName() == "Leave Tiny code model"
    )
    assert signal(qtbot, window.projects.leave_wanted, leave.click) == []


def test_markup_of_a_project_stays_text(window):
    project = shots.KNOWN[0].project
    hostile = replace(project, manifest=replace(project.manifest, title="<b>x</b>"))
    show(window, shots.IDLE, [replace(shots.KNOWN[0], project=hostile)])
    heading = next(label for label in window.projects.findChildren(QLabel) if label.text() == "<b>x</b>")
    assert heading.textFormat() is Qt.TextFormat.PlainText
    assert {label.textFormat() for label in window.findChildren(QLabel)} == {Qt.TextFormat.PlainText}


@pytest.mark.parametrize(
    ("name", "signal_name"), [("project.json", "add_wanted"), ("mine.invitation", "invitation_wanted")]
)
def test_what_is_dropped_is_added_or_accepted(window, qtbot, tmp_path, name, signal_name):
    show(window, shots.IDLE)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / name))])
    event = QDropEvent(
        QPointF(5, 5), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    wanted = getattr(window.projects, signal_name)
    assert signal(qtbot, wanted, lambda: window.projects.dropEvent(event)) == [str(tmp_path / name)]


def test_a_typed_link_is_added(window, qtbot):
    window.go_to(window.projects)
    show(window, shots.IDLE)
    window.projects.source.setText("  skep://join?x  ")
    assert signal(
        qtbot, window.projects.add_wanted, lambda: qtbot.keyClick(window.projects.source, Qt.Key.Key_Return)
    ) == ["skep://join?x"]


def test_what_was_refused_is_said_in_words(window):
    show(window, shots.IDLE)
    window.go_to(window.projects)
    problem = Problem(verbatim("The signature does not fit."), verbatim("Ask the publisher."))
    window.projects.say(english.told(problem), problem=True)
    assert "The signature does not fit. Ask the publisher." in texts(window.projects)


# --- Stats


def test_stats_show_what_the_ledger_holds(window):
    window.go_to(window.stats)
    window.stats.show_record(shots.record(), {"tiny-code-lm": "Tiny code model"})
    shown = texts(window.stats)
    assert "218\u2009880" in shown
    assert "No other peer: 24\u2009320 samples in 5 epochs" in shown
    assert not window.stats.empty.isVisible()


def test_empty_stats_say_what_will_be_here(window, qtbot):
    window.go_to(window.stats)
    window.stats.show_record(Record(), {})
    assert "Nothing contributed yet" in texts(window.stats)
    assert not window.stats.export.isEnabled()
    assert (
        signal(
            qtbot,
            window.stats.projects_wanted,
            next(b for b in window.stats.findChildren(QAbstractButton) if b.text() == "Choose a project").click,
        )
        == []
    )


# --- Settings


@pytest.fixture
def settings(window):
    window.settings.show_offered({"compute.device": ()})  # the words are those of every test here
    show(window, shots.IDLE)
    window.go_to(window.settings)
    return window.settings


def test_the_form_has_every_setting(settings):
    settings.show_offered({LIMITS: CARDS})
    assert set(settings.rows) == set(SETTINGS)
    for key, row in settings.rows.items():
        assert row.control.isEnabled()
        assert row.control.accessibleName() == in_english(SETTINGS[key].label)


def test_only_percentages_are_sliders(settings):
    slider = settings.rows["compute.share_away"].control
    assert (slider.minimum(), slider.maximum()) == (5, 100)
    assert not isinstance(settings.rows["network.port"].control, QSlider)


def test_a_slider_changes_its_setting_by_keys(settings, qtbot):
    slider = settings.rows["compute.share_away"].control
    assert isinstance(slider, QSlider)
    key, value = signal(qtbot, settings.changed, lambda: qtbot.keyClick(slider, Qt.Key.Key_Left))
    assert (key, value) == ("compute.share_away", 0.95)


def test_a_number_is_taken_when_it_is_entered(settings, qtbot):
    box = settings.rows["disk.cache_gb"].control
    box.setValue(25)
    assert signal(qtbot, settings.changed, box.editingFinished.emit) == ["disk.cache_gb", 25.0]


def test_a_number_with_more_decimals_stays_when_its_field_is_left(settings, qtbot):
    row = settings.rows["disk.cache_gb"]
    row.show_row(replace(row.row, value=2.55))
    with qtbot.assertNotEmitted(settings.changed):
        row.control.editingFinished.emit()
    row.control.setValue(3)
    assert signal(qtbot, settings.changed, row.control.editingFinished.emit) == ["disk.cache_gb", 3.0]
    row.control.setValue(2.6)
    assert signal(qtbot, settings.changed, row.control.editingFinished.emit) == ["disk.cache_gb", 2.6]


@pytest.mark.parametrize(
    ("locale", "value", "said"),
    [
        ("en_US", 3.0, "3"),
        ("en_US", 2.5, "2.5"),
        ("de_DE", 2.5, "2,5"),
        ("en_US", 1500.0, "1500"),
        ("de_DE", 0.3, "0,3"),
    ],
)
def test_a_number_is_shown_without_zeros_behind_the_point(qtbot, locale, value, said):
    before = QLocale()
    QLocale.setDefault(QLocale(locale))
    try:
        box = Number()
    finally:
        QLocale.setDefault(before)
    qtbot.addWidget(box)
    box.setMaximum(10_000.0)
    box.setDecimals(1)
    box.setValue(value)
    assert (box.text(), box.value()) == (said, value)


def test_a_wrong_text_is_explained_and_not_taken(settings, qtbot):
    row = settings.rows["network.proxy"]
    assert isinstance(row.control, QLineEdit)
    row.control.setText("toaster")
    with qtbot.assertNotEmitted(settings.changed):
        row.control.editingFinished.emit()
    assert "“Proxy” must be" in row.wrong.text()
    assert row.wrong.isVisible()


def test_the_device_is_chosen_among_those_found(settings, qtbot):
    chooser = settings.rows["compute.device"].control
    chooser.setFocus()
    settings.show_offered({"compute.device": (("cuda:0", "RTX 4070"), ("cpu", "Ryzen 7"))})
    assert chooser.hasFocus()
    assert [chooser.itemText(place) for place in range(chooser.count())] == ["best", "RTX 4070", "Ryzen 7"]
    assert chooser.currentText() == "best"
    with qtbot.waitSignal(settings.changed) as changed:
        chooser.activated.emit(2)
    assert changed.args == ["compute.device", "cpu"]


def test_limits_of_single_cards_are_there_where_there_are_several(settings, window, qtbot):
    assert LIMITS not in settings.rows
    settings.show_offered({LIMITS: CARDS})
    limits = settings.rows[LIMITS]
    assert "RTX 3060" in texts(limits)
    share, celsius, watts, free = (limits.fields[f"cuda:{1}", unit] for unit in ("%", "C", "W", "GB"))
    assert [each.text() for each in (share, celsius, watts, free)] == [
        "100 %",
        "as for all",
        "as for all",
        "as for all",
    ]
    share.setValue(50)
    assert signal(qtbot, settings.changed, share.editingFinished.emit) == [LIMITS, "cuda:1 50%"]
    show(window, replace(shots.IDLE, settings=dict(DEFAULTS) | {LIMITS: "cuda:1 50%"}))
    celsius.setValue(75)
    assert signal(qtbot, settings.changed, celsius.editingFinished.emit) == [LIMITS, "cuda:1 50% 75C"]
    free.setValue(2.5)
    assert signal(qtbot, settings.changed, free.editingFinished.emit) == [LIMITS, "cuda:1 50% 75C 2.5GB"]
    show(window, replace(shots.IDLE, settings=dict(DEFAULTS) | {LIMITS: "cuda:0 200W; cuda:7 50C"}))
    texts_of = {place: field.text() for place, field in limits.fields.items()}
    assert texts_of["cuda:1", "%"] == "100 %"
    assert {texts_of["cuda:1", unit] for unit in ("C", "W", "GB")} == {"as for all"}
    assert texts_of["cuda:7", "C"] == "50 °C"  # the limit of a card that is not here now
    watts = limits.fields["cuda:1", "W"]
    assert limits.fields["cuda:0", "W"].text() == "200 W"
    watts.setValue(150)
    changed = [LIMITS, "cuda:0 200W; cuda:1 150W; cuda:7 50C"]
    assert signal(qtbot, settings.changed, watts.editingFinished.emit) == changed
    assert signal(qtbot, settings.changed, limits.reset.click) == [LIMITS, ""]


def test_the_limits_of_a_card_have_names_and_are_reached_from_a_rule(settings):
    settings.show_offered({LIMITS: CARDS})
    field = settings.rows[LIMITS].fields["cuda:1", "C"]
    assert field.accessibleName() == "RTX 3060: Temperature"
    settings.reveal(LIMITS)
    settle()
    assert settings.rows[LIMITS].fields["cuda:0", "%"].hasFocus()


def test_a_limit_of_a_card_that_is_not_here_is_shown_and_can_be_removed(settings, window, qtbot):
    show(window, replace(shots.IDLE, settings=dict(DEFAULTS) | {LIMITS: "cuda:3 50%"}))
    assert settings.rows[LIMITS].fields["cuda:3", "%"].text() == "50 %"
    assert signal(qtbot, settings.changed, settings.rows[LIMITS].reset.click) == [LIMITS, ""]
    show(window, shots.IDLE)
    assert LIMITS not in settings.rows


@pytest.mark.parametrize(
    ("unit", "steps"),
    [("C", ["50 °C", "51 °C"]), ("W", ["20 W", "25 W"]), ("GB", ["0 GB", "0.5 GB"])],
)
def test_steps_lead_from_no_limit_to_the_least_one_and_back(settings, unit, steps):
    settings.show_offered({LIMITS: CARDS})
    field = settings.rows[LIMITS].fields["cuda:1", unit]
    found = []
    for step in (1, 1, -1, -1):
        field.stepBy(step)
        found.append(field.text())
    assert found == [*steps, steps[0], "as for all"]


def test_a_card_that_has_gone_takes_its_limits_off_the_form(settings):
    settings.show_offered({LIMITS: CARDS})
    settings.show_offered({LIMITS: ()})
    assert LIMITS not in settings.rows


def test_reset_goes_back_to_the_default(settings, window, qtbot):
    show(window, replace(shots.IDLE, settings=dict(DEFAULTS) | {"compute.share_away": 0.3}))
    row = settings.rows["compute.share_away"]
    assert row.reset.isVisible()
    assert row.control.value() == 30
    assert signal(qtbot, settings.changed, row.reset.click) == ["compute.share_away", 1.0]


def test_the_search_leaves_what_fits(settings):
    settings.search.setText("temperature")
    assert set(settings.rows) == {"heat.cap_celsius"}
    settings.search.setText("nothing like it")
    assert "No setting has “nothing like it” in its words." in texts(settings)
    settings.reveal("app.theme")
    settle()
    assert settings.rows["app.theme"].control.isVisible()


# --- first steps, window, tray


def test_the_first_steps_lead_to_a_project(dressed, qtbot):
    steps = FirstRun(VOICE.devices)
    qtbot.addWidget(steps)
    steps.show_devices(shots.DEVICES)
    steps.show()
    assert "skep found NVIDIA GeForce RTX 4070." in texts(steps)
    steps.next.click()
    steps.presets.button(0).click()
    assert signal(qtbot, steps.limits_chosen, steps.next.click) == [
        {"compute.share_away": 0.5, "compute.share_using": 0.0}
    ]
    assert signal(qtbot, steps.practice_wanted, steps.practice.click) == []
    assert not steps.isVisible()


def test_the_strip_is_there_only_while_there_is_a_problem(window):
    show(window, shots.TRAINING)
    assert not window.strip.isVisible()
    show(window, shots.RECOVERING)
    assert window.strip.title.text().startswith("None of the project's seed peers answers: seed.example.org")
    window.strip.close_button.click()
    show(window, shots.RECOVERING)
    assert not window.strip.isVisible()
    show(window, replace(shots.RECOVERING, problem=Problem(verbatim("Another one."))))
    assert window.strip.isVisible()


@pytest.mark.parametrize("snapshot", [shots.IDLE, shots.JOINING, shots.SLOWED, shots.RECOVERING])
@pytest.mark.parametrize("size", [(760, 520), (1024, 600)])
def test_nothing_is_cut_in_a_small_window(window, snapshot, size, qtbot):
    window.resize(*size)
    for page in (window.now, window.projects, window.stats, window.settings):
        window.go_to(page)
        show(window, snapshot)
        qtbot.waitUntil(lambda page=page: not cut(page, window), timeout=5000)


def cut(page: QWidget, window: QWidget) -> list[str]:
    """The texts of a page that are cut off; a layout may take a moment to become stable."""
    labels = [label for label in page.findChildren(QLabel) if label.isVisible() and label.text()]
    narrow = [each for each in labels if not each.wordWrap() and each.width() < each.sizeHint().width() - 1]
    outside = [each for each in labels if right_edge(each, window) > window.width()]
    return [each.text() for each in (*narrow, *outside)]


def right_edge(widget: QWidget, window: QWidget) -> int:
    return widget.mapTo(window, widget.rect().topRight()).x()


def test_pages_by_keyboard(window, qtbot):
    show(window, shots.TRAINING)
    window.rail.setFocus()
    qtbot.keyClick(window.rail, Qt.Key.Key_Down)
    assert window.pages.currentWidget() is window.projects


def test_the_tray_says_it_in_one_line_and_offers_the_pauses(dressed, qtbot):
    tray = Tray(VOICE.now, "#6B665E")
    tray.show_snapshot(shots.SLOWED, shots.NOW)
    assert tray.first.text() == "Tiny code model: 20 % while you use this computer."
    assert not tray.first.isEnabled()
    assert [action.text() for action in tray.menu.actions() if action.text()] == [
        tray.first.text(),
        "Pause",
        "Resume",
        "Open skep",
        "Quit",
    ]
    assert not tray.resume.isVisible()
    tray.show_snapshot(shots.PAUSED, shots.NOW)
    assert tray.resume.isVisible()
    assert signal(qtbot, tray.pause_chosen, tray.pause.actions()[3].trigger) == [None]
    hostile = replace(shots.SLOWED, project=replace(shots.PROJECT, title=shots.HOSTILE))
    tray.show_snapshot(hostile, shots.NOW)
    assert len(tray.first.text()) <= 72
    assert "\u202e" not in tray.first.text()


def test_the_icon_follows_the_state(dressed):
    colour = "#6B665E"
    drawn = {look: icons.image(mark.panel(look, colour), 22) for look in (Look(State.IDLE), Look(State.PAUSED))}
    assert drawn[Look(State.IDLE)] != drawn[Look(State.PAUSED)]
