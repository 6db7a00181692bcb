"""PySide 6.12 on Python 3.11 gives up one reference to True with each signal: shown in stock, and gone with ours."""

import subprocess
import sys

import pytest

EMIT = """
import sys
from PySide6.QtCore import QCoreApplication, QObject, Signal
{before}
class Source(QObject):
    told = Signal()
app, source = QCoreApplication([]), Source()
for _ in range(20_000):
    source.told.emit()
print("alive")
"""


def emitting(before):
    return subprocess.run(
        [sys.executable, "-c", EMIT.format(before=before)], capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="True is immortal")
def test_stock_pyside_ends_the_interpreter_after_some_signals():
    ended = emitting("")
    assert ended.returncode != 0
    assert "bool_dealloc" in ended.stderr


def test_with_true_kept_any_number_of_signals_is_fine():
    ended = emitting("from skep_gui.true_reference import keep_true; keep_true()")
    assert (ended.returncode, ended.stdout) == (0, "alive\n"), ended.stderr
