"""Makes the window with its pages and connects what a person asks for. Loaded when the window is first wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skep.core import messages as m
from skep.core.model import Device
from skep_gui.errands import OUR_OWN
from skep_gui.main_window import MainWindow, Parts
from skep_gui.now_page import NowPage
from skep_gui.present.projects import PRACTICE
from skep_gui.problem_strip import ProblemStrip
from skep_gui.projects_page import ProjectsPage
from skep_gui.settings_page import SettingsPage
from skep_gui.stats_page import StatsPage
from skep_gui.update_strip import UpdateStrip

if TYPE_CHECKING:
    from skep_gui.app import App
    from skep_gui.first_run import FirstRun
    from skep_gui.voice import Voice


def pages(voice: Voice) -> MainWindow:
    """The window alone, connected to nothing."""
    return MainWindow(_made(voice))


def _made(voice: Voice) -> Parts:
    return Parts(
        NowPage(voice.now, voice.joining, voice.pauses),
        ProjectsPage(voice.projects),
        StatsPage(voice.stats, voice.day),
        SettingsPage(voice.settings, voice.tester),
        ProblemStrip(voice.problems),
        UpdateStrip(),
    )


def make_window(app: App) -> MainWindow:
    window = pages(app.voice)
    _connect(app, window)
    app.trouble.window = window
    app.trouble.projects_wanted.connect(lambda: window.go_to(window.projects))
    app.trouble.setting_wanted.connect(lambda key: _reveal(window, key))
    window.opened.connect(app.window_opened)
    window.closed.connect(app.window_closed)
    window.quit_wanted.connect(app.quit)
    return window


def speak_anew(app: App, window: MainWindow) -> None:
    """The same window with pages in the language that is set now, where the person was."""
    page, place = window.rail.currentRow(), window.settings.place()
    window.fill(_made(app.voice))
    _connect(app, window)
    app.show_update()
    window.settings.go_back_to(place)
    window.rail.setCurrentRow(page)


def _connect(app: App, window: MainWindow) -> None:
    now, projects, stats, settings = window.now, window.projects, window.stats, window.settings
    now.pause_chosen.connect(app.pause)
    now.resumed.connect(app.resume)
    now.left.connect(app.leave)
    now.projects_wanted.connect(lambda: window.go_to(projects))
    now.setting_wanted.connect(lambda key: _reveal(window, key))
    projects.leave_wanted.connect(lambda: _leave(app))
    app.projects.connect_page(projects)
    stats.export_wanted.connect(app.export)
    stats.wanted.connect(app.read_record)
    stats.setting_wanted.connect(lambda key: _reveal(window, key))
    stats.projects_wanted.connect(lambda: window.go_to(projects))
    settings.changed.connect(lambda key, value: app.post(m.ChangeSettings({key: value})))
    _connect_trouble(app, window)
    _connect_updates(app, window)
    settings.first_run_wanted.connect(app.first_run)
    settings.show_lacking(app.lacking)
    settings.seen.connect(lambda: _offer_devices(app))


def _offer_devices(app: App) -> None:
    """What there is to choose from in settings, looked for when somebody looks at them."""

    def found(devices: Sequence[Device]) -> None:
        if app.window is not None:
            app.window.settings.show_offered({"compute.device": app.voice.devices.offered(devices)})

    if app.desk is not None:
        app.errands.run(app.desk.devices, found, lambda _: None, slow=True)


def _connect_trouble(app: App, window: MainWindow) -> None:
    trouble = app.trouble
    window.strip.acted.connect(trouble.act)
    window.settings.diagnostics_wanted.connect(trouble.diagnose)
    if trouble.traces:
        window.show_fault(OUR_OWN)


def _connect_updates(app: App, window: MainWindow) -> None:
    window.news.acted.connect(app.updating.act)
    window.news.closed.connect(app.updating.close)
    window.settings.update_wanted.connect(app.updating.look)
    window.settings.older_wanted.connect(app.updating.go_back)


def first_steps(app: App) -> FirstRun:
    """The first steps, over the window where it is open."""
    from skep_gui.first_run import FirstRun  # noqa: PLC0415 - seen once

    steps = FirstRun(app.voice.devices, app.window)
    steps.limits_chosen.connect(lambda values: app.post(m.ChangeSettings(values)))
    steps.practice_wanted.connect(lambda: app.projects.join(PRACTICE))
    steps.projects_wanted.connect(lambda: _go_to_projects(app))
    return steps


def _go_to_projects(app: App) -> None:
    if app.window is not None:
        app.window.go_to(app.window.projects)


def _reveal(window: MainWindow, key: str) -> None:
    window.go_to(window.settings)
    window.settings.reveal(key)


def _leave(app: App) -> None:
    """Also from a practice swarm that is still starting, which the engine does not know of yet."""
    if not app.projects.cancel():
        app.leave()
