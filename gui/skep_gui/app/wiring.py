"""Makes the window with its pages and connects what a person asks for. Loaded when the window is first wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skep.core.device import Device
from skep.core.session import messages as m
from skep_gui.app.background import OUR_OWN
from skep_gui.app.main_window import MainWindow, Parts
from skep_gui.pages.registry import Requests, kinds
from skep_gui.widgets.strips import ProblemStrip, UpdateStrip
from skep_gui.words.projects import PRACTICE

if TYPE_CHECKING:
    from skep_gui.app.app import App
    from skep_gui.pages.first_run import FirstRun
    from skep_gui.words.translation import Translation


def pages(translation: Translation) -> MainWindow:
    """The window alone, connected to nothing."""
    return MainWindow(_made(translation))


def _made(translation: Translation) -> Parts:
    return Parts(
        [(kind, kind.make(translation)) for kind in kinds()], ProblemStrip(translation.problems), UpdateStrip()
    )


def make_window(app: App) -> MainWindow:
    window = pages(app.translation)
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
    window.fill(_made(app.translation))
    _connect(app, window)
    app.show_update()
    window.settings.go_back_to(place)
    window.rail.setCurrentRow(page)


def _connect(app: App, window: MainWindow) -> None:
    window.connect_pages(_requests(app, window))
    app.projects.connect_page(window.projects)
    window.settings.show_lacking(app.lacking)
    window.strip.acted.connect(app.trouble.act)
    window.news.acted.connect(app.updating.act)
    window.news.closed.connect(app.updating.close)
    if app.trouble.traces:
        window.show_fault(OUR_OWN)


def _requests(app: App, window: MainWindow) -> Requests:
    return Requests(
        pause=app.pause,
        resume=app.resume,
        leave=app.leave,
        leave_or_cancel=lambda: _leave(app),
        go_to_projects=lambda: window.go_to(window.projects),
        go_to_setting=lambda key: _reveal(window, key),
        change_setting=lambda key, value: app.post(m.ChangeSettings({key: value})),
        read_record=app.read_record,
        export=app.export,
        offer_devices=lambda: _offer_devices(app),
        first_run=app.first_run,
        diagnose=app.trouble.diagnose,
        look_for_update=app.updating.look,
        go_back_to_older=app.updating.go_back,
    )


def _offer_devices(app: App) -> None:
    """What there is to choose from in settings, looked for when somebody looks at them."""

    def found(devices: Sequence[Device]) -> None:
        if app.window is not None:
            app.window.settings.show_offered({"compute.device": app.translation.devices.offered(devices)})

    if app.desk is not None:
        app.errands.run(app.desk.devices, found, lambda _: None, slow=True)


def first_steps(app: App) -> FirstRun:
    """The first steps, over the window where it is open."""
    from skep_gui.pages.first_run import FirstRun  # noqa: PLC0415 - seen once

    steps = FirstRun(app.translation.devices, app.window)
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
