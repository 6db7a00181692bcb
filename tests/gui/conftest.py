"""Qt without a screen, dressed as the app is; what PySide gives up of None and True is made up for."""

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest

from skep_gui.app.interpreter import prepare
from skep_gui.widgets import theme

prepare()


@pytest.fixture(scope="session")
def dressed(qapp):
    """Once: dressing anew would restyle every window that earlier tests made."""
    theme.apply(qapp, theme.LIGHT)
    return qapp
