"""The documents' pictures show a real practice run: its figures are consistent, every sentence is in a catalogue."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime
from gettext import NullTranslations
from itertools import pairwise
from pathlib import Path

import practice_run
import pytest
import screenshots
from babel.messages.pofile import read_po
from PySide6.QtCore import QCoreApplication, QTranslator

from german import TS
from skep.core.record.usage import Unit
from skep.core.session.snapshot import Snapshot
from skep.language.translator import LOCALE, catalogue, translator
from skep_gui.words.speaker import Tongue, core_translator, english
from skep_gui.words.stats import Asked, Measure
from skep_gui.words.translation import Translation
from window_sight import show_all, shown

ROOT = Path(__file__).resolve().parents[2]
OPEN, SHUT = "⟦", "⟧"


@pytest.fixture(scope="module")
def run():
    return practice_run.load()


@pytest.fixture(scope="module")
def moments(run):
    return screenshots.chosen(run)


# --- one clock, one device


def test_the_recording_says_when_and_on_what_it_was_made(run):
    computer = run.computer
    first, last = (datetime.fromtimestamp(each.at, UTC) for each in (run.moments[0], run.moments[-1]))
    assert computer.made == f"{first:%Y-%m-%d}" == f"{last:%Y-%m-%d}"
    assert (ROOT / computer.command.split()[-1]).exists()
    assert len({each.snapshot.device for each in run.moments} - {""}) == len(computer.devices) == 1


def test_the_recording_names_no_folder_of_the_computer_that_made_it(run):
    assert "/tmp" not in "".join(each.read_text() for each in practice_run.FOLDER.iterdir())
    assert all(each.source.startswith("/home/you/") for each in run.computer.projects)


def test_the_recorder_writes_other_names_for_folders(tmp_path):
    recorder = practice_run.Recorder(
        tmp_path / "run.jsonl", {"/tmp/here/home": "/home/you/skep", "/tmp/here": "/home/you"}
    )
    recorder.see(1.0, "Tick", replace(Snapshot(), device="/tmp/here/home/a /tmp/here/b"))
    recorder.close()
    assert "/home/you/skep/a /home/you/b" in (tmp_path / "run.jsonl").read_text()


def test_the_recording_is_small():
    assert sum(each.stat().st_size for each in practice_run.FOLDER.iterdir()) <= 300_000


def test_the_moments_follow_one_another(run, moments):
    assert all(before.at <= after.at for before, after in pairwise(run.moments))
    assert all(before.at < after.at for before, after in pairwise(moments.values()))


def test_the_pictures_plots_end_where_the_picture_was_taken(run, moments):
    for name, moment in moments.items():
        points = screenshots.history(run, moment).points
        assert all(point.at <= moment.at for point in points)
        assert name == "joining" or len(points) > 20


# --- figures


def test_what_now_counts_stats_has_too(run):
    whole = screenshots.record(run).whole.totals
    counts = [each.snapshot.totals for each in run.moments]
    assert all(before.confirmed.samples <= after.confirmed.samples for before, after in pairwise(counts))
    assert all(each.confirmed.samples <= whole.confirmed.samples for each in counts)
    assert all(each.lost.samples <= whole.lost.samples for each in counts)
    assert counts[-1] == whole
    assert whole.confirmed.samples > 0


@pytest.mark.parametrize("unit", list(Unit))
def test_the_bars_add_up_to_the_tiles(run, unit):
    record, translation = screenshots.record(run, Asked(unit)), Translation(english)
    totals, spent = record.whole.totals, record.whole.spent

    def bars(measure):
        chart = translation.stats.bars(record, measure)
        lost = sum(each.upper for each in chart.cells) * chart.top
        return sum(each.height for each in chart.cells) * chart.top - lost, lost

    assert bars(Measure.SAMPLES) == pytest.approx((totals.confirmed.samples, totals.lost.samples))
    assert bars(Measure.HOURS)[0] * 3600 == pytest.approx(spent.training)
    assert bars(Measure.ENERGY)[0] * 3_600_000 == pytest.approx(spent.joules)
    assert spent.computing <= spent.training <= spent.staying


def test_no_time_is_longer_than_the_run(run):
    record = screenshots.record(run)
    assert record.whole.spent.staying <= run.moments[-1].at - run.moments[0].at + 2
    assert sum(each.seconds for each in record.segments if each.project) <= run.moments[-1].at - run.moments[0].at + 2


# --- sentences


class Marked(NullTranslations):
    """English, with marks around every text of the core's catalogue."""

    def __init__(self):
        super().__init__()
        self._catalogue = catalogue("en")
        self._ids = {
            name
            for path in (LOCALE / "en").glob("core.po")
            for each in read_po(path.read_text().splitlines())
            for name in ([each.id] if isinstance(each.id, str) else each.id)
        }

    def gettext(self, message):
        words = self._catalogue.gettext(message)
        return f"{OPEN}{words}{SHUT}" if message in self._ids and message != "text.verbatim" else words

    def ngettext(self, msgid1, msgid2, n):
        words = self._catalogue.ngettext(msgid1, msgid2, n)
        return f"{OPEN}{words}{SHUT}" if words and msgid1 in self._ids else words


class Pages(QTranslator):
    """The same for the pages' own strings."""

    def __init__(self):
        super().__init__()
        self._known = {
            (context.findtext("name"), message.findtext("source"))
            for context in ET.parse(TS).iter("context")
            for message in context.iter("message")
        }

    def isEmpty(self):  # noqa: N802 - Qt's name
        return False

    def translate(self, context, text, *_):
        return f"{OPEN}{text}{SHUT}" if (context, text) in self._known else ""


@pytest.fixture
def marked(dressed):
    """A translator that marks texts from a catalogue, including the pages' own strings."""
    own = Pages()
    QCoreApplication.installTranslator(own)
    core = core_translator("en", english.numbers)
    yield Tongue(QCoreApplication.translate, translator_of(core), english.numbers)
    QCoreApplication.removeTranslator(own)


def translator_of(core):
    made = translator("en", english.numbers)
    return type(made)(Marked(), core.shows, core.show_plain)


def unmarked(text):
    """The parts of a text that are not from a catalogue."""
    while (less := re.sub(f"{OPEN}[^{OPEN}{SHUT}]*{SHUT}", "", text)) != text:
        text = less
    return text


def words_of_the_run(run):
    """Names from the computer or the manifest, which are not translated."""
    names = {each.name for each in run.computer.devices}
    for plan in (each.manifest for each in run.computer.projects):
        names |= {plan.title, plan.summary, plan.publisher.name, plan.license, plan.recipe.model_type, plan.data.index}
        names.add(plan.fingerprint)
    return names


def test_every_sentence_on_every_page_is_in_a_catalogue(run, moments, marked, tmp_path):
    studio = screenshots.Studio(tmp_path, "", marked, run)
    foreign = words_of_the_run(run) | {"skep", "English", "Deutsch", "Mbit/s"}  # a unit is the same in every language
    texts = set()
    for name in moments:
        window = studio.window(name)
        for _ in show_all(window):
            texts.update(shown(window))
        window.close()
        window.deleteLater()
    names = "|".join(re.escape(each) for each in sorted(foreign, key=len, reverse=True))
    left = {text: re.sub(names, "", unmarked(text)) for text in texts}
    assert {text for text, rest in left.items() if re.search(r"[A-Za-z]{4,}", rest)} == set()
    assert len(texts) > 150


def test_no_page_shows_an_id(run, moments, dressed, tmp_path):
    studio = screenshots.Studio(tmp_path, "", english, run)
    for name in moments:
        window = studio.window(name)
        for _ in show_all(window):
            assert [text for text in shown(window) if re.search(r"\b[a-z]+\.[a-z]+(_[a-z]+)+\b|\{\w+", text)] == []
        window.close()
        window.deleteLater()
