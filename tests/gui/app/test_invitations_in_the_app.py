"""Invitations in the app: identity, invitation by file or drop, a secret in a file only with consent, refusals."""

import contextlib
import json
import stat
from datetime import UTC, datetime, timedelta

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent

from gui_starts import remember, started, wait
from keyrings import PASSWORD, Session, lacking, look_again, need
from manifests import signed
from skep import bootstrap
from skep.adapters.storage import invitations as files
from skep.adapters.storage import signing
from skep.core.project import invitation
from skep.services import joining


@pytest.fixture(scope="module", autouse=True)  # otherwise a test would start it, and it would end with that test
def session(tmp_path_factory):
    if lacking():
        yield None
        return
    with contextlib.closing(Session(tmp_path_factory.mktemp("s"))) as made:
        made.start_keyring(PASSWORD)
        yield made


@pytest.fixture
def keyring(session, monkeypatch):
    """A real, unlocked keyring."""
    need()
    session.enter(monkeypatch)
    yield
    look_again(monkeypatch)


@pytest.fixture
def no_keyring(monkeypatch):
    look_again(monkeypatch)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    yield
    look_again(monkeypatch)


@pytest.fixture
def project(home, tmp_path):
    """The manifest of a known project that requires an invitation."""
    path = signed(tmp_path, membership="invited")
    return bootstrap.catalogue(home).add(str(path)).manifest


@pytest.fixture(autouse=True)
def config(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def app(config, project, dressed, qtbot, home):
    remember(home)
    with started(dressed, qtbot, home) as running:
        yield running


@pytest.fixture
def invite(project, tmp_path, home):
    """Writes an invitation, by default a valid one for this computer; returns its path."""

    def make(peer="", since=0.0, days=2, **changed):
        now = datetime.now(UTC) - timedelta(days=since)
        draft = invitation.draft(project, peer or bootstrap.identity(home).peer_id, "trainer", now, days)
        made = files.sign(draft, signing.load_private(tmp_path / "publisher.key"))
        path = tmp_path / "mine.invitation"
        files.write(made, path)
        if changed:
            path.write_text(json.dumps(json.loads(path.read_text()) | changed))
        return str(path)

    return make


def drop(page, path):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(path)])
    action, button, key = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    page.dropEvent(QDropEvent(QPointF(5, 5), action, data, button, key))


INVITED = "This computer is invited to Tiny code model now."


def test_an_invitation_that_is_dropped_is_kept_in_the_keyring(keyring, app, qtbot, home, invite):
    page = app.window.projects
    drop(page, invite())
    wait(qtbot, lambda: page.said.text() == INVITED)
    assert page.said.property("tone") == "well"
    assert not home.secrets_folder.exists()
    joining.check_invitation(home, bootstrap.catalogue(home).find("tiny-code-lm"))


def test_without_a_keyring_nothing_is_kept_until_somebody_agrees(no_keyring, app, qtbot, home, invite):
    page, path = app.window.projects, invite()
    page.invitation_wanted.emit(path)
    wait(qtbot, lambda: app.projects.consent is not None and app.projects.consent.isVisible())
    consent = app.projects.consent
    assert str(home.secrets_folder) in consent.folder.text()
    assert consent.cancel.isDefault()
    consent.cancel.click()
    assert not consent.isVisible()
    assert page.said.text() == "The invitation was not kept."
    assert not home.secrets_folder.exists()

    page.invitation_wanted.emit(path)
    wait(qtbot, lambda: app.projects.consent is not consent)
    app.projects.consent.keep.click()
    wait(qtbot, lambda: page.said.text() == INVITED)
    (kept,) = home.secrets_folder.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


@pytest.mark.way_in
@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"peer": "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"}, "The invitation is for another computer"),
        ({"since": 5.0}, "The invitation to Tiny code model expired on"),
        ({"since": -5.0}, "The invitation to Tiny code model is not valid before"),
        ({"role": "seed"}, "The invitation was changed after it was signed."),
        ({"extra": 1}, "The invitation is not valid:"),
    ],
)
def test_each_refusal_is_one_calm_sentence(no_keyring, app, qtbot, home, invite, made, said):
    page = app.window.projects
    drop(page, invite(**made))
    wait(qtbot, lambda: page.said.text().startswith(said))
    assert page.said.property("tone") == "problem"
    assert app.projects.consent is None
    assert not home.secrets_folder.exists()


def test_joining_without_a_keyring_says_what_it_is_for(no_keyring, app, qtbot):
    app.projects.join("tiny-code-lm")
    page = app.window.projects
    wait(qtbot, lambda: page.said.property("tone") == "problem")
    assert page.said.text() == (
        "There is no keyring on this computer that skep can use. The invitation to this project is stored there. "
        "Start or unlock the keyring, or accept the invitation again and store it in a file."
    )


@pytest.mark.way_in
def test_joining_without_an_invitation_says_what_to_do_here(keyring, app, qtbot):
    app.projects.join("tiny-code-lm")
    page = app.window.projects
    wait(qtbot, lambda: page.said.property("tone") == "problem")
    assert page.said.text() == (
        "Tiny code model is for invited computers only, and this one has no invitation to it. "
        "Copy this computer's identity below and send it to the publisher; accept the invitation that comes back."
    )


def test_what_starts_at_login_is_followed_while_somebody_looks(app, qtbot, home):
    window = app.window
    window.go_to(window.settings)
    wait(qtbot, lambda: "app.start_at_login" in window.settings.rows)
    switch = window.settings.rows["app.start_at_login"].control
    assert not switch.isChecked()
    switch.click()
    start = bootstrap.autostart(home)
    wait(qtbot, start.is_on)
    wait(qtbot, lambda: app.snapshot.settings["app.start_at_login"] is True)
    start.path.unlink()  # as a desktop's settings do
    wait(qtbot, lambda: not switch.isChecked())
    start.turn(on=True)
    wait(qtbot, switch.isChecked)
