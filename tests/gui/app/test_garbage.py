"""Qt objects in reference cycles: destroyed by any thread that allocates, and with our collector by Qt's thread only."""

import subprocess
import sys

import pytest

PROGRAM = """
import threading, time, weakref
from PySide6.QtCore import QCoreApplication, QObject
from skep_gui.app.garbage import GarbageCollector
from skep_gui.app.interpreter import prepare
prepare()
qt = QCoreApplication([])
{before}
destroyed = []

def drop():
    source = QObject()
    source.cycle = source
    weakref.finalize(source, lambda: destroyed.append(threading.current_thread().name))

def allocate():
    for _ in range(50):
        kept = [[] for _ in range(10_000)]

for _ in range(100):
    drop()
other = threading.Thread(target=allocate, name="other")
other.start()
other.join()
more_than_a_generation = [[] for _ in range(10_000)]
deadline = time.monotonic() + 30
while len(destroyed) < 100 and time.monotonic() < deadline:
    qt.processEvents()
    time.sleep(0.01)
print(len(destroyed), *sorted(set(destroyed)))
"""


OURS = "collector = GarbageCollector(); collector.setInterval(10)"


@pytest.mark.parametrize(("before", "elsewhere"), [("", True), (OURS, False)])
def test_objects_in_cycles_are_destroyed_in_qt_s_thread(before, elsewhere):
    program = PROGRAM.format(before=before)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    number, *threads = ended.stdout.split()
    assert number == "100", ended.stderr
    assert ("other" in threads) == elsewhere


APP = """
import gc, sys
from PySide6.QtCore import QObject, QTimer, Signal
from skep_gui import main
from skep_gui.app import app

class App(QObject):
    ended = Signal()

    def __init__(self, *parts, **options):
        super().__init__()

    def start(self):
        print("other threads collect" if gc.isenabled() else "they do not")
        QTimer.singleShot(0, self.ended.emit)

app.App, sys.argv = App, ["skep-gui"]
sys.exit(main.run())
"""


def test_while_the_app_runs_other_threads_collect_nothing():
    ended = subprocess.run([sys.executable, "-c", APP], capture_output=True, text=True, check=True)
    assert ended.stdout == "they do not\n"
