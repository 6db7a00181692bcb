"""German: complete, of what is said now, recognised in whatever the core says, and nothing on a page is left in English."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest
from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton, QComboBox, QDoubleSpinBox, QLabel, QLineEdit, QMenu, QWidget

import snapshots as shots
from german import German, tool
from skep.core.conditions import Conditions, answered, missing, silent
from skep.core.model import GpuMemory, PauseState, Problem, Stage, StageProgress
from skep.core.policy import holding
from skep.core.rules import RULES, Facts
from skep.core.settings import DEFAULTS
from skep_gui.first_run import FirstRun
from skep_gui.keyring_consent import KeyringConsent
from skep_gui.present.core_sentences import SENTENCES
from skep_gui.present.hearing import Hearing, heard
from skep_gui.present.now import Now
from skep_gui.present.numbers import Numbers
from skep_gui.present.pauses import Pauses
from skep_gui.present.speaker import english
from skep_gui.tray import Tray
from skep_gui.voice import Voice
from skep_gui.wiring import pages

TOOL = tool()
SAME_IN_BOTH = frozenset(
    {
        *("skep", "Peers", "App", "Pause", "Port", "Proxy", "English", "Deutsch", "NVIDIA GeForce RTX 4070"),
        *("AMD Radeon 780M", "AMD Ryzen 7 7840U", "GPU", "Tiny code model", "A very large language model"),
    }
)


@pytest.fixture
def german(dressed):
    with German() as tongue:
        yield tongue


# --- complete


def test_every_sentence_of_the_core_is_collected_and_nothing_else():
    assert list(SENTENCES) == TOOL.collected(), "run make translations"


def test_no_entry_lacks_its_german(tmp_path):
    shutil.copy(TOOL.GERMAN, tmp_path / "now.ts")
    TOOL.refresh(SENTENCES, tmp_path / "now.ts")
    assert TOOL.lacking(tmp_path / "now.ts") == [], "run make translations"
    assert TOOL.entries(tmp_path / "now.ts") == TOOL.entries(), "run make translations"


def test_what_is_shipped_is_what_was_translated(tmp_path):
    shutil.copy(TOOL.GERMAN, tmp_path / "now.ts")
    TOOL.build(tmp_path / "now.ts")
    assert (tmp_path / "now.qm").read_bytes() == TOOL.GERMAN.with_suffix(".qm").read_bytes(), "run make translations"


def test_the_german_has_the_same_values_and_ends_alike():
    for source, said in TOOL.entries():
        assert sorted(re.findall(r"%\d", said)) == sorted(re.findall(r"%\d", source)), source
        assert said.endswith(".") == source.endswith("."), source


def test_no_page_hides_its_words_from_the_collector():
    """What stands inside an f-string is not found by lupdate, nor what is no plain text."""
    for path in TOOL.pages():
        assert not re.search(r"(?<!\bself)\.tr\(", path.read_text()), path
        assert not re.search(r"""f["'][^\n]*\{[^}]*\.tr\(""", path.read_text()), path


def test_pages_write_numbers_as_they_are_written_here():
    """Sizes, decimals, spans and moments through `self.numbers`, since the terminal's words know no language."""
    for path in TOOL.pages():
        found = re.search(
            r"\b(words|numbers)\.(figure|size|clock_time)\(", path.read_text().replace("self.numbers", "")
        )
        assert found is None or path.name == "numbers.py", f"{path}: {found}"


# --- recognised


def filled(template):
    values = ["Aa\u00e9", "17", "/tmp/x y", "Zz", "Qq"]
    return re.sub(r"%(\d)", lambda place: values[int(place.group(1)) - 1], template)


def test_every_sentence_is_recognised_and_no_value_is_lost(german):
    same = Hearing(SENTENCES, lambda text: text, Numbers())
    for template in SENTENCES:
        said = filled(template)
        assert same.recognised(said) is not None, template
        assert same(said) == said, template
        values = re.findall(r"Aa\u00e9|17|/tmp/x y|Zz|Qq", said)
        assert all(value in german.said(said) for value in values), german.said(said)


@pytest.mark.parametrize(
    ("said", "german_said"),
    [
        ("On battery.", "Im Akkubetrieb."),
        ("Keeping the GPU under 80 °C.", "Die GPU bleibt unter 80 °C."),
        ("Keeping the processor under 80 °C.", "Der Prozessor bleibt unter 80 °C."),
        ("Outside your hours, back at Monday 22:00.", "Außerhalb deiner Zeiten, zurück um Montag 22:00."),
        ("Your gentle hours: 20 % until 22:00.", "Deine sanften Stunden: 20 % bis 22:00."),
        ("Paused until 2027-01-30 15:30.", "Pausiert bis 30.01.27 15:30."),
        (
            "Too big: needs 96 GB of memory, you have 8.2 GB.",
            "Zu groß: braucht 96 GB Speicher, du hast 8,2 GB.",
        ),
        (
            "Too big: needs 96 GB of memory, you have 8.2 GB. Too big: needs 9.5 GB of disk space, you have 1 GB.",
            "Zu groß: braucht 96 GB Speicher, du hast 8,2 GB. Zu groß: braucht 9,5 GB Platz auf der Festplatte, du hast 1 GB.",
        ),
        (
            "The screen saver does not answer: its answer is no time. 20 % until it answers again.",
            "Der Bildschirmschoner antwortet nicht: die Antwort ist keine Zeit. 20 %, bis sie wieder antwortet.",
        ),
        ("skep is still leaving On battery.", "skep verlässt noch On battery."),
        ("Something nobody ever wrote.", "Something nobody ever wrote."),
        ("", ""),
    ],
)
def test_the_core_is_heard_in_german(german, said, german_said):
    assert german.said(said) == german_said


def test_every_rule_is_heard_in_german(german):
    for rule in RULES:
        assert german.said(rule.label) != rule.label
        assert not rule.over or german.said(rule.over) != rule.over
    for facts in facts_of_all():
        for each in holding(facts):
            reason = each.allowance.reason
            assert german.said(reason) != reason, reason
            left = set(re.findall(r"[a-z]{3,}", german.said(reason))) & {"the", "while", "until", "you", "your", "does"}
            assert not left, german.said(reason)


def facts_of_all():
    """Every reading once answered so that its rule holds, once silent, once missing; and what else rules look at."""
    yes = {
        "battery": answered(True),
        "metered": answered(True),
        "full_screen": answered(True),
        "inhibited": answered(True),
        "gpu_use": answered(1.0),
        "processor_use": answered(1.0),
        "input": answered(0.0),
    }
    for on_processor in (False, True):
        for share in (0.0, 0.2):
            settings = dict(DEFAULTS) | {"compute.share_using": share}
            base = Facts(Conditions(graphical=True, **yes), settings, shots.NOW, on_processor=on_processor)
            yield base
            yield replace(base, heat=0.5, gpu_memory=GpuMemory.RELEASE, heavy=True)
            yield replace(base, pause=PauseState(None))
            yield replace(base, pause=PauseState(shots.NOW + 90_000))
            yield replace(base, settings=settings | {"when.schedule": "off daily 0-24"})
            yield replace(base, settings=settings | {"when.schedule": "off daily, full sun 3-4"})
            yield replace(base, settings=settings | {"when.schedule": "gentle daily, off sun 3-4"})
            for note in ("The screen saver does not answer.", ""):
                for reading in (silent(note), missing(note)):
                    unread = dict.fromkeys(yes, reading) | {"temperature": reading, "gpu_memory": reading}
                    yield replace(base, conditions=Conditions(graphical=True, **unread))


# --- on the pages


BROKEN = replace(
    shots.RECOVERING,
    problem=Problem("The training process ended unexpectedly.", "The worker's log has the details."),
)
DEVICES = [replace(each, unusable=each.unusable and "No driver is loaded for it.") for each in shots.DEVICES]


def states():
    yield from (shots.IDLE, replace(shots.JOINING, stage=StageProgress(Stage.PEERS, 0.4)), BROKEN)
    yield from (shots.TRAINING, shots.SLOWED, shots.PAUSED, shots.LEAVING)
    yield replace(shots.IDLE, pause=PauseState(None))
    yield replace(shots.TRAINING, client_mode=True, progress=replace(shots.PROGRESS, peers=1, target_batch_size=512))


def english_of(window_texts: set[str]) -> set[str]:
    """Those that are words at all: not numbers, signs, addresses, or what a project or a person wrote."""
    foreign = {each for known in shots.KNOWN for each in re.findall(r'"([^"]{8,})"', known.project.manifest)}
    return {
        each
        for each in window_texts
        if re.search(r"[A-Za-z]{3,}", each)
        and not re.fullmatch(r"[0-9a-f ]+| (min|GB)|[\d\u2009]+(h|min|s)( [\d\u2009]+(min|s))?", each)
        and each not in SAME_IN_BOTH
        and not any(each.startswith(text) or text.startswith(each) for text in foreign)
    }


def shown(widget: QWidget) -> Iterator[str]:
    """Everything of a widget and those in it that is read or read aloud."""
    for each in (widget, *widget.findChildren(QWidget)):
        yield from (each.toolTip(), each.accessibleName(), each.accessibleDescription(), each.windowTitle())
        if isinstance(each, QLabel | QAbstractButton):
            yield each.text()
        if isinstance(each, QLineEdit):
            yield each.placeholderText()
        if isinstance(each, QComboBox):
            yield from (each.itemText(place) for place in range(each.count()))
        if isinstance(each, QDoubleSpinBox):
            yield from (each.specialValueText(), each.suffix())
        if isinstance(each, QMenu):
            each.aboutToShow.emit()
            yield each.title()
    yield from (action.text() for action in widget.findChildren(QAction))


def said_everywhere(tongue) -> set[str]:
    """What every page says in every state, and every dialog, in one language."""
    voice = Voice.of(tongue)
    window = pages(voice)
    window.show()
    texts: set[str] = set()
    for snapshot in states():
        now = heard(snapshot, tongue)
        window.projects.show_projects(shots.KNOWN, now)
        window.show_snapshot(now, shots.history(), shots.NOW)
        window.stats.show_record(shots.record(), {"tiny-code-lm": "Tiny code model", "practice": "Tiny code model"})
        for page in (window.now, window.projects, window.stats, window.settings):
            window.go_to(page)
            QCoreApplication.processEvents()
        window.projects.open("tiny-code-lm")
        texts.update(shown(window))
        texts.update(window.rail.item(row).text() for row in range(window.rail.count()))
    for word in window.settings.tester.boxes:
        window.settings.tester.choose((word,))
        texts.update(shown(window.settings.tester))
    tray = Tray(voice.now, voice.pauses, "#6B665E")
    tray.show_snapshot(heard(shots.SLOWED, tongue), shots.NOW)
    texts.update(action.text() for menu in (tray.menu, tray.pause) for action in menu.actions())
    texts.add(tray.icon.toolTip())
    steps = FirstRun(voice.devices)
    steps.show_devices(DEVICES)
    consent = KeyringConsent(tongue.problem(Problem("The keyring is locked.")), "/home/x")
    texts.update((*shown(steps), *shown(consent)))
    for each in (window, steps, consent, tray):
        each.deleteLater()
    return texts


def test_nothing_on_any_page_is_left_in_english(dressed):
    with German() as tongue:
        in_german = said_everywhere(tongue)
    left = english_of(in_german & said_everywhere(english))
    assert left == set()
    assert len(in_german) > 250


def test_the_language_of_numbers_and_times(german):
    numbers = german.numbers
    assert (numbers.figure(41.26), numbers.size(3_400_000), numbers.short(2.5)) == (
        "41,3",
        "3,4\u2009MB",
        "2,5",
    )
    choices = [each.text for each in Pauses(german).choices(shots.NOW)]
    assert choices[0] == "Für 15 Minuten"
    assert choices[2] == "Bis morgen, 08:00"
    assert (
        Now(german).sentence(replace(shots.IDLE, pause=PauseState(None)), shots.NOW)
        == "In keinem Projekt, und pausiert."
    )


def test_the_practice_swarm_has_a_german_name_and_other_projects_keep_theirs(german):
    practice = replace(shots.TRAINING, project=replace(shots.PROJECT, id="practice", title="Practice swarm"))
    assert heard(practice, german).project.title == "Übungsschwarm"
    named_so = replace(shots.TRAINING, project=replace(shots.PROJECT, title="Practice swarm"))
    assert heard(named_so, german).project.title == "Practice swarm"


@pytest.mark.parametrize("size", [(760, 520), (1024, 600)])
def test_the_longer_words_are_not_cut(german, size, qtbot):
    window = pages(Voice.of(german))
    qtbot.addWidget(window)
    window.show()
    window.resize(*size)
    for snapshot in (shots.IDLE, shots.JOINING, shots.SLOWED, shots.RECOVERING):
        said = heard(snapshot, german)
        for page in (window.now, window.projects, window.stats, window.settings):
            window.go_to(page)
            window.projects.show_projects(shots.KNOWN, said)
            window.show_snapshot(said, shots.history(), shots.NOW)
            for _ in range(5):
                QCoreApplication.processEvents()
            assert cut(page, window) == [], snapshot.phase


def cut(page: QWidget, window: QWidget) -> list[str]:
    labels = [
        each
        for each in (*page.findChildren(QLabel), *page.findChildren(QAbstractButton))
        if each.isVisible() and each.text()
    ]
    narrow = [
        each
        for each in labels
        if not (isinstance(each, QLabel) and each.wordWrap()) and each.width() < each.sizeHint().width() - 1
    ]
    outside = [each for each in labels if each.mapTo(window, each.rect().topRight()).x() > window.width()]
    return [each.text() for each in (*narrow, *outside)]
