"""The language of a command, and that all its output is in that language."""

import argparse
import json

import pytest

from skep.cli.application import main, parser
from skep.cli.show.speech import speak, tr
from skep.cli.verbs.keys import _is_yes

GERMAN, PLAIN = {"LANG": "de_DE.UTF-8"}, {"LANG": "C"}


@pytest.fixture(autouse=True)
def english_again():
    yield
    speak("en")


@pytest.fixture
def skep(home, capsys):
    """Runs a verb in the test's home; returns its exit code and its output on one line."""

    def run(environ, *arguments):
        code = main(arguments, {"SKEP_HOME": str(home.root), "COLUMNS": "200"} | environ)
        printed = capsys.readouterr()
        return code, " ".join(f"{printed.out}\n{printed.err}".split())

    return run


@pytest.mark.parametrize(
    ("arguments", "code", "german", "english"),
    [
        ("status", 1, "läuft kein skep. Starte eines mit skep join.", "No skep is running"),
        ("settings", 0, "Einstellung Wert Wirkung", "Setting Value What it does"),
        (
            "settings",
            0,
            "Das Gerät, das rechnet, oder mehrere: all, oder eine Liste wie cuda:0,cuda:2.",
            "The device that computes, or several:",
        ),
        ("explain --if battery", 0, "Wenn battery: Im Akkubetrieb. Regel Höchstens Warum", "If battery: On battery."),
        ("stats", 0, "Noch nichts beigetragen.", "Nothing contributed yet."),
        ("dance", 2, "„dance“ ist kein Befehl von skep. Mehr sagt skep --help.", "“dance” is not a skep verb."),
        ("", 2, "Ein Befehl fehlt.", "A verb is missing."),
        ("join", 2, "NAME|MANIFEST|LINK fehlt.", "NAME|MANIFEST|LINK is missing."),
        ("project sign", 2, "DATEI fehlt.", "FILE is missing."),
        ("stats --by year", 2, "--by muss eines von diesen sein: hour, day, week.", "--by must be one of hour, day,"),
        ("pause --for soon", 2, "„soon“ ist keine Dauer.", "“soon” is not a span of time."),
        ("status --home", 2, "--home braucht einen Wert.", "--home needs a value."),
        ("pause --help", 0, "Aufruf: skep pause [-h] [--json] [--home ORDNER] [--for DAUER]", "usage: skep pause [-h]"),
        (
            "pause --help",
            0,
            "Optionen: -h, --help diese Hilfe zeigen und beenden",
            "options: -h, --help show this help",
        ),
        ("settings get --help", 0, "Argumente: NAME etwa compute.share_away", "positional arguments: KEY such as"),
    ],
)
def test_it_is_the_systems(skep, arguments, code, german, english):
    for environ, sentence in ((GERMAN, german), (PLAIN, english)):
        ended, printed = skep(environ, *arguments.split())
        assert sentence in printed
        assert ended == code


@pytest.mark.parametrize("place", [[], ["--home"]])
def test_the_setting_of_the_home_counts_for_more_than_the_system(skep, home, place):
    chosen = [*place, *([str(home.root)] if place else [])]
    environ = {"SKEP_HOME": "/nowhere"} if place else {}
    for language, system, sentence in (("de", PLAIN, "läuft kein skep"), ("en", GERMAN, "No skep is running")):
        assert skep({}, "settings", "set", "app.language", language)[0] == 0
        assert sentence in skep(system | environ, "status", *chosen)[1]
    skep({}, "settings", "set", "app.language", "system")
    assert "läuft kein skep" in skep(GERMAN | environ, "status", *chosen)[1]


def test_it_is_english_where_the_settings_cannot_be_read(skep, home):
    home.settings_file.write_text("[app\n")
    assert "is damaged in line 1" in skep(GERMAN, "settings")[1]
    home.settings_file.unlink()
    home.settings_file.mkdir()
    assert "cannot be read" in skep(GERMAN, "settings")[1]


def test_programs_are_told_english(home, capsys):
    environ = GERMAN | {"SKEP_HOME": str(home.root)}
    assert main(["status", "--json"], environ) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["title"].startswith("No skep is running")
    assert printed.err.startswith("No skep is running")
    main(["explain", "--if", "battery", "--json"], environ)
    assert json.loads(capsys.readouterr().out)["allowance"]["reason"] == "On battery."


def test_a_word_that_is_typed_is_shown_as_it_is_typed(skep):
    assert (
        "ganze Zahl von 1 bis 512 oder 0 für „automatic“" in skep(GERMAN, "settings", "set", "compute.threads", "x")[1]
    )
    assert skep(GERMAN, "settings", "set", "compute.threads", "automatic")[1] == "compute.threads ist jetzt automatic."


@pytest.mark.parametrize(("answer", "agreed"), [("y", True), ("Ja", True), ("j", True), ("n", False), ("", False)])
def test_a_yes_is_taken_in_both_languages(answer, agreed):
    assert _is_yes(lambda: answer) is agreed


def helps(language):
    """All descriptions and help texts of every verb."""
    speak(language)
    made, found = [parser()], []
    while made:
        each = made.pop(0)
        found.append(each.description)
        for action in each._actions:
            found += [action.help] if action.help not in {None, argparse.SUPPRESS} else []
            if isinstance(action, argparse._SubParsersAction):
                found += [choice.help for choice in action._choices_actions]
                made += action.choices.values()
    return found


def test_all_help_is_in_german():
    pairs = list(zip(helps("en"), helps("de"), strict=True))
    assert len(pairs) > 200
    assert [english for english, german in pairs if english == german] == []


def test_what_is_counted_has_its_singular():
    for language, one, two in (("en", "1 sample", "2 samples"), ("de", "1 Beispiel", "2 Beispiele")):
        speak(language)
        assert [tr("{count:number} samples", count=count) for count in (1, 2)] == [one, two]
