"""Qt without a screen, with the app's theme, and with the fixes for PySide's references and Python's collector."""

import gc
import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest

from skep_gui.app import garbage
from skep_gui.app.interpreter import prepare
from skep_gui.widgets import theme

prepare()
gc.disable()


@pytest.fixture(autouse=True)
def garbage_collected_in_qt_s_thread():
    """As in the app, which does it by a timer."""
    yield
    garbage.collect()


@pytest.fixture(scope="session")
def dressed(qapp):
    """Applied once: applying the theme again would restyle every window of earlier tests."""
    theme.apply(qapp, theme.LIGHT)
    return qapp
