"""Requests is loaded without what guesses encodings, says nothing of it, and still reads what is sent."""

import subprocess
import sys

PROGRAM = """
import sys
{before}
import requests
answer = requests.Response()
answer._content = "Bienenkorb, süß".encode()
answer.encoding = "utf-8"
print(answer.content.decode() == answer.text, "charset_normalizer" in sys.modules)
import charset_normalizer
"""


def said(before):
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)], capture_output=True, text=True, check=True
    )
    return ended.stdout.strip(), ended.stderr


def test_requests_loads_it_unless_ours_comes_first():
    assert said("") == ("True True", "")
    assert said("import skep.adapters.web") == ("True False", "")


def test_where_requests_was_there_before_nothing_changes():
    assert said("import requests, skep.adapters.web") == ("True True", "")
