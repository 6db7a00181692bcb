"""A card that does not compute in the sandbox gets a lower level, by stand-ins for the computation; real ones: tests/gpu."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sandboxes import BY_LANDLOCK, BY_SYSTEMD, has_landlock, has_namespaces
from skep.core.sandbox import Guard
from skep.worker.sandbox.cards import compute_on_cards, why_blocked
from skep.worker.sandbox.confine import BLOCKED

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this sandbox")

SECONDS = 60
MFD_NOEXEC_SEAL = 8
CONFINED = """
import json, socket, sys
from pathlib import Path
from skep.worker.sandbox.confine import confine
from skep.worker.sandbox.rules import Own

run, compute = sys.argv[1:]

def computed():
    exec(compute)

found = confine(Own(run), cards=True, compute=computed)
print(json.dumps(found.missing))
"""


@pytest.fixture
def confined(tmp_path):
    """What is missing after a process confined itself whose card computes by running a line of Python."""
    run = tmp_path / "run"
    run.mkdir()

    def confine(compute):
        done = subprocess.run(
            [sys.executable, "-c", CONFINED, run, compute],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        return {guard: why for guard, why in found.items() if guard not in BY_SYSTEMD}

    return confine


@pytest.fixture
def whole():
    if not (has_landlock() and has_namespaces(as_nobody=False)):
        pytest.skip("this system has no user namespaces, or no Landlock that refuses signals")


def test_a_card_that_computes_keeps_the_whole_sandbox(whole, confined):
    assert confined("pass") == {}


def test_a_card_that_fails_anyway_keeps_the_whole_sandbox(whole, confined):
    assert confined("raise OSError('the driver is broken')") == {}


def test_a_driver_that_makes_files_in_memory_which_are_no_programs_keeps_the_whole_sandbox(whole, confined):
    sealed = f"import os; os.close(os.memfd_create('driver', {MFD_NOEXEC_SEAL}))"
    try:
        exec(sealed)
    except OSError:
        pytest.skip("takes Linux 6.3")
    assert confined(sealed) == {}


def test_a_driver_whose_files_in_memory_could_be_programs_keeps_all_but_one_guard(whole, confined):
    missing = confined("import os; os.close(os.memfd_create('driver', 0))")
    assert set(missing) == {Guard.PROGRAMS}
    assert missing[Guard.PROGRAMS].startswith(BLOCKED)


def test_a_driver_that_needs_a_socket_gets_landlock_alone(whole, confined, tmp_path):
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(str(tmp_path / "driver"))
        service.listen()
        missing = confined(f"socket.socket(socket.AF_UNIX).connect({str(tmp_path / 'driver')!r})")
    assert set(missing) == {Guard.SERVICES}
    assert missing[Guard.SERVICES].startswith(BLOCKED)


def test_a_driver_that_needs_a_file_of_the_person_gets_no_sandbox(confined, tmp_path):
    (tmp_path / "driver.conf").write_text("needed")
    missing = confined(f"Path({str(tmp_path / 'driver.conf')!r}).read_text()")
    assert set(missing) == set(Guard) - BY_SYSTEMD
    assert all(why.startswith(BLOCKED) for why in missing.values())


def test_a_driver_that_signals_another_process_gets_a_private_root(whole, confined):
    assert set(confined("import os; os.kill(os.getppid(), 0)")) == BY_LANDLOCK


def test_without_a_card_nothing_is_computed(tmp_path):
    compute_on_cards(tmp_path)


def test_a_card_whose_file_is_no_device_fails_in_words(tmp_path):
    (tmp_path / "kfd").touch()
    assert why_blocked(lambda: None, lambda: compute_on_cards(tmp_path)) == ""
    with pytest.raises(OSError, match="ioctl"):
        compute_on_cards(tmp_path)


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this computer has the driver")
def test_a_driver_without_its_library_fails_in_words(tmp_path):
    (tmp_path / "nvidiactl").touch()
    with pytest.raises(OSError, match="libcuda"):
        compute_on_cards(tmp_path)
