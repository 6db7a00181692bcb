"""Settings as data: declared once, checked, parsed and shown."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from english import in_english
from skep.core.errors import SettingsError
from skep.core.settings import settings
from skep.core.settings.setting import Kind
from skep.core.settings.settings import DEFAULTS, GROUPS, SETTINGS, _read

KEYS = st.sampled_from(sorted(SETTINGS))
ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.lists(st.integers())
    | st.binary(max_size=4)
)


def refusal(action, *arguments):
    with pytest.raises(SettingsError) as caught:
        action(*arguments)
    assert in_english(caught.value.title).endswith(".")
    return caught.value


def test_the_defaults_are_the_policys():
    assert DEFAULTS["compute.share_away"] == 1.0
    assert DEFAULTS["compute.share_using"] == 0.2
    assert DEFAULTS["compute.idle_minutes"] == 3
    assert DEFAULTS["memory.leave_gpu_gb"] == 1
    assert DEFAULTS["memory.leave_ram_gb"] == 2
    assert DEFAULTS["memory.free_gpu_seconds"] == 60
    assert DEFAULTS["memory.leave_swarm_minutes"] == 10
    assert DEFAULTS["heat.cap_celsius"] == 80
    assert DEFAULTS["disk.cache_gb"] == 10
    assert DEFAULTS["disk.keep_free_gb"] == 5
    assert DEFAULTS["app.start_at_login"] is False
    assert DEFAULTS["app.check_updates"] is True


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_is_declared_whole(key):
    setting = SETTINGS[key]
    assert setting.key == key
    assert setting.group in GROUPS
    assert setting.label
    assert in_english(setting.help).endswith(".")
    assert settings.check(key, setting.default) == setting.default
    assert type(settings.check(key, setting.default)) is type(setting.default)
    assert (setting.kind is Kind.CHOICE) == bool(setting.choices)
    assert (setting.kind is Kind.TEXT) == bool(setting.pattern and setting.form)
    if setting.kind in (Kind.WHOLE, Kind.NUMBER, Kind.PERCENT):
        assert math.isfinite(setting.minimum)
        assert math.isfinite(setting.maximum)


def test_settings_of_one_group_stand_together():
    seen = list(dict.fromkeys(setting.group for setting in SETTINGS.values()))
    assert seen == list(GROUPS)
    assert [s.group for s in SETTINGS.values()] == sorted((s.group for s in SETTINGS.values()), key=seen.index)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("compute.share_away", "30", 0.3),
        ("compute.share_away", "30 %", 0.3),
        ("compute.share_away", " 30%\n", 0.3),
        ("compute.share_away", "33.3", 0.333),
        ("compute.share_away", "100", 1.0),
        ("compute.threads", "4", 4),
        ("compute.threads", "0", 0),
        ("compute.threads", "Automatic", 0),
        ("compute.device", "", ""),
        ("compute.device", "best", ""),
        ("compute.device", "cuda:1", "cuda:1"),
        ("network.port", "31337", 31_337),
        ("disk.cache_gb", "2.5 GB", 2.5),
        ("disk.cache_gb", "2", 2.0),
    ],
)
def test_what_a_person_writes_is_read(key, text, value):
    assert settings.parse(key, text) == value
    assert type(settings.parse(key, text)) is type(value)


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        ("compute.share_away", "4", "compute.share_away must be a percentage from 5 % to 100 %."),
        ("compute.share_away", "0.3", "compute.share_away must be a percentage from 5 % to 100 %."),
        ("compute.share_away", "101 %", "compute.share_away must be a percentage from 5 % to 100 %."),
        ("compute.share_away", "nan", "compute.share_away must be a percentage from 5 % to 100 %."),
        ("compute.share_away", "9" * 5000, "compute.share_away must be a percentage from 5 % to 100 %."),
        ("compute.threads", "-1", "compute.threads must be a whole number from 1 to 512, or 0 for automatic."),
        ("compute.threads", "1.5", "compute.threads must be a whole number from 1 to 512, or 0 for automatic."),
        ("compute.threads", "1_0", "compute.threads must be a whole number from 1 to 512, or 0 for automatic."),
        ("network.port", "80", "network.port must be a whole number from 1024 to 65535, or 0 for automatic."),
        ("disk.cache_gb", "5 min", "disk.cache_gb must be a number from 0.1 GB to 10000 GB."),
        (
            "compute.device",
            "../x",
            "compute.device must be a device: cpu, cuda:0 for the first GPU, or mps on a Mac; or several: all GPUs, cuda:0,cuda:2, or cpu*2, or empty for best.",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_bounds_and_unit(key, text, sentence):
    assert in_english(refusal(settings.parse, key, text).title) == sentence


def test_a_refusal_says_the_default():
    assert in_english(refusal(settings.check, "disk.keep_free_gb", 0).hint) == "The default is 5 GB."


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("compute.share_awy", "compute.share_away"),
        ("threads", "compute.threads"),
        ("Compute.Threads", "compute.threads"),
        ("network.prt", "network.port"),
        ("cache_gb", "disk.cache_gb"),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest(written, meant):
    error = refusal(settings.parse, written, "1")
    assert in_english(error.title) == f"There is no setting “{written}”."
    assert in_english(error.hint) == f"Did you mean {meant}?"


def test_a_key_like_no_other_points_to_the_list():
    assert in_english(refusal(settings.check, "xyzzy", 1).hint) == "skep settings lists all of them."


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("compute.share_away", 0.3, "30 %"),
        ("compute.share_away", 0.07, "7 %"),
        ("compute.threads", 0, "automatic"),
        ("compute.threads", 3, "3"),
        ("compute.device", "", "best"),
        ("compute.share_using", 0.0, "pause"),
        ("heat.cap_celsius", 80, "80 °C"),
        ("network.port", 12_345, "12345"),
        ("when.battery_pause", True, "yes"),
        ("when.battery_pause", False, "no"),
        ("app.theme", "dark", "dark"),
    ],
)
def test_a_value_is_shown_in_words(key, value, words):
    assert settings.show(key, value) == words


@pytest.mark.parametrize(
    ("key", "value", "in_file"),
    [
        ("compute.share_away", 0.3, 30),
        ("compute.share_away", 0.333, 33.3),
        ("disk.cache_gb", 2.0, 2.0),
        ("when.battery_pause", False, False),
        ("compute.device", "cpu", "cpu"),
    ],
)
def test_the_file_holds_percent(key, value, in_file):
    assert settings.to_file(key, value) == in_file
    assert type(settings.to_file(key, value)) is type(in_file)
    assert settings.from_file(key, in_file) == value


@pytest.mark.parametrize("key", ["compute.share_away", "compute.threads", "disk.cache_gb"])
@pytest.mark.parametrize("value", [True, "1", None, math.nan, math.inf, -1, 10**400, [1]])
def test_a_number_must_be_one(key, value):
    refusal(settings.check, key, value)
    refusal(settings.from_file, key, value)


@pytest.mark.parametrize("value", [0, 1, "yes", None])
def test_yes_or_no_must_be_a_bool(value):
    assert (
        in_english(refusal(settings.check, "when.battery_pause", value).title)
        == "when.battery_pause must be yes or no."
    )


@given(KEYS, ANYTHING)
def test_a_value_fits_or_is_refused_and_never_anything_else(key, value):
    try:
        kept = settings.check(key, value)
    except SettingsError:
        return
    assert type(kept) is type(DEFAULTS[key])
    assert settings.check(key, kept) == kept


@given(KEYS, st.text() | st.from_regex(r"-?\d{1,20}(\.\d+)? ?(%|GB)?", fullmatch=True))
def test_text_is_read_or_refused_and_what_was_read_is_shown_readably(key, text):
    try:
        value = settings.parse(key, text)
    except SettingsError:
        return
    again = settings.parse(key, settings.show(key, value))
    assert again == pytest.approx(value) if isinstance(value, float) else again == value


@given(st.text())
def test_any_unknown_key_is_refused(key):
    if key not in SETTINGS:
        assert in_english(refusal(settings.check, key, 1).title).isprintable()


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("when.battery_pause", "Off", False),
        ("when.battery_pause", "yes", True),
        ("when.battery_pause", "perhaps", "perhaps"),
        ("network.client_mode", "ON", "on"),
    ],
)
def test_yes_no_and_choices_are_read_however_they_are_written(key, text, value):
    assert _read(SETTINGS[key], text) == value
