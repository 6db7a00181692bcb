"""The catalogues match the source: every message has English and German words, and there are no other entries."""

import ast
import re
import string
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from skep.adapters.storage.old_reasons import SENTENCES
from skep.core.settings.settings import SETTINGS
from skep.language.translator import LOCALE

ROOT = Path(__file__).resolve().parent.parent.parent
KINDS = {
    *("", "number", "percent", "span", "size", "time", "date", "setting", "capital"),
    *("sentences", "clauses", "words", "repr"),
}
KEYWORDS = {
    "keyword." + word.replace(" ", "_")
    for setting in SETTINGS.values()
    for word in (setting.zero, setting.empty, *setting.choices, "yes", "no")
    if word
}
"""Ids that are built from a setting's values, not written out."""
SETTING_TEXTS = {text.id for setting in SETTINGS.values() for text in (setting.label, setting.help)}
"""Ids that are built from the settings' keys, unless they are given."""
MADE_UP = {
    "core/test_text.py",
    "core/session/test_wire.py",
    "language/test_translator.py",
    "adapters/process/test_heard.py",
}
"""Tests of Text itself, with ids of their own."""


def entries(language, area="core"):
    with (LOCALE / language / f"{area}.po").open("rb") as file:
        return {
            message.id if isinstance(message.id, str) else message.id[0]: (
                (message.string,) if isinstance(message.string, str) else message.string
            )
            for message in read_po(file)
            if message.id
        }


def messages():
    """Every `Text("id", name=…)` of the source: id, names of its arguments, and location."""
    for path in sorted((*ROOT.glob("client/skep/**/*.py"), *ROOT.glob("gui/skep_gui/**/*.py"))):
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        completed = [each.args[0] for each in calls if isinstance(each.func, ast.Name) and each.func.id == "os_errors"]
        for node in calls:
            if isinstance(node.func, ast.Name) and node.func.id == "Text" and node.args:
                # `os_errors` adds the system's message
                named = {each.arg for each in node.keywords} | ({"reason"} if node in completed else set())
                for id_ in ids_in(node.args[0]):
                    yield id_, named, f"{path.relative_to(ROOT)}:{node.lineno}"


def expected_by_tests():
    """Every id in a `Text("id", …)` of a test, or that it compares with a message's, and location."""
    tests = ROOT / "tests"
    for path in sorted({*tests.rglob("*.py")} - {tests / each for each in MADE_UP}):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="Text"), args=[given, *_]):
                    found = ids_in(given)
                case ast.Compare(left=ast.Attribute(attr="id"), comparators=[ast.Constant(value=str(id_))]):
                    found = [id_] if "." in id_ else []
                case _:
                    continue
            for id_ in found:
                yield id_, f"{path.relative_to(ROOT)}:{node.lineno}"


def own_strings(package):
    """Every `tr("…", name=…)` of a front end: its English, names of its placeholders, and location."""
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tr":
                where = f"{path.relative_to(ROOT)}:{node.lineno}"
                assert isinstance(node.args[0], ast.Constant), f"{where} is not a literal"
                yield node.args[0].value, {each.arg for each in node.keywords}, where


def ids_in(argument):
    match argument:
        case ast.Constant(value=str(id_)):
            return [id_] if id_ else []
        case ast.IfExp(body=body, orelse=other):
            return [*ids_in(body), *ids_in(other)]
        case _:
            return []


def places(words):
    return {name for _, name, _, _ in string.Formatter().parse(words) if name}


ENGLISH, GERMAN = entries("en"), entries("de")
SAID = list(messages())
TERMINAL, TERMINAL_GERMAN, TERMINAL_PLURALS = (
    list(own_strings("client/skep/cli")),
    entries("de", "terminal"),
    entries("en", "terminal"),
)


def test_every_message_has_its_english_and_no_entry_is_left_over():
    assert {id_ for id_, _, _ in SAID} | KEYWORDS | SETTING_TEXTS | set(SENTENCES.values()) == set(ENGLISH)


def test_every_message_that_a_test_expects_has_its_english():
    assert (expected := list(expected_by_tests()))
    assert [(where, id_) for id_, where in expected if id_ not in ENGLISH] == []


def test_every_entry_uses_only_what_its_message_brings():
    wrong = [
        (where, id_, sorted(places(words) - named))
        for id_, named, where in SAID
        for words in ENGLISH.get(id_, ())
        if None not in named and not places(words) <= named
    ]
    assert wrong + [id_ for id_ in SETTING_TEXTS for words in ENGLISH[id_] if places(words)] == []


def test_every_entry_has_its_german_with_the_same_places():
    assert set(GERMAN) == set(ENGLISH)
    assert [id_ for id_, words in GERMAN.items() if not all(words)] == []
    wrong = [
        id_ for id_ in ENGLISH if set().union(*map(places, GERMAN[id_])) != set().union(*map(places, ENGLISH[id_]))
    ]
    assert wrong == []


def test_babel_finds_every_string_of_the_terminal():
    """`pybabel extract -k tr` does not find strings in f-strings."""
    found = {english for *_, english, _, _ in extract_from_dir(ROOT / "client/skep/cli", keywords={"tr": None})}
    assert found == {english for english, _, _ in TERMINAL}


def test_every_string_of_the_terminal_has_its_german_and_no_entry_is_left_over():
    assert {english for english, _, _ in TERMINAL} == set(TERMINAL_GERMAN)
    assert [english for english, words in TERMINAL_GERMAN.items() if not all(words)] == []


def test_every_string_of_the_terminal_has_the_places_that_it_is_given():
    wrong = [
        where
        for english, named, where in TERMINAL
        if None not in named and not places(english) | {"count"} >= named >= places(english)
    ]
    assert wrong == []
    assert [
        english
        for language in (TERMINAL_GERMAN, TERMINAL_PLURALS)
        for english, words in language.items()
        if any(places(each) != places(english) for each in words)
    ] == []


def test_what_the_terminal_counts_has_a_plural_in_both_languages():
    counted = {english for english, named, _ in TERMINAL if "count" in named}
    assert set(TERMINAL_PLURALS) == counted
    assert {english for english, words in TERMINAL_GERMAN.items() if len(words) == 2} == counted


@pytest.mark.parametrize("area", ["core", "terminal"])
@pytest.mark.parametrize("language", ["en", "de"])
def test_every_place_is_of_a_kind_that_is_known(language, area):
    """A kind is one of ours, or a number format such as ".1f"."""
    kinds = {
        spec
        for words in entries(language, area).values()
        for each in words
        for *_, spec, _ in string.Formatter().parse(each)
    }
    assert {kind for kind in kinds - KINDS - {None} if not re.fullmatch(r"\.?\d*[gf%]", kind)} == set()


@pytest.mark.parametrize("area", ["core", "terminal"])
@pytest.mark.parametrize("language", ["en", "de"])
def test_catalogues_hold_nothing_but_words(language, area):
    """No markup, no line breaks, no code in braces."""
    for id_, words in entries(language, area).items():
        for each in words:
            assert "\n" not in each, id_
            assert not re.search(r"<[a-z/]", each), id_
            assert all(re.fullmatch(r"[a-z_0-9]+", name) for name in places(each)), id_


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_core_s_sentences_stand_in_the_order_of_their_ids(language):
    ids = list(entries(language))
    assert ids == sorted(ids)
