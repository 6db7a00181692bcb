"""The compute pack in the app: what suits, fetched by a click or by joining, cancelled, mended, freed; and its texts."""

import threading
from dataclasses import replace

import pytest

import snapshots as shots
from gui_starts import remember, started, wait
from pack_repository import pack_server
from skep.adapters.process.programs import UpdateSource
from skep.core.device import Device, DeviceKind
from skep.core.packs import PackKind, list_name
from skep.core.policy.conditions import Condition, answered
from skep.core.session.snapshot import Snapshot
from skep.core.text import NOTHING, Problem, Text, verbatim
from skep.services.packs import Packs, Progress
from skep_gui.app.packs import Packing
from skep_gui.app.updates import is_metered
from skep_gui.words.packs import PackStage, PackState, PackWords
from small_packs import make_pack, make_wheel

LIST = list_name("linux", "x86_64", "cp311")
CARD = Device(DeviceKind.NVIDIA, 0, "NVIDIA GeForce RTX 3090", driver="580.65.06", architecture="8.6")
PROCESSOR = Device(DeviceKind.CPU, 0, "A processor")


class World:
    """`fails` has the reasons of trials by the pack's name; a trial waits for `go_on`."""

    def __init__(self, home, server, folder):
        self.home, self.source = home, UpdateSource(server.address, server.root)
        self.devices, self.fails, self.go_on = [CARD, PROCESSOR], {}, threading.Event()
        self.go_on.set()
        shared = make_wheel(folder, "shared", {"shared.py": bytes(500_000)})
        self.cpu = make_pack("cpu", shared, make_wheel(folder, "c", {"c.py": bytes(300_000)}))
        self.cuda = make_pack(
            "cuda-13.0", shared, make_wheel(folder, "g", {"g.py": bytes(200_000)}),
            kind=PackKind.CUDA, driver=(580,), cards=("8.6",),
        )  # fmt: skip
        server.publish(folder, LIST, self.cpu, self.cuda)

    def packs(self):
        return Packs(
            self.home, self.source, devices=lambda: self.devices, proxy=lambda: "", keep_free=lambda: 0.0, name=LIST,
            trial=self._trial,
        )  # fmt: skip

    def _trial(self, folder, _device, check):
        while not self.go_on.wait(0.05):
            check()
        return self.fails.get(folder.name.rpartition("-")[0], NOTHING)


@pytest.fixture
def world(home, tmp_path):
    (tmp_path / "wheels").mkdir()
    with pack_server(tmp_path / "served") as server:
        yield World(home, server, tmp_path / "wheels")


@pytest.fixture
def app(dressed, qtbot, home, world):
    """The app without a training stack of its own, with its window open."""
    remember(home)
    with started(dressed, qtbot, home) as running:
        running.controller.packs = world.packs()
        running.packing.start(running.controller)
        yield running
        world.go_on.set()


def shown(app, qtbot, stage):
    wait(qtbot, lambda: app.packing.state.stage is stage)
    return app.window.settings.pack


def open_settings(app):
    app.window.settings.seen.emit()


def test_from_source_there_is_no_card(dressed, qtbot, home):
    remember(home)
    with started(dressed, qtbot, home) as running:
        running.window.settings.seen.emit()
        assert running.packing.state.stage is PackStage.NONE
        assert not running.window.settings.pack.isVisibleTo(running.window.settings)


def test_what_suits_its_size_and_place_are_shown_and_a_click_fetches_it(app, qtbot, world):
    open_settings(app)
    card = shown(app, qtbot, PackStage.OFFERED)
    assert card.isVisibleTo(app.window.settings)
    assert card.sentence.text() == "skep needs a compute pack to train: the build of PyTorch that fits this computer."
    assert "The pack cuda-13.0 suits NVIDIA GeForce RTX 3090 with driver 580.65.06." in card.details.text()
    assert "It would lie in " in card.details.text()
    assert card.fetch.text().startswith("Fetch ")
    seen = []
    app.packing.changed.connect(lambda state: seen.append(state.stage))
    card.fetch.click()
    shown(app, qtbot, PackStage.USED)
    assert {PackStage.FETCHING, PackStage.LAYING, PackStage.TRYING} <= set(seen)
    wait(qtbot, lambda: card.sentence.text() == "The compute pack cuda-13.0 is used.")
    assert not card.fetch.isVisibleTo(card)
    assert not card.bar.isVisibleTo(card)
    assert app.controller.packs.store.current.name.startswith("cuda-13.0-")


def test_what_is_got_faster_than_the_window_is_drawn_keeps_its_name(app, qtbot, world):
    choice = app.controller.packs.look().choice

    def work():
        app.controller.pack_progress.chosen(choice)
        app.controller.pack_progress.laid(1, 2)

    working = threading.Thread(target=work)
    working.start()
    working.join()
    card = shown(app, qtbot, PackStage.LAYING)
    assert card.sentence.text() == "Laying down the compute pack cuda-13.0"


def test_what_falls_is_shown_with_its_reason(app, qtbot, world):
    world.fails = {"cuda-13.0": Text("packs.no_nvidia_driver")}
    open_settings(app)
    card = shown(app, qtbot, PackStage.OFFERED)
    said = []
    app.packing.changed.connect(lambda _: said.append((card.cancel.isVisibleTo(card), card.details.text())))
    card.fetch.click()
    wait(qtbot, lambda: card.sentence.text() == "The compute pack cpu is used.")
    reason = "cuda-13.0: PyTorch finds no NVIDIA driver."
    assert any(under_way and reason in details for under_way, details in said), "already while the next one is got"
    wait(qtbot, lambda: "cuda-13.0: PyTorch finds no NVIDIA driver." in card.details.text())


def test_it_can_be_cancelled_and_tried_again(app, qtbot, world):
    world.go_on.clear()
    open_settings(app)
    card = shown(app, qtbot, PackStage.OFFERED)
    card.fetch.click()
    shown(app, qtbot, PackStage.TRYING)
    assert card.cancel.isVisibleTo(card)
    assert card.cancel.text() == "Cancel"
    card.cancel.click()
    shown(app, qtbot, PackStage.OFFERED)
    assert app.controller.packs.store.current is None
    assert card.fetch.text() == "Use cuda-13.0"
    world.go_on.set()
    card.fetch.click()
    wait(qtbot, lambda: card.sentence.text() == "The compute pack cuda-13.0 is used.")


def test_a_failure_is_shown_with_what_to_do(app, qtbot, world, tmp_path):
    (tmp_path / "served/metadata/timestamp.json").unlink()
    open_settings(app)
    card = shown(app, qtbot, PackStage.FAILED)
    assert card.details.text() == (
        "The update server cannot be reached, or a file is missing there."
        " Try again later. If that does not help, tell the publisher of this skep."
    )
    assert card.fetch.text() == "Try again"


def test_packs_that_are_not_used_are_freed(app, qtbot, world):
    app.controller.packs.fetch(Progress(), "cpu")
    app.controller.packs.fetch(Progress())
    open_settings(app)
    card = shown(app, qtbot, PackStage.USED)
    wait(qtbot, lambda: card.free.isVisibleTo(card))
    assert card.free.text().startswith("Free 3")
    card.free.click()
    wait(qtbot, lambda: not card.free.isVisibleTo(card))
    assert [each.pack.name for each in app.controller.packs.installed()] == ["cuda-13.0"]


def test_joining_fetches_a_pack_first_and_says_so(app, qtbot, world):
    said = []
    app.window.projects.say = lambda text, problem=False: said.append(text)
    app.projects.join("nothing")
    wait(qtbot, lambda: any("nothing" in text for text in said))
    assert any(text.startswith("Fetching the compute pack cuda-13.0 · ") for text in said)
    trying = said.index(
        "Trying the compute pack cuda-13.0 · A step of training on the device, in a process of its own."
    )
    assert said[trying + 1] == "", "what follows is not waiting for a pack"
    assert app.controller.packs.store.current.name.startswith("cuda-13.0-")
    shown(app, qtbot, PackStage.USED)


def test_a_project_that_is_joined_at_the_start_shows_what_it_waits_for_and_why_it_failed(app, qtbot, world):
    world.go_on.clear()
    app.projects.join("nothing")  # as the start does, while the window shows another page
    wait(qtbot, lambda: app.packing.state.stage is PackStage.TRYING)
    assert "Trying the compute pack cuda-13.0" in app.window.projects.said.text()
    assert app.window.projects.said.isVisible()
    app.window.go_to(app.window.settings)
    world.go_on.set()
    wait(qtbot, app.window.projects.said.isVisible)
    assert "nothing" in app.window.projects.said.text()
    assert not app.tray.told


def test_a_join_that_fails_while_no_window_is_open_is_notified(app, qtbot):
    app.window.close()
    app.projects.join("nothing")
    wait(qtbot, lambda: any("nothing" in title for title, _ in app.tray.told))


def test_a_join_that_waits_for_a_pack_can_be_cancelled(app, qtbot, world):
    said = []
    app.window.projects.say = lambda text, problem=False: said.append(text)
    world.go_on.clear()
    app.projects.join("nothing")
    wait(qtbot, lambda: app.packing.state.stage is PackStage.TRYING)
    app._leave_or_cancel()
    wait(qtbot, lambda: any("The compute pack was not fetched." in text for text in said))
    assert app.controller.packs.store.current is None


def test_leaving_a_project_does_not_cancel_a_pack_that_was_asked_for(app, qtbot, world):
    world.go_on.clear()
    app.packing.fetch()
    wait(qtbot, lambda: app.packing.state.stage is PackStage.TRYING)
    app._leave_or_cancel()
    assert app.packing._goes_on()
    world.go_on.set()
    wait(qtbot, lambda: app.controller.packs.store.current is not None)
    shown(app, qtbot, PackStage.USED)


def test_a_pack_that_a_new_driver_broke_is_replaced_at_the_start(app, qtbot, world):
    app.controller.packs.fetch(Progress())
    world.devices = [replace(CARD, driver="590.44.01"), PROCESSOR]
    world.fails = {"cuda-13.0": Text("packs.no_kernels")}
    app.packing.start(app.controller)
    wait(qtbot, lambda: app.controller.packs.store.current.name.startswith("cpu-"))
    shown(app, qtbot, PackStage.USED)


def test_what_nobody_asked_for_is_not_fetched_over_a_metered_connection(app, qtbot, world):
    app.controller.packs.fetch(Progress())
    world.devices = [PROCESSOR]
    usual = replace(shots.IDLE, settings={"network.metered_pause": True})
    metered = replace(usual, conditions=usual.conditions.with_seen({Condition.METERED: answered(value=True)}))
    packing = Packing(app.background, lambda: metered, app)
    failed = []
    packing.changed.connect(lambda state: failed.append(state.problem))
    packing.start(app.controller)
    wait(qtbot, lambda: any(failed))
    assert app.controller.packs.store.current.name.startswith("cuda-13.0-")


# --- texts

WORDS = PackWords()
STATE = PackState(name="cuda-13.0", part=0.25, size=2_500_000_000)


def test_progress_has_the_time_left():
    view = WORDS.view(replace(STATE, stage=PackStage.FETCHING, seconds_left=90.0))
    assert view.sentence == "Fetching the compute pack cuda-13.0"
    assert view.details[0].replace("\u2009", " ") == "25 % · 2.5 GB · about 1 min 30 s left"
    assert view.part == 0.25
    assert WORDS.view(replace(STATE, stage=PackStage.TRYING)).part is None


def test_a_pack_that_is_here_already_need_not_be_fetched():
    view = WORDS.view(replace(STATE, stage=PackStage.OFFERED, used="cpu"))
    assert (view.sentence, view.fetch) == ("The compute pack cpu is used.", "Use cuda-13.0")


def test_a_problem_stands_in_place_of_the_reason():
    problem = Problem(verbatim("It failed."), Text("packs.tell_publisher"))
    view = WORDS.view(replace(STATE, stage=PackStage.FAILED, problem=problem, why=verbatim("It suits.")))
    assert view.details == ("It failed. Tell the publisher of this skep.",)


def test_where_no_pack_is_needed_nothing_is_said():
    assert WORDS.view(PackState()) is None
    assert not is_metered(Snapshot())
