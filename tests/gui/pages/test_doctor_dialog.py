"""The connection doctor in the app: rows as they come, what to do below them, a text to copy, in both languages."""

import pytest
from PySide6.QtWidgets import QLabel

from german import German
from skep.core.findings import Check, Finding, State, clock_finding
from skep.core.text import Text
from skep_gui.pages.doctor_dialog import DoctorDialog
from skep_gui.words.doctor import Doctor
from skep_gui.words.projects import Tone
from skep_gui.words.speaker import english
from window_sight import cut

REFUSED = Text("swarm.refuses_connection")
FOUND = [
    Finding(Check.HANDSHAKE, State.WARN, Text("doctor.other_identity", seed="a:1"), Text("doctor.newer_manifest")),
    Finding(
        Check.SEED, State.FAIL, Text("doctor.seed_silent", seed="b:2", failure=REFUSED), Text("doctor.only_seed_down")
    ),
    Finding(Check.KEYRING, State.SKIPPED, Text("doctor.no_invitation_needed")),
    clock_finding("data.example.org", 0.0, 0.5),
    Finding(Check.DATA, State.OK, Text("doctor.data_there", host="<b>data</b>.example.org", milliseconds=120.0)),
]


@pytest.fixture
def dialog(dressed, qtbot):
    made = DoctorDialog(Doctor(english), "Tiny code model")
    qtbot.addWidget(made)
    made.show()
    return made


def texts(dialog):
    return [each.text() for each in dialog.findChildren(QLabel) if each.isVisible() and each.text()]


def test_rows_stand_in_the_order_of_the_checks_each_with_its_colour():
    rows = Doctor(english).rows(FOUND)
    assert [each.title for each in rows] == ["Keyring", "Clock", "Seed", "Data server", "Handshake"]
    assert [each.state for each in rows] == ["Skipped", "OK", "Problem", "OK", "Warning"]
    assert [each.tone for each in rows] == [Tone.SOFT, Tone.WELL, Tone.PROBLEM, Tone.WELL, Tone.GENTLE]
    assert rows[2].found == "b:2 refuses the connection."
    assert rows[2].advice.startswith("It is the project's only seed.")


@pytest.mark.parametrize(
    ("found", "words"),
    [(FOUND, "Something keeps skep from joining."), (FOUND[:1], "Nothing keeps skep"), (FOUND[2:], "Everything is in")],
)
def test_the_summary_is_that_of_the_worst(found, words):
    assert Doctor(english).summary(found)[0].startswith(words)


def test_findings_are_shown_as_they_come_and_can_be_copied_at_the_end(dialog, dressed, qtbot):
    assert dialog.said.text().startswith("Checking …")
    assert not dialog.copy.isEnabled()
    dialog.add(FOUND[0])
    qtbot.waitUntil(lambda: "a:1 is another peer than the one that the manifest names." in texts(dialog))
    for finding in FOUND[1:]:
        dialog.add(finding)
    dialog.end()
    qtbot.waitUntil(lambda: "b:2 refuses the connection." in texts(dialog))
    assert dialog.said.text().startswith("Something keeps skep from joining.")
    dialog.copy.click()
    copied = dressed.clipboard().text().splitlines()
    assert copied[0] == "Connection to Tiny code model"
    assert "Problem: Seed: b:2 refuses the connection." in copied
    assert (
        "    It is the project's only seed. Check the internet connection and the firewall, or try again later."
        in copied
    )
    assert "<b>data</b>.example.org" in dressed.clipboard().text()


def test_checking_again_begins_with_nothing(dialog, qtbot):
    dialog.add(FOUND[0])
    dialog.end()
    with qtbot.waitSignal(dialog.wanted):
        dialog.again.click()
    dialog.begin()
    assert not dialog.again.isEnabled()
    dialog.add(FOUND[1])
    qtbot.waitUntil(lambda: "b:2 refuses the connection." in texts(dialog))
    assert not any("another peer" in each for each in texts(dialog))


def test_nothing_is_cut_off_and_it_fits_a_small_screen(dialog, qtbot):
    for finding in FOUND:
        dialog.add(finding)
    dialog.end()
    qtbot.waitUntil(lambda: cut(dialog, dialog) == [])
    assert dialog.height() <= 552
    assert dialog.width() <= 1024


def test_it_speaks_german(dressed, qtbot):
    with German() as tongue:
        made = DoctorDialog(Doctor(tongue), "")
        qtbot.addWidget(made)
        made.show()
        made.add(FOUND[1])
        made.end()
        qtbot.waitUntil(lambda: "b:2 lehnt die Verbindung ab." in texts(made))
        assert {"Dieser Computer", "Startpeer", "Problem"} <= set(texts(made))
        assert made.again.text() == "Noch einmal prüfen"
