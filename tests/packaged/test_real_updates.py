"""The archive of `make package`, installed over an older skep by its `skep update`, which is also killed midway.

The older one is the same build with an older version number and an update address, as from a build with SKEP_UPDATES.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest

from skep import bootstrap
from skep.adapters.process.portable_folder import APP_DIR, PortableFolder
from skep.adapters.process.programs import CURRENT, FACTS_FILE, PROGRAM, ROOT_FILE, START, VERSIONS
from skep.core.errors import NotRunning
from skep.core.record.contributions import Contribution, ContributionState
from skep.core.releases import archive_name
from skep.services.updating import this_kind
from tray_desktops import desktop
from update_server import update_server

pytestmark = [pytest.mark.built, pytest.mark.timeout(5400)]

INTERRUPTIONS = 100
OLDER, NEWER = "0.0.9", version("skep")
DIST = Path(__file__).resolve().parents[2] / "dist"


@pytest.fixture(scope="module")
def archive():
    made = DIST / archive_name(NEWER, *this_kind())
    assert made.is_file(), "make package builds it"
    return made


@pytest.fixture
def app(archive, tmp_path):
    """The unpacked archive, changed to an older version that asks the server for updates."""
    with update_server(tmp_path) as server:
        published = server.publish(archive)
        assert published.returncode == 0, published.stderr
        subprocess.run(["tar", "-xf", archive, "-C", tmp_path], check=True)
        made = tmp_path / APP_DIR
        (made / VERSIONS / NEWER).rename(made / VERSIONS / OLDER)
        (made / CURRENT).unlink()
        (made / CURRENT).symlink_to(f"{VERSIONS}/{OLDER}")
        internal = made / VERSIONS / OLDER / PROGRAM.with_name("_internal")
        facts = internal / FACTS_FILE
        facts.write_text(json.dumps(json.loads(facts.read_text()) | {"updates": server.address}))
        (internal / ROOT_FILE).write_bytes(server.root)
        yield made


def skep(app, home, *arguments, below=CURRENT):
    return [app / below / PROGRAM, "--home", home.root, "--json", *arguments]


def told(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def fill(home):
    """Write data that an update must keep."""
    bootstrap.settings(home).save({"compute.share_away": 0.3})
    with bootstrap.ledger(home) as ledger:
        for number in range(20):
            ledger.record("p", Contribution(f"c{number}", epoch=number, samples=10, state=ContributionState.CONFIRMED))


def kept(app, home):
    return told(*skep(app, home, "stats")), told(*skep(app, home, "settings"))


def status(home):
    with contextlib.suppress(NotRunning):
        return bootstrap.ask(home, {"verb": "status"})["status"]


def the_app_starts(app, home, screen):
    """Start the app hidden, as its menu entry does; it answers, and ends on SIGTERM."""
    process = subprocess.Popen([app / START, "--home", home.root, "--hidden"], env=screen.environ)
    try:
        screen.until(lambda: process.poll() is not None or status(home))
        assert process.poll() is None
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def interrupted(command, after):
    """Start an update and kill it and its children `after` seconds; returns whether it still ran then."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        child.wait(after)
    except subprocess.TimeoutExpired:
        family = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(signal.SIGKILL)
        child.wait()
        psutil.wait_procs(family, 30)  # a new version under test ends by itself
        return True
    assert child.returncode == 0
    return False


def test_a_hundred_killed_updates_leave_an_app_that_starts_and_a_persons_data(app, home, archive):
    fill(home)
    before = kept(app, home)
    chance = random.Random(os.environ.get("SKEP_TEST_SEED", "7"))
    folder = PortableFolder(app, OLDER)
    update = skep(app, home, "update", "--install", below=f"{VERSIONS}/{OLDER}")
    began = time.monotonic()
    assert not interrupted(update, None)
    whole = time.monotonic() - began
    assert folder.current == NEWER
    folder.go_back()
    killed = 0
    with desktop(tray=False) as screen:
        while killed < INTERRUPTIONS:
            killed += interrupted(update, chance.uniform(0, 1.02 * whole))
            the_app_starts(app, home, screen)
            assert kept(app, home) == before
            if folder.current == NEWER:
                folder.go_back()
    assert not interrupted(update, None)
    assert told(*skep(app, home, "update", "--back"))["version"] == OLDER
