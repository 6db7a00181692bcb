"""PySide 6.12 on Python 3.11 releases references to None and True: visible without our fix, and absent with it."""

import subprocess
import sys

import pytest

SIGNALS = """
class Source(QObject):
    told = Signal()
source = Source()
for _ in range(20_000):
    source.told.emit()
"""
CALLS = """
source = QObject()
for _ in range(2_000_000):
    source.setObjectName("x")
"""
PROGRAM = """
from PySide6.QtCore import QObject, Signal
{before}
{work}
print("alive")
"""


def working(before, work):
    program = PROGRAM.format(before=before, work=work)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None and True are immortal")
@pytest.mark.parametrize(("work", "said"), [(SIGNALS, "bool_dealloc"), (CALLS, "none_dealloc")])
def test_stock_pyside_ends_the_interpreter_after_a_while(work, said):
    ended = working("", work)
    assert ended.returncode != 0
    assert said in ended.stderr


@pytest.mark.parametrize("work", [SIGNALS, CALLS])
def test_with_both_kept_it_goes_on(work):
    ended = working("from skep_gui.app.interpreter import prepare; prepare()", work)
    assert (ended.returncode, ended.stdout) == (0, "alive\n"), ended.stderr


@pytest.mark.skipif(sys.version_info < (3, 12), reason="here the singletons need the references")
def test_where_the_singletons_are_immortal_nothing_is_loaded():
    program = "import sys; from skep_gui.app.interpreter import prepare; prepare(); print('ctypes' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"
