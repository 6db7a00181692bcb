"""Qt without a screen, with the app's theme, and with the fix for PySide's reference counts of None and True."""

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest

from skep_gui.app.interpreter import prepare
from skep_gui.widgets import theme

prepare()


@pytest.fixture(scope="session")
def dressed(qapp):
    """Applied once: applying the theme again would restyle every window of earlier tests."""
    theme.apply(qapp, theme.LIGHT)
    return qapp
