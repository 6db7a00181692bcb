"""Records a practice run for the pictures: a real engine with a temporary home (15 minutes).

    python assets/record_practice.py [FOLDER]

On a private screen (Xvfb, and xdotool for the pointer) it joins a practice swarm after three minutes without input,
trains at full share, loses its training process once, pauses, resumes, slows down when the pointer moves, leaves.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from practice_run import FOLDER, LEDGER, RUN, Computer, Recorder, dump_ledger

from desktops import Screen
from skep import bootstrap
from skep.adapters.storage import signing
from skep.adapters.storage.paths import Home
from skep.adapters.storage.shard_cache import free_bytes
from skep.core.project.manifest import VerifiedProject
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.settings.settings import DEFAULTS
from skep.engine.engine import Engine
from skep.host.practice.process import PracticeProcess

SHARE = "compute.share_using"
"""As while away: on a busy computer other programs would keep the share low."""
NOBODY = 185.0
"""Seconds without input after which the user counts as away, and a margin."""
WHILE, LONG = 120.0, 300.0
"""Seconds of each part of the run, and the timeout of each part."""
PAUSE = 900.0
PERSON = "/home/you"


class Observer:
    """Writes what the engine reports, and lets the script wait for it."""

    def __init__(self, recorder: Recorder, engine: Engine) -> None:
        self._recorder, self._engine = recorder, engine
        self._told: queue.SimpleQueue[Snapshot] = queue.SimpleQueue()

    def see(self, message: m.Message, snapshot: Snapshot) -> None:
        self._recorder.see(time.time(), type(message).__name__, snapshot)
        self._told.put(snapshot)

    def until(self, what: str, reached: Callable[[Snapshot], bool], within: float = LONG) -> Snapshot:
        """The first snapshot not yet examined that meets the condition. Raises TimeoutError."""
        deadline = time.monotonic() + within
        while (left := deadline - time.monotonic()) > 0:
            try:
                snapshot = self._told.get(timeout=left)
            except queue.Empty:
                break
            if reached(snapshot):
                sys.stdout.write(f"{time.strftime('%H:%M:%S')} {what}\n")
                sys.stdout.flush()
                return snapshot
        raise TimeoutError(f"{what}: not within {within:.0f} s; {self._engine.snapshot}")

    def confirmed(self, more: int) -> None:
        """Wait for this many more confirmed contributions."""
        goal = self._engine.snapshot.totals.confirmed.contributions + more
        self.until(f"{goal} confirmed", lambda snapshot: snapshot.totals.confirmed.contributions >= goal)


def _worker() -> psutil.Process:
    """The training process, without those that it forked."""
    found = [each for each in psutil.Process().children(recursive=True) if "skep.worker.main" in each.cmdline()]
    forked = {each.pid for each in found}
    ours = {each.pid for each in psutil.Process().children()}
    return next(each for each in found if each.pid in ours or each.ppid() not in forked)


def _act(engine: Engine, told: Observer, screen: Screen, project: VerifiedProject) -> None:
    """The steps of the run."""
    engine.post(m.Join(project))
    told.until("training", lambda snapshot: snapshot.phase is Phase.TRAINING)
    told.confirmed(3)
    time.sleep(WHILE)
    _worker().kill()
    told.until("recovering", lambda snapshot: snapshot.phase is Phase.RECOVERING)
    told.until("training again", lambda snapshot: snapshot.phase is Phase.TRAINING)
    told.confirmed(2)
    engine.post(m.Pause(time.time() + PAUSE))
    told.until("paused", lambda snapshot: snapshot.phase is Phase.PAUSED)
    time.sleep(WHILE / 4)
    engine.post(m.Resume())
    told.until("resumed", lambda snapshot: snapshot.phase is Phase.TRAINING)
    told.confirmed(3)
    time.sleep(WHILE)
    screen.touch()
    engine.post(m.ChangeSettings({SHARE: DEFAULTS[SHARE]}))
    told.until("slowed", lambda snapshot: snapshot.allowance.rule == "input" and snapshot.allowance.share < 1)
    for _ in range(4):
        time.sleep(WHILE / 4)
        screen.touch()
    engine.post(m.Leave())
    told.until("left", lambda snapshot: snapshot.phase is Phase.IDLE)


@contextmanager
def _swarm(root: Path) -> Iterator[Path]:
    """A practice swarm; the signed manifest that joins it."""
    process = PracticeProcess(root / "home", root / "run", os.environ)
    process.start()
    try:
        manifest = process.manifest(lambda: False)
        assert manifest is not None
        yield manifest
    finally:
        process.end(8.0)


def _example(folder: Path, practice: VerifiedProject) -> Path:
    """The signed manifest of a second project, as an author would publish it; it has no swarm."""
    key, manifest = folder / "author.key", folder / "small-code-model.json"
    body = json.loads(practice.text) | {
        "id": "small-code-model",
        "title": "Small code model",
        "summary": "A language model that learns to write Python from the sources of the interpreter.",
        "publisher": {"name": "Example author", "key": signing.key_text(signing.ensure_key(key))},
        "needs": {"memory_gb": 3, "vram_gb": 2, "disk_gb": 1, "upload_mbit": 10},
    }
    body["recipe"]["model"] |= {"layers": 6, "heads": 8, "width": 384}
    body["sync"]["target_batch_size"] = 16_384
    manifest.write_text(json.dumps(body))
    signing.sign_manifest(manifest, key)
    return manifest


def _computer(home: Home, projects: Sequence[VerifiedProject]) -> Computer:
    return Computer(
        made=time.strftime("%Y-%m-%d"),
        command="python assets/record_practice.py",
        devices=tuple(bootstrap.devices().list()),
        cores=psutil.cpu_count(logical=False) or 1,
        memory=psutil.virtual_memory().total,
        disk_free=free_bytes(home.root),
        projects=tuple(projects),
    )


def _record(root: Path, screen: Screen, recorder: Recorder) -> Path:
    """The path of the ledger."""
    empty = time.monotonic()
    home = Home(root / "home")
    home.create()
    bootstrap.settings(home).save({SHARE: DEFAULTS["compute.share_away"]})
    with _swarm(root) as manifest, bootstrap.hold(home):
        project = bootstrap.catalogue(home).add(str(manifest))
        example = bootstrap.catalogue(home).add(str(_example(root, project)))
        recorder.begin(_computer(home, [project, example]))
        time.sleep(max(0.0, NOBODY - (time.monotonic() - empty)))
        with bootstrap.build(home) as engine:
            told = Observer(recorder, engine)
            engine.observe(told.see)
            engine.start()
            try:
                _act(engine, told, screen, project)
            finally:
                engine.post(m.Quit())
                engine.join()
    return home.ledger_file


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TZ"] = "UTC"
    time.tzset()
    root = Path(tempfile.mkdtemp(prefix="skep-recording-"))
    screen = Screen()
    os.environ |= screen.environ
    # the run uses a temporary folder, and is shown with the default one
    recorder = Recorder(folder / RUN, {str(root / "home"): f"{PERSON}/.local/share/skep", str(root): PERSON})
    try:
        dump_ledger(_record(root, screen, recorder), folder / LEDGER)
    finally:
        recorder.close()
        screen.close()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
