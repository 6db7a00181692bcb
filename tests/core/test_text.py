"""A message as data."""

import json

import pytest

from skep.core.text import NOTHING, Text, as_data, from_data, packed, sentences, unpacked, verbatim

NESTED = Text("a.b", inner=Text("c.d", n=1), several=("x", Text("e.f")), share=0.5, on=True)


def test_a_message_says_its_id_and_arguments_in_logs():
    assert str(Text("web.no_answer", host="example.org", seconds=2)) == "web.no_answer host='example.org' seconds=2"
    assert str(Text("a.b", inner=Text("c.d", n=1))) == "a.b inner=(c.d n=1)"


def test_messages_are_equal_by_id_and_arguments_and_can_be_keys():
    assert Text("a.b", n=1) == Text("a.b", n=1) != Text("a.b", n=2)
    assert len({Text("a.b", n=1), Text("a.b", n=1), Text("a.c", n=1)}) == 2


def test_only_nothing_is_false():
    assert not NOTHING
    assert Text("a.b")


def test_an_f_string_does_not_show_an_id():
    with pytest.raises(TypeError, match="put into words"):
        f"{Text('a.b')}"


def test_a_message_comes_back_from_json_as_it_was():
    assert from_data(json.loads(json.dumps(as_data(NESTED)))) == NESTED
    assert unpacked(packed(NESTED)) == NESTED
    assert (packed(NOTHING), unpacked("")) == ("", NOTHING)
    assert packed(Text("a.b", x=1, y=2)) == packed(Text("a.b", y=2, x=1))


@pytest.mark.parametrize(
    "data", [None, 7, "words", [], {"id": "a.b"}, {"id": 1, "args": {}}, {"id": "a", "args": {"x": None}}]
)
def test_what_is_no_message_is_refused(data):
    with pytest.raises(ValueError, match="no message"):
        from_data(data)


def test_sentences_leave_out_what_says_nothing():
    assert sentences(verbatim("A."), NOTHING, verbatim("B.")).args["said"] == (verbatim("A."), verbatim("B."))
