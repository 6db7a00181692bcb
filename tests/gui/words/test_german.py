"""German is complete and up to date, for the pages and the core, and no page contains English."""

import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from babel.messages.pofile import read_po
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget

import snapshots as shots
from english import in_english
from german import PAGES, TS, German, linguist
from skep.core.device import PowerCap
from skep.core.policy.allowance import GpuMemory, PauseState
from skep.core.policy.conditions import Condition, Conditions, answered, missing, silent
from skep.core.policy.decision import combined, holding
from skep.core.policy.device_shares import Ceiling
from skep.core.policy.rules import RULES, Facts
from skep.core.project.fit import HINT
from skep.core.settings import hours
from skep.core.settings.settings import DEFAULTS
from skep.core.text import NOTHING, Problem, Text, sentences, verbatim
from skep.language.translator import LOCALE
from skep_gui.app.dialogs import KeyringConsent
from skep_gui.app.main_window import MainWindow
from skep_gui.app.tray import Tray
from skep_gui.pages.first_run import FirstRun
from skep_gui.words.now import Now
from skep_gui.words.projects import titled
from skep_gui.words.settings import LIMITS
from skep_gui.words.speaker import english
from skep_gui.words.translation import Translation
from window_sight import shown

MONDAY = datetime(2027, 1, 18, 22, tzinfo=UTC).timestamp()
LIMIT = Text("rule.limit", share=0.2)
SCREEN_SAVER = Text("screensaver.screen_saver_does_not_answer", reason=Text("mutter.answer_no_time"))
PLACE = r"\{\w+(?::[^}]*)?\}"
"""The placeholder of a value in the core's catalogues."""
SAME_IN_BOTH = frozenset(
    {
        *("skep", "Peers", "App", "Pause", "Port", "Proxy", "English", "Deutsch", *shots.CARDS.values()),
        ", ".join(shots.CARDS.values()),
        *("AMD Radeon 780M", "AMD Ryzen 7 7840U", "GPU", "Tiny code model", "A very large language model"),
        " Mbit/s",
    }
)


@pytest.fixture
def german(dressed):
    with German() as tongue:
        yield tongue


# --- complete


def entries():
    """The pages' own strings in English and German."""
    return [(message.findtext("source"), message.findtext("translation")) for message in ET.parse(TS).iter("message")]


def test_the_pages_strings_are_those_of_now_and_none_lacks_its_german(tmp_path):
    now = tmp_path / "now.ts"
    shutil.copy(TS, now)
    linguist("lupdate", "-locations", "none", "-no-obsolete", "-extensions", "py", PAGES, "-ts", now)
    assert now.read_text() == TS.read_text(), "run make translations"
    assert "unfinished" not in now.read_text()


def test_what_is_shipped_is_what_was_translated(tmp_path):
    linguist("lrelease", TS, "-qm", tmp_path / "now.qm")
    assert (tmp_path / "now.qm").read_bytes() == TS.with_suffix(".qm").read_bytes(), "run make translations"


def test_the_german_has_the_same_values_and_ends_alike():
    for source, said in entries():
        assert sorted(re.findall(r"%\d", said)) == sorted(re.findall(r"%\d", source)), source
        assert said.endswith(".") == source.endswith("."), source


def test_no_page_hides_its_words_from_the_collector():
    """lupdate finds neither strings inside f-strings nor strings that are not literals."""
    for path in PAGES.rglob("*.py"):
        assert not re.search(r"(?<!\bself)\.tr\(", path.read_text()), path
        assert not re.search(r"""f["'][^\n]*\{[^}]*\.tr\(""", path.read_text()), path


def test_pages_write_numbers_as_they_are_written_here():
    """Sizes and decimals use `self.numbers`, since `units` does not depend on the language."""
    for path in PAGES.rglob("*.py"):
        assert not re.search(r"\bunits\.(figure|size)\(", path.read_text()), path


# --- messages of the core


def clock(moment, grid=shots.NOW):
    return hours.clock_time(moment, grid, UTC)


@pytest.mark.parametrize(
    ("said", "german_said"),
    [
        (Text("rule.on_battery"), "Im Akkubetrieb."),
        (Text("rule.keeping_cool", device=Text("rule.gpu"), cap=80.0), "Die GPU bleibt unter 80 °C."),
        (Text("rule.keeping_cool", device=Text("rule.processor"), cap=80.0), "Der Prozessor bleibt unter 80 °C."),
        (
            Text("rule.outside_your_hours_until", until=clock(MONDAY)),
            "Außerhalb deiner Zeiten bis Montag 22:00.",
        ),
        (
            Text("rule.your_gentle_hours", limit=Text("rule.limit_until", limit=LIMIT, until=clock(MONDAY, MONDAY))),
            "Deine sanften Stunden: 20 % bis 22:00.",
        ),
        (Text("rule.paused_until", until=clock(MONDAY, 0.0)), "Pausiert bis 18.01.27 22:00."),
        (sentences(*shots.KNOWN[1].fit.reasons), "Zu groß: braucht 284 GB Speicher, du hast 8,2 GB."),
        (
            sentences(*shots.KNOWN[0].fit.reasons, Text("rule.on_battery")),
            "Es braucht 2,0 GB Speicher, und du hast 2,6 GB. Im Akkubetrieb.",
        ),
        (
            Text("rule.until_it_answers", note=SCREEN_SAVER, granted=Text("rule.granted", share=0.2)),
            "Der Bildschirmschoner antwortet nicht: die Antwort ist keine Zeitangabe. 20 %, bis wieder eine Antwort kommt.",
        ),
        (Text("engine.skep_still_leaving", title="On battery"), "skep verlässt noch On battery."),
        (verbatim("Something nobody ever wrote."), "Something nobody ever wrote."),
        (NOTHING, ""),
    ],
)
def test_the_core_is_heard_in_german(german, said, german_said):
    assert german.said(said) == german_said


def test_every_rule_is_heard_in_german(german):
    for rule in RULES:
        assert german.said(rule.label) != in_english(rule.label)
        assert not rule.over or german.said(rule.over) != in_english(rule.over)
    for facts in facts_of_all():
        for each in holding(facts):
            reason = each.allowance.reason
            assert german.said(reason) != in_english(reason), reason
            left = set(re.findall(r"[a-z]{3,}", german.said(reason))) & {"the", "while", "until", "you", "your", "does"}
            assert not left, german.said(reason)


def facts_of_all():
    """Every reading once with its rule true, once silent, once missing; and all other inputs of rules."""
    yes = {
        Condition.BATTERY: answered(True),
        Condition.METERED: answered(True),
        Condition.FULL_SCREEN: answered(True),
        Condition.INHIBITED: answered(True),
        Condition.GPU_USE: answered(1.0),
        Condition.PROCESSOR_USE: answered(1.0),
        Condition.INPUT: answered(0.0),
    }
    for on_processor in (False, True):
        for share in (0.0, 0.2):
            settings = dict(DEFAULTS) | {"compute.share_using": share}
            base = Facts(Conditions(graphical=True).with_seen(yes), settings, shots.NOW, on_processor=on_processor)
            yield base
            yield replace(base, heat=0.5, gpu_memory=GpuMemory.RELEASE, heavy=True)
            yield replace(base, settings=settings | {"compute.device_limits": "cuda:0 50%"}, devices=("cuda:0",))
            yield replace(base, power_caps={"cuda:0": PowerCap(200.0), "cuda:1": PowerCap(150.0)})
            yield replace(base, pause=PauseState(None))
            yield replace(base, pause=PauseState(shots.NOW + 90_000))
            yield replace(base, settings=settings | {"when.schedule": "off daily 0-24"})
            yield replace(base, settings=settings | {"when.schedule": "off daily, full sun 3-4"})
            yield replace(base, settings=settings | {"when.schedule": "gentle daily, off sun 3-4"})
            for note in (SCREEN_SAVER, NOTHING):
                for reading in (silent(note), missing(note)):
                    unread = dict.fromkeys((*yes, Condition.TEMPERATURE, Condition.GPU_MEMORY), reading)
                    yield replace(base, conditions=Conditions(graphical=True).with_seen(unread))


# --- on the pages


BROKEN = replace(
    shots.RECOVERING,
    problem=Problem(Text("worker.training_process_ended_unexpectedly"), Text("worker.worker_log_has_details")),
)
REFUSED = replace(
    shots.KNOWN[0], project=replace(shots.PROJECT, id="refused"), problem=Problem(*shots.KNOWN[1].fit.reasons, HINT)
)


def states():
    yield from (shots.IDLE, shots.JOINING, shots.RECOVERING, BROKEN)
    yield from (shots.TRAINING, shots.SLOWED, shots.PAUSED, shots.LEAVING, shots.SEVERAL)
    yield replace(shots.SEVERAL, ceilings={"cuda:1": Ceiling(0.5, Text("device.your_limit", share=0.5))})
    yield replace(shots.IDLE, pause=PauseState(None))
    yield replace(shots.TRAINING, relayed=True)
    yield replace(shots.TRAINING, client_mode=True, progress=replace(shots.PROGRESS, peers=1, target_batch_size=512))


def english_of(window_texts: set[str]) -> set[str]:
    """The texts with words: not numbers, signs, addresses, or texts by a project or a person."""
    foreign = {each for known in shots.KNOWN for each in re.findall(r'"([^"]{8,})"', known.project.text)}
    return {
        each
        for each in window_texts
        if re.search(r"[A-Za-z]{3,}", each)
        and not re.fullmatch(r"[0-9a-f ]+| (min|GB)|[\d\u2009]+(h|min|s)( [\d\u2009]+(min|s))?", each)
        and each not in SAME_IN_BOTH
        and not any(each.startswith(text) or text.startswith(each) for text in foreign)
    }


def said_everywhere(tongue) -> set[str]:
    """The texts of every page in every state, and of every dialog, in one language."""
    translation = Translation(tongue)
    window = MainWindow(translation)
    window.show()
    window.settings.show_offered({LIMITS: tuple(shots.CARDS.items())})
    window.settings.show_lacking({"app.check_updates": Text("update.skep_does_not_know_place")})
    texts: set[str] = set()
    for snapshot in states():
        now = titled(snapshot, tongue)
        window.projects.show_projects([*shots.KNOWN, REFUSED], now)
        window.show_snapshot(now, shots.history(), shots.NOW)
        window.stats.show_record(shots.record(), {"tiny-code-lm": "Tiny code model", "practice": "Tiny code model"})
        for page in (window.now, window.projects, window.stats, window.settings):
            window.go_to(page)
            QCoreApplication.processEvents()
        for project in ("tiny-code-lm", "big-lm", "refused"):
            window.projects.open(project)
            texts.update(shown(window.projects))
        texts.update(shown(window))
        texts.update(window.rail.item(row).text() for row in range(window.rail.count()))
    for facts in facts_of_all():
        held = holding(facts)
        window.now.show_snapshot(
            replace(shots.TRAINING, allowance=combined(held), holding=held), shots.history(), shots.NOW
        )
        texts.update(shown(window.now))
    for word in window.settings.tester.boxes:
        window.settings.tester.choose((word,))
        texts.update(shown(window.settings.tester))
    tray = Tray(translation.now, "#6B665E")
    tray.show_snapshot(shots.SLOWED, shots.NOW)
    texts.update(action.text() for menu in (tray.menu, tray.pause) for action in menu.actions())
    texts.add(tray.icon.toolTip())
    steps = FirstRun(translation.devices)
    steps.show_devices(shots.DEVICES)
    consent = KeyringConsent(tongue.told(Problem(Text("secrets.keyring_locked"))), "/home/x")
    texts.update((*shown(steps), *shown(consent)))
    for each in (window, steps, consent, tray):
        each.deleteLater()
    return texts


def catalogue(language: str) -> dict[str, str]:
    """The core's messages in a language by id, with their placeholders."""
    return {
        each.id: each.string
        for path in (LOCALE / language).glob("*.po")
        for each in read_po(path.read_text().splitlines())
        if isinstance(each.id, str) and each.id
    }


@pytest.fixture(scope="module")
def everywhere(dressed):
    """All texts, in German and in English."""
    with German() as tongue:
        in_german = said_everywhere(tongue)
    return in_german, said_everywhere(english)


def test_nothing_on_any_page_is_left_in_english(everywhere):
    in_german, in_english = everywhere
    assert english_of(in_german & in_english) == set()
    assert len(in_german) > 350


def test_no_sentence_of_the_core_is_in_english_on_a_german_page(everywhere):
    in_german, in_english = everywhere
    german_said = catalogue("de")
    sentences = {
        words: re.compile(r"(?<!\w)" + ".+".join(map(re.escape, re.split(PLACE, words))))
        for id_, words in catalogue("en").items()
        if words != german_said[id_] and len(re.findall(r"[A-Za-z]{2,}", re.sub(PLACE, "", words))) > 1
    }

    def found(texts):
        return {words for words, sentence in sentences.items() if any(map(sentence.search, texts))}

    assert len(found(in_english)) > 100
    assert found(in_german) == set()


def test_no_page_shows_an_id_or_a_place(everywhere):
    ids = catalogue("en")
    for texts in everywhere:
        assert [text for text in texts if re.search(PLACE, text) or any(id_ in text for id_ in ids)] == []


def test_the_language_of_numbers_and_times(german):
    numbers = german.numbers
    assert (numbers.figure(41.26), numbers.size(3_400_000), numbers.short(2.5)) == (
        "41,3",
        "3,4\u2009MB",
        "2,5",
    )
    choices = [each.text for each in Now(german).pauses(shots.NOW)]
    assert choices[0] == "Für 15 Minuten"
    assert choices[2] == "Bis morgen, 08:00"
    assert (
        Now(german).sentence(replace(shots.IDLE, pause=PauseState(None)), shots.NOW)
        == "In keinem Projekt, und pausiert."
    )


def test_the_practice_swarm_has_a_german_name_and_other_projects_keep_theirs(german):
    practice = replace(shots.TRAINING, project=replace(shots.PROJECT, id="practice", title="Practice swarm"))
    assert titled(practice, german).project.title == "Übungsschwarm"
    named_so = replace(shots.TRAINING, project=replace(shots.PROJECT, title="Practice swarm"))
    assert titled(named_so, german).project.title == "Practice swarm"


@pytest.mark.parametrize("size", [(760, 520), (1024, 600)])
def test_the_longer_words_are_not_cut(german, size, qtbot):
    window = MainWindow(Translation(german))
    qtbot.addWidget(window)
    window.show()
    window.resize(*size)
    for snapshot in (shots.IDLE, shots.JOINING, shots.SLOWED, shots.SEVERAL, shots.RECOVERING):
        for page in (window.now, window.projects, window.stats, window.settings):
            window.go_to(page)
            window.projects.show_projects(shots.KNOWN, snapshot)
            window.show_snapshot(snapshot, shots.history(), shots.NOW)
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
