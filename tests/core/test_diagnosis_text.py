"""The file of diagnostics: its sections, and that it does not identify or locate the user."""

import pytest

from skep.core.redact import Section, redacted_report


def test_sections_have_titles_and_an_empty_one_says_so():
    text = redacted_report([Section("Versions", ["skep 1", "Python 3"]), Section("Readings")], "", {})
    assert text == "== Versions\nskep 1\nPython 3\n\n== Readings\nnothing\n"


SECRETS = [
    "home /home/anna/photos",
    "cache in /data/skep/cache",
    "anna's computer is wildbiene",
    "proxy http://anna:hunter2@proxy.example.org:8080",
    "dialled 203.0.113.7 and 2001:db8::7",
    "https://example.org/index.json?token=s3cr3tvalue",
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2Vw\n-----END PRIVATE KEY-----",
    "Authorization: Bearer abcdef123456",
]


@pytest.mark.parametrize(
    "secret",
    [
        "/home/anna",
        "/data/skep",
        "anna",
        "wildbiene",
        "hunter2",
        "203.0.113.7",
        "2001:db8",
        "s3cr3tvalue",
        "MC4CAQ",
        "abcdef123456",
    ],
)
def test_nothing_secret_is_in_it(secret):
    masks = {"anna": "[user]", "wildbiene": "[this computer]", "/data/skep": "[skep's folder]"}
    assert secret in "\n".join(SECRETS)
    text = redacted_report([Section("All", SECRETS)], "/home/anna", masks)
    assert secret not in text
    assert "~/photos" in text


def test_a_name_is_masked_only_as_a_word_and_only_when_it_is_long_enough():
    text = redacted_report([Section("a", ["annabel al anna."])], "", {"anna": "[user]", "al": "[user]"})
    assert "annabel al [user]." in text


def test_the_longer_path_goes_first():
    text = redacted_report(
        [Section("a", [r"C:\skep\home and C:\skep"])], "", {r"C:\skep": "[a]", r"C:\skep\home": "[b]"}
    )
    assert "[b] and [a]" in text
