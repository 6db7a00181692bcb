"""The packs of a home: chosen, fetched from a real TUF repository, tried in real processes, used, mended, removed."""

import contextlib
import logging
import shutil
import subprocess
import sys
import time

import pytest

from english import in_english, raises
from pack_repository import pack_server
from skep.adapters.packs import trial
from skep.adapters.packs.trial import try_out
from skep.adapters.process.programs import UpdateSource, module_command
from skep.core.device import Device, DeviceKind
from skep.core.errors import BadInput, StorageError, UpdateError
from skep.core.packs import PackKind, list_name, wheel_target
from skep.core.text import NOTHING, Text, verbatim
from skep.services import packs as services
from skep.services.packs import Packs, Progress
from small_packs import make_pack, make_wheel

PROCESSOR = Device(DeviceKind.CPU, 0, "A processor")
CARD = Device(DeviceKind.NVIDIA, 0, "NVIDIA GeForce RTX 3090", driver="580.65.06", architecture="8.6")
NO_DRIVER = 'raise RuntimeError("Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU")'
LIST = list_name("linux", "x86_64", "cp311")


@pytest.fixture
def server(tmp_path):
    with pack_server(tmp_path / "served") as server:
        yield server


@pytest.fixture
def wheels(tmp_path):
    (tmp_path / "wheels").mkdir()
    return tmp_path / "wheels"


class Trials:
    """A stand-in for the process that tries a pack. `fails` has the reason by the pack's name."""

    def __init__(self):
        self.made, self.fails = [], {}

    def __call__(self, folder, device, check):
        check()
        name = folder.name.rpartition("-")[0]
        self.made.append((name, device.choice))
        return self.fails.get(name, NOTHING)


@pytest.fixture
def trials():
    return Trials()


@pytest.fixture
def devices():
    return [CARD, PROCESSOR]


@pytest.fixture
def open_packs(home, server, devices, trials):
    """The packs of the home as another start of skep has them."""

    def opened(**options):
        return Packs(
            home,
            UpdateSource(server.address, server.root),
            devices=lambda: devices,
            proxy=lambda: "",
            **{"name": LIST, "trial": trials, "keep_free": lambda: 0.0, **options},
        )

    return opened


@pytest.fixture
def cpu(wheels):
    return make_pack("cpu", make_wheel(wheels, "shared", {"shared.py": b"s"}), make_wheel(wheels, "c", {"c.py": b"c"}))


@pytest.fixture
def cuda(wheels):
    """Fails like torch without a driver."""
    torch = make_wheel(wheels, "torch", {"torch/__init__.py": NO_DRIVER.encode()})
    shared = make_wheel(wheels, "shared", {"shared.py": b"s"})
    return make_pack("cuda-13.0", shared, torch, kind=PackKind.CUDA, driver=(580,), cards=("8.6",))


@pytest.fixture
def published(server, wheels, cpu, cuda):
    server.publish(wheels, LIST, cpu, cuda)
    return server


NO_KERNELS = Text("packs.no_kernels")


class Told:
    """What is said meanwhile."""

    def __init__(self):
        self.chosen, self.fetched, self.laid, self.tried, self.passed_over = [], [], [], [], []

    @property
    def progress(self):
        return Progress(
            lambda choice: self.chosen.append(choice.pack.name),
            lambda *now: self.fetched.append(now) or True,
            lambda *now: self.laid.append(now) or True,
            lambda pack: self.tried.append(pack.name),
            lambda pack: self.passed_over.append((pack.pack.name, in_english(pack.why))),
        )


def test_what_suits_is_said_before_anything_is_fetched(published, open_packs, cuda, home):
    offer = open_packs().look()
    assert (offer.choice.pack, offer.choice.device) == (cuda, CARD)
    assert (offer.to_fetch, offer.room) == (cuda.to_fetch, cuda.to_fetch + cuda.unpacked)
    assert offer.folder.parent == home.packs_folder / "laid"
    assert [pack.name for pack in offer.packs] == ["cpu", "cuda-13.0"]
    assert not any(name.endswith(".whl") for name, _ in published.asked)


def test_the_pack_that_suits_is_fetched_tried_and_used(published, open_packs, cuda, trials):
    packs, told = open_packs(), Told()
    choice = packs.fetch(told.progress)
    assert choice.pack == cuda
    assert packs.store.current == packs.store.place(cuda)
    assert trials.made == [("cuda-13.0", "cuda:0")]
    assert (told.chosen, told.tried, told.passed_over) == (["cuda-13.0"], ["cuda-13.0"], [])
    assert told.fetched[-1] == (cuda.to_fetch, cuda.to_fetch)
    assert told.laid[-1] == (cuda.unpacked, cuda.unpacked)
    offer = open_packs().look()
    assert (offer.to_fetch, offer.room) == (0, 0)
    asked = len(published.asked)
    assert open_packs().fetch(told.progress).pack == cuda
    assert not any(name.endswith(".whl") for name, _ in published.asked[asked:])
    assert len(trials.made) == 1, "the same card and driver need no other trial"


def test_what_falls_is_said_with_its_reason_and_the_next_pack_is_taken(published, open_packs, cpu):
    """The packs are tried by real processes: the first fails like torch without a driver, the second has this torch."""
    packs, told = open_packs(trial=try_out), Told()
    choice = packs.fetch(told.progress)
    assert told.passed_over == [("cuda-13.0", "PyTorch finds no NVIDIA driver.")]
    assert choice.pack == cpu
    assert in_english(choice.why) == "The pack cpu computes on the processor."
    assert [(each.pack.name, in_english(each.why)) for each in choice.passed_over] == [
        ("cuda-13.0", "PyTorch finds no NVIDIA driver.")
    ]
    assert packs.store.current == packs.store.place(cpu)
    assert packs.store.laid() == [packs.store.place(cpu)], "what does not work takes no space"
    assert [name for name, _ in published.asked].count(f"targets/{wheel_target(cpu.wheels[0])}") == 1


def test_a_pack_that_failed_is_not_fetched_again_until_the_driver_is_another(published, open_packs, trials, devices):
    trials.fails = {"cuda-13.0": NO_KERNELS}
    open_packs().fetch(Progress())
    assert open_packs().look().choice.pack.name == "cpu"
    open_packs().fetch(Progress())
    assert trials.made == [("cuda-13.0", "cuda:0"), ("cpu", "cpu")]
    devices[0] = Device(DeviceKind.NVIDIA, 0, CARD.name, driver="590.44.01", architecture="8.6")
    trials.fails = {}
    assert open_packs().look().choice.pack.name == "cuda-13.0"
    open_packs().fetch(Progress())
    assert trials.made[2:] == [("cuda-13.0", "cuda:0")]


def test_a_failure_that_may_be_over_is_tried_again_at_the_next_fetch(published, open_packs, trials):
    trials.fails = {"cuda-13.0": verbatim("The memory of the card is full.")}
    assert open_packs().fetch(Progress()).pack.name == "cpu"
    assert open_packs().look().choice.pack.name == "cuda-13.0"
    trials.fails = {}
    assert open_packs().fetch(Progress()).pack.name == "cuda-13.0"


@contextlib.contextmanager
def computing_with(folder):
    """A process that has the folder of a pack as an argument, as every process that computes with one."""
    process = subprocess.Popen([sys.executable, "-c", "input()", "--pack", folder], stdin=subprocess.PIPE)
    try:
        yield
    finally:
        process.communicate(b"\n", timeout=20)


def test_a_pack_that_a_process_computes_with_stays(published, open_packs, cpu, cuda):
    packs = open_packs()
    packs.fetch(Progress())
    used = packs.store.current
    with computing_with(used):
        packs.fetch(Progress(), "cpu")
        packs.go_back()
        packs.fetch(Progress(), "cpu")
        assert packs.free() == 0
        for name in ("cuda-13.0", ""):
            with raises(UpdateError, match="A process computes with this compute pack"):
                packs.remove(name)
        assert set(map(len, packs.verify().values())) == {0}
        assert len(packs.installed()) == 2
    packs.free()
    assert [each.pack for each in packs.installed()] == [cpu]


def test_a_driver_that_has_changed_causes_a_new_trial(published, open_packs, trials, devices, cuda):
    assert not open_packs().must_be_tried()
    open_packs().fetch(Progress())
    assert not open_packs().must_be_tried()
    assert open_packs().check() == NOTHING
    assert len(trials.made) == 1
    devices[0] = Device(DeviceKind.NVIDIA, 0, CARD.name, driver="590.44.01", architecture="8.6")
    assert open_packs().must_be_tried()
    assert open_packs().check() == NOTHING
    assert len(trials.made) == 2
    assert not open_packs().must_be_tried()


def test_a_pack_that_a_new_driver_broke_is_noticed_and_replaced(published, open_packs, trials, devices, cpu, cuda):
    open_packs().fetch(Progress())
    devices[0] = Device(DeviceKind.NVIDIA, 0, CARD.name, driver="590.44.01", architecture="8.6")
    trials.fails = {"cuda-13.0": NO_KERNELS}
    packs = open_packs()
    assert in_english(packs.check()) == "PyTorch has no code for this card."
    assert packs.must_be_tried()
    assert packs.fetch(Progress()).pack == cpu
    assert packs.store.current == packs.store.place(cpu)
    assert packs.store.previous == packs.store.place(cuda)
    assert not packs.must_be_tried()
    assert packs.check() == NOTHING


def test_a_card_that_is_gone_is_noticed(published, open_packs, trials, devices):
    open_packs().fetch(Progress())
    del devices[0]
    assert open_packs().must_be_tried()
    assert in_english(open_packs().check()) == "This computer has no NVIDIA device."
    assert len(trials.made) == 1
    assert open_packs().fetch(Progress()).pack.name == "cpu"


NO_MEMORY = Text("packs.trial_failed", reason="CUDA out of memory.")


def test_one_that_stood_in_for_a_card_that_was_gone_is_replaced_when_the_card_is_back(
    published, open_packs, trials, devices, cpu, cuda
):
    open_packs().fetch(Progress())
    del devices[0]
    assert open_packs().check()
    assert open_packs().fetch(Progress()).pack == cpu
    assert not open_packs().must_be_tried()
    devices.insert(0, CARD)
    packs = open_packs()
    assert packs.must_be_tried()
    assert packs.check() == NOTHING
    assert packs.store.current == packs.store.place(cuda)
    assert not packs.must_be_tried()


def test_one_that_stood_in_after_a_trial_that_failed_for_now_is_replaced_when_the_trial_passes(
    published, open_packs, trials, devices, cpu, cuda
):
    open_packs().fetch(Progress())
    devices[0] = Device(DeviceKind.NVIDIA, 0, CARD.name, driver="590.44.01", architecture="8.6")
    trials.fails = {"cuda-13.0": NO_MEMORY}
    assert open_packs().check()
    assert open_packs().fetch(Progress()).pack == cpu
    assert open_packs().must_be_tried()
    packs = open_packs()
    assert packs.check() == NOTHING
    packs.tidy()
    assert packs.store.current == packs.store.place(cpu)
    assert not packs.must_be_tried()  # once is enough
    trials.fails = {}
    assert open_packs().check() == NOTHING
    assert packs.store.current == packs.store.place(cuda)


def test_one_that_stands_in_is_used_while_another_process_changes_the_packs(
    published, open_packs, trials, devices, cpu
):
    open_packs().fetch(Progress())
    del devices[0]
    open_packs().fetch(Progress())
    devices.insert(0, CARD)
    with open_packs().store.changing():
        assert open_packs().check() == NOTHING
    assert open_packs().store.current == open_packs().store.place(cpu)


def test_one_that_was_chosen_by_name_stays(published, open_packs, trials, devices, cpu):
    open_packs().fetch(Progress())
    open_packs().fetch(Progress(), "cpu")
    assert not open_packs().must_be_tried()
    assert open_packs().check() == NOTHING
    assert open_packs().store.current == open_packs().store.place(cpu)


def test_a_pack_can_be_named(published, open_packs, trials, devices, cpu):
    devices[:] = [PROCESSOR]
    told = Told()
    trials.fails = {"cuda-13.0": NO_KERNELS}
    choice = open_packs().fetch(told.progress, "cuda-13.0")
    assert trials.made == [("cuda-13.0", "cuda:0"), ("cpu", "cpu")]
    assert told.passed_over == [("cuda-13.0", "PyTorch has no code for this card.")]
    assert choice.pack == cpu
    with raises(BadInput, match="no compute pack called rocm-9 for this computer") as refused:
        open_packs().fetch(told.progress, "rocm-9")
    assert in_english(refused.value.hint) == "There are: cpu, cuda-13.0."
    trials.fails = {}
    devices[:] = [CARD, PROCESSOR]
    assert open_packs().fetch(told.progress, "cpu").pack == cpu, "although another one suits better"


def test_where_every_pack_falls_all_reasons_are_said(published, open_packs, trials):
    trials.fails = {"cuda-13.0": verbatim("One."), "cpu": verbatim("Two.")}
    packs = open_packs()
    with raises(UpdateError, match="No compute pack suits this computer") as refused:
        packs.fetch(Progress())
    assert in_english(refused.value.hint) == "cuda-13.0: One. cpu: Two."
    assert packs.store.current is None


def test_a_failure_leaves_the_pack_that_is_used(published, open_packs, wheels, cpu, trials, devices, server):
    devices[:] = [PROCESSOR]
    open_packs().fetch(Progress())
    before = open_packs().store.current
    newer = make_pack("cpu", *cpu.wheels[:1], make_wheel(wheels, "c", {"c.py": b"newer"}, version="2.0"))
    server.publish(wheels, LIST, newer)
    place = server.folder / "targets" / wheel_target(newer.wheels[1])
    place.write_bytes(place.read_bytes()[:-1] + b"?")
    with raises(UpdateError, match="could not be fetched"):
        open_packs().fetch(Progress())
    assert open_packs().store.current == before
    shutil.copyfile(wheels / newer.wheels[1].file, place)
    trials.fails = {"cpu": NO_KERNELS}
    with raises(UpdateError, match="No compute pack suits"):
        open_packs().fetch(Progress())
    assert open_packs().store.current == before
    assert open_packs().check() == NOTHING


def test_an_update_fetches_what_changed_and_one_can_go_back(published, open_packs, wheels, cpu, devices, server):
    devices[:] = [PROCESSOR]
    open_packs().fetch(Progress())
    newer = make_pack("cpu", cpu.wheels[0], make_wheel(wheels, "c", {"c.py": b"newer"}, version="2.0"))
    server.publish(wheels, LIST, newer)
    server.asked.clear()
    packs = open_packs()
    assert packs.look().to_fetch == newer.wheels[1].size
    packs.fetch(Progress())
    assert [name for name, _ in server.asked if name.endswith(".whl")] == [f"targets/{wheel_target(newer.wheels[1])}"]
    assert (packs.store.current / "c.py").read_bytes() == b"newer"
    assert packs.go_back() == cpu
    assert (packs.store.current / "c.py").read_bytes() == b"c"
    assert packs.check() == NOTHING


def test_cancelling_is_no_failure_and_keeps_what_came(published, open_packs):
    packs = open_packs()
    assert packs.fetch(Progress(fetched=lambda done, _total: done == 0)) is None
    assert packs.fetch(Progress(laid=lambda *_: False)) is None
    assert packs.store.current is None
    asked = [name for name, _ in published.asked if name.endswith(".whl")]
    assert len(asked) == len(set(asked)) == 2
    assert packs.fetch(Progress(waited=lambda: False)) is None
    assert packs.store.current is None
    packs.stop()
    assert packs.fetch(Progress()) is None


def test_too_little_space_is_said(published, open_packs):
    with raises(StorageError, match="not enough space for the compute pack"):
        open_packs(keep_free=lambda: 1e6).fetch(Progress())


def test_what_is_installed_is_listed_with_sizes(published, open_packs, trials, devices, cpu, cuda):
    packs = open_packs()
    assert packs.installed() == []
    packs.fetch(Progress())
    devices[:] = [PROCESSOR]
    packs.fetch(Progress())
    one, other = packs.installed()
    assert (one.pack, one.is_current, one.is_previous, one.size) == (cpu, True, False, cpu.unpacked)
    assert (other.pack, other.is_current, other.is_previous) == (cuda, False, True)
    assert other.alone == len(NO_DRIVER) + (other.folder / "skep-pack.json").stat().st_size


def test_damage_is_found_and_mended(published, open_packs):
    packs = open_packs()
    packs.fetch(Progress())
    name = packs.store.current.name
    told = []
    assert packs.verify(lambda *now: told.append(now) or True) == {name: []}
    assert told[-1][0] == told[-1][1]
    (packs.store.current / "torch/__init__.py").write_text("")
    assert packs.verify() == {name: ["torch/__init__.py"]}
    assert packs.look().to_fetch > 0
    packs.fetch(Progress())
    assert packs.verify() == {name: []}


def test_packs_are_removed(published, open_packs, devices):
    packs = open_packs()
    assert packs.remove() == 0
    packs.fetch(Progress())
    devices[:] = [PROCESSOR]
    packs.fetch(Progress())
    with raises(BadInput, match="No compute pack called mps is installed") as refused:
        packs.remove("mps")
    assert in_english(refused.value.hint) == "There are: cpu, cuda-13.0."
    assert packs.remove("cuda-13.0") > len(NO_DRIVER)
    assert [each.pack.name for each in packs.installed()] == ["cpu"]
    assert packs.remove() > 0
    assert packs.installed() == []
    assert packs.store.bytes() < 20
    assert packs.store.current is None
    assert in_english(packs.check()) == "No compute pack is installed."


def test_leftovers_of_an_interruption_are_tidied(published, open_packs, home):
    packs = open_packs()
    packs.tidy()
    assert not home.packs_folder.exists()
    packs.fetch(Progress())
    left = home.packs_folder / "laid/.incoming-cpu-0"
    left.mkdir()
    with packs.store.changing():
        open_packs().tidy()
    assert left.exists(), "another skep is changing the packs"
    open_packs().tidy()
    assert not left.exists()
    assert packs.store.current.exists()


def fetched_wheels(server):
    return [name for name, _ in server.asked if name.endswith(".whl")]


def test_a_pack_whose_trial_was_interrupted_is_not_fetched_again(published, open_packs, cuda):
    assert open_packs().fetch(Progress(waited=lambda: False)) is None
    open_packs().tidy()  # as at each start of skep
    assert open_packs().fetch(Progress()).pack == cuda
    assert len(fetched_wheels(published)) == len(set(fetched_wheels(published))) == len(cuda.wheels)


def test_a_pack_that_may_work_later_is_kept_and_one_that_does_not_work_takes_no_space(
    published, open_packs, trials, devices, cpu
):
    devices[:] = [PROCESSOR]
    for why, kept in ((verbatim("The memory is full."), 1), (NO_KERNELS, 0)):
        trials.fails = {"cpu": why}
        with raises(UpdateError, match="No compute pack suits"):
            open_packs().fetch(Progress())
        open_packs().tidy()
        assert len(open_packs().store.laid()) == kept
    assert len(fetched_wheels(published)) == len(cpu.wheels)


def test_what_is_not_used_is_freed(published, open_packs, cpu):
    packs = open_packs()
    assert packs.spare == 0
    packs.fetch(Progress())
    packs.fetch(Progress(), "cpu")
    (packs.store.current / "more.bin").write_bytes(bytes(500_000))
    assert packs.spare == 0, "what is used is not spare"
    (packs.store.fetched_folder / "x.whl.part").write_bytes(bytes(1_000_000))
    assert packs.spare > 1_000_000
    assert packs.free() > 1_000_000
    assert [each.pack for each in packs.installed()] == [cpu]
    assert packs.spare == 0


def test_packs_from_a_copy_need_no_server(published, open_packs, tmp_path, cuda, home):
    copy = shutil.copytree(published.folder, tmp_path / "stick")
    asked, told = len(published.asked), Told()
    packs = open_packs()
    assert packs.add(copy, told.progress).pack == cuda
    assert len(published.asked) == asked
    assert packs.store.current == packs.store.place(cuda)
    assert told.fetched[-1] == (cuda.to_fetch, cuda.to_fetch)


@pytest.mark.way_in
def test_a_copy_that_is_changed_or_incomplete_is_refused(published, open_packs, tmp_path, cuda):
    copy = shutil.copytree(published.folder, tmp_path / "stick")
    wheel = copy / "targets" / wheel_target(cuda.wheels[1])
    raw = wheel.read_bytes()
    wheel.write_bytes(raw[:-1] + b"?")
    with raises(UpdateError, match="is not what its list states"):
        open_packs().add(copy, Progress())
    wheel.unlink()
    with raises(UpdateError, match="The copy lacks torch-1.0-py3-none-any.whl"):
        open_packs().add(copy, Progress())
    (copy / "targets" / LIST).write_text("{}")
    with raises(UpdateError, match=r"stick is refused: What the update server offers is not signed correctly"):
        open_packs().add(copy, Progress())
    assert open_packs().store.current is None


def test_a_publisher_without_packs_is_said(server, open_packs):
    server.sign()
    with raises(UpdateError, match="no compute packs for this kind of computer"):
        open_packs().look()


def test_who_has_a_stack_of_its_own_is_asked_for_no_pack(open_packs, server, home):
    packs = open_packs(own_stack=True)
    assert in_english(packs.lacking).startswith("This skep computes with the PyTorch that came with it")
    for asked in (packs.look, lambda: packs.fetch(Progress()), lambda: packs.add(home.root, Progress())):
        with raises(UpdateError):
            asked()
    assert services.packs(home).lacking == services.OWN_STACK
    assert Packs(home, None, list, lambda: "", lambda: 0.0).lacking == services.NO_SOURCE
    assert server.asked == []


# --- the process of a trial


def laid(folder, **files):
    (folder / "pack").mkdir()
    for name, content in files.items():
        (folder / "pack" / f"{name}.py").write_text(content)
    return folder / "pack"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (NO_DRIVER, "PyTorch finds no NVIDIA driver."),
        ('raise RuntimeError("The NVIDIA driver on your system is too old (found version 11040).")',
         "PyTorch finds the graphics driver too old."),
        ('raise RuntimeError("CUDA error: no kernel image is available")', "PyTorch has no code for this card."),
        ('raise ImportError("libcudart.so.13: cannot open shared object file")',
         "A part of it cannot be loaded: libcudart.so.13: cannot open shared object file."),
        ('raise ValueError("Odd.")', "PyTorch reports: Odd."),
        ("import os; os._exit(3)", "The trial broke off without a result; skep's log has its last words."),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
         "The trial broke off without a result; skep's log has its last words."),
    ],
)  # fmt: skip
def test_a_pack_that_does_not_work_says_why(tmp_path, content, words):
    assert in_english(try_out(laid(tmp_path, torch=content), PROCESSOR)) == words


def test_this_interpreter_s_stack_works_on_the_processor_and_not_on_a_card_that_is_not_there(tmp_path, caplog):
    caplog.set_level(logging.INFO, trial.__name__)
    folder = laid(tmp_path)
    assert try_out(folder, PROCESSOR) == NOTHING
    assert in_english(try_out(folder, CARD)).startswith("PyTorch ")
    assert "Traceback" in caplog.text


def test_a_trial_that_hangs_is_ended(tmp_path):
    began = time.monotonic()
    folder = laid(tmp_path, torch="import time; time.sleep(1000)")
    assert in_english(try_out(folder, PROCESSOR, within=2)) == "The trial did not end within 2\u2009s."
    assert time.monotonic() - began < 30


def test_a_trial_ends_with_the_program_that_waits_for_it(tmp_path):
    folder = laid(tmp_path, torch="import time; print('begun', flush=True); time.sleep(1000)")
    command = (*module_command("skep.worker.trial", folder), PROCESSOR.choice)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr.readline() == b"begun\n"
        process.stdin.close()  # as the system does when that program is killed
        assert process.wait(30) == 1


def test_a_trial_can_be_cancelled(tmp_path):
    class Cancelled(Exception):
        pass

    def check():
        raise Cancelled

    with pytest.raises(Cancelled):
        try_out(laid(tmp_path, torch="import time; time.sleep(1000)"), PROCESSOR, check)


@pytest.mark.parametrize("damage", [b"{", b'{"\xff": {}}', b'{"a":{"x":' + b"[" * 100_000])
def test_results_that_cannot_be_read_cause_another_trial(published, open_packs, home, trials, damage):
    open_packs().fetch(Progress())
    (home.packs_folder / "trials.json").write_bytes(damage)
    assert open_packs().must_be_tried()
    assert open_packs().check() == NOTHING
    assert len(trials.made) == 2
    (home.packs_folder / "trials.json").write_text('{"x": {"device": "cpu A processor", "failed": "{}"}}')
    assert open_packs().look().choice.pack.name == "cuda-13.0"
