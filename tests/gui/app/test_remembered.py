"""The app's own state between two starts, when its file is damaged: what it held is forgotten, and the app goes on."""

import pytest

from damages import DAMAGES, as_a_user
from skep_gui.app.remembered import Remembered


def remembered(folder):
    made = Remembered(folder)
    made.first_run_shown()
    made.active = "tiny"
    made._file.sync()
    return made


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_app_goes_on_without_what_it_remembered(tmp_path, damage):
    remembered(tmp_path)
    assert Remembered(tmp_path).active == "tiny"
    damage(tmp_path / "window.ini")
    with as_a_user():
        after = Remembered(tmp_path)
        assert "tiny".startswith(after.active)
        after.active = "other"
        assert after.active == "other"
        assert isinstance(after.is_new, bool)
