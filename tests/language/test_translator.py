import gettext

import pytest

from skep.core.text import NOTHING, Problem, Text, verbatim
from skep.language.translator import Translator, catalogue, system_language, translator
from skep.language.units import Numbers


class Words(gettext.NullTranslations):
    def __init__(self, entries, plurals=None):
        super().__init__()
        self._entries, self._plurals = entries, plurals or {}

    def gettext(self, message):
        return self._entries.get(message, message)

    def ngettext(self, one, many, count):
        return self._plurals[one][count != 1] if one in self._plurals else self.gettext(one)


def test_a_message_is_looked_up_by_its_id_and_its_places_are_filled():
    words = Translator(Words({"heat": "Keeping the {device} below {cap:.0f} °C."}))
    assert words.say(Text("heat", device="GPU", cap=80.0)) == "Keeping the GPU below 80 °C."


def test_a_place_is_shown_by_its_kind():
    words = Translator(
        Words({"share": "{share:percent} while in use"}), {"percent": lambda share: f"{share * 100:.0f} %"}
    )
    assert words.say(Text("share", share=0.25)) == "25 % while in use"


def test_a_message_within_a_message_is_said_in_words_too():
    words = Translator(Words({"outer": "It failed: {why}.", "inner": "no answer from {host}"}))
    assert words.say(Text("outer", why=Text("inner", host="x"))) == "It failed: no answer from x."


def test_a_count_selects_the_plural():
    words = Translator(Words({}, {"peers": ("{count} peer", "{count} peers")}))
    assert [words.say(Text("peers", count=n)) for n in (1, 2)] == ["1 peer", "2 peers"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_count_in_an_entry_without_a_plural_is_only_shown(count):
    assert translator("de").say(Text("field.must_list_of", count=count)) == f"muss eine Liste mit {count} Werten sein"


def test_a_plural_may_be_what_stands_in_the_source():
    made = [translator("en").tr("{count:number} peers", count=count) for count in (1, 2)]
    assert made == ["1 peer", "2 peers"]


def test_braces_in_a_value_are_no_places():
    words = Translator(Words({"title": "Joined {title}."}))
    assert words.say(Text("title", title="{cap}")) == "Joined {cap}."


def test_no_message_says_nothing_and_foreign_words_stay_as_they_are():
    assert translator("de").say(NOTHING) == ""
    assert translator("de").problem(Problem(verbatim("as {it} is"))) == ("as {it} is", "")


def test_numbers_are_written_as_in_the_language_that_is_set():
    here = Numbers(",", lambda moment: f"{moment:%H.%M} Uhr")
    german = translator("de", here)
    assert german.say(Text("fit.gb", gb=2.5)) == "2,5 GB"
    assert german.say(Text("rule.paused_until", until=Text("hours.today", time="15:30"))) == "Pausiert bis 15.30 Uhr."


def test_a_setting_is_shown_as_the_front_end_calls_it():
    message = Text("web.check_setting_names", setting="network.proxy", host="proxy.example.org")
    assert "network.proxy" in translator("en").say(message)
    assert "“Proxy”" in translator("en", setting=lambda _key: "“Proxy”").say(message)


def test_parts_stand_one_after_the_other_as_their_place_says():
    several = (verbatim("One."), verbatim("Two."))
    words = Translator(Words({"text.verbatim": "{words}", "a": "{several:sentences}", "b": "{several}"}))
    assert (words.say(Text("a", several=several)), words.say(Text("b", several=("x", "y")))) == ("One. Two.", "x, y")


def test_what_german_lacks_is_said_in_english(tmp_path):
    assert catalogue("de").gettext("") != ""


@pytest.mark.parametrize(
    ("environ", "language"),
    [
        ({"LANG": "de_AT.UTF-8"}, "de"),
        ({"LANG": "en_GB.UTF-8", "LC_MESSAGES": "de_DE"}, "de"),
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "fr_FR.UTF-8", "LANGUAGE": "fr:de:en"}, "de"),
        ({"LANG": "fr_FR.UTF-8"}, "en"),
        ({}, "en"),
    ],
)
def test_the_language_is_the_systems_where_there_is_a_catalogue(environ, language):
    assert system_language(environ) == language
