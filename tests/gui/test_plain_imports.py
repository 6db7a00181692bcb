"""PySide 6.12 reads the source of whatever is imported after it: shown in stock, and gone with ours."""

import subprocess
import sys

import pytest

PROGRAM = """
{before}
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication
import builtins, json.tool, linecache
print(any("json" in each for each in linecache.cache), builtins.__import__.__name__)
"""


@pytest.mark.parametrize(
    ("before", "said"), [("", "True __feature_import__"), ("import skep_gui.plain_imports", "False __import__")]
)
def test_sources_are_read_and_kept_only_by_stock_pyside(before, said):
    program = PROGRAM.format(before=before)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == said


def test_the_app_loads_without_reading_its_own_source():
    program = (
        "import skep_gui.main, skep_gui.app, linecache; print([each for each in linecache.cache if 'skep' in each])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
