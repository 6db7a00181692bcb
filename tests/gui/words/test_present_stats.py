"""The words of Stats and of a day's timeline, and the actions for problems, without Qt."""

from dataclasses import replace
from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest

import snapshots as shots
from skep.core import errors
from skep.core.policy.rules import RULES
from skep.core.record.contributions import Tally, Totals
from skep.core.record.timeline_segments import Segment
from skep.core.record.usage import COUNTS, Spent, Unit, day_of
from skep.core.settings.settings import SETTINGS
from skep.core.text import NOTHING, Problem, Remedy, Text, verbatim
from skep.language import units
from skep.language.units import Numbers
from skep.services.summary import Summary
from skep_gui.words.day import STUB, Day, setting_of, tone
from skep_gui.words.notices import Problems, remedy_setting
from skep_gui.words.speaker import Tongue, core_translator, english
from skep_gui.words.stats import Measure, Record, Stats, confirmed_part

STATS, DAY, PROBLEMS = Stats(), Day(), Problems()
RECORD = shots.record()


def test_figures_are_the_ledgers():
    trained, confirmed, share, energy = STATS.figures(RECORD)
    assert trained.value == "6.4\u2009h"
    assert (confirmed.value, confirmed.below) == ("218\u2009880", "45 epochs · 512\u00a0pending")
    assert (share.value, share.below) == ("90\u2009%", "24\u2009320\u00a0lost")
    assert energy.value == "0.83\u2009kWh"
    assert confirmed_part(Totals()) is None


@pytest.mark.parametrize(
    ("spent", "why"),
    [(Spent(), "Nothing trained yet."), (Spent(9.0, 9.0), "The device does not report its power.")],
)
def test_energy_that_is_not_measured_says_why(spent, why):
    figure = STATS.figures(Record(whole=Summary(spent=spent)))[3]
    assert (figure.value, figure.below) == (units.MISSING, why)


def test_rows_by_project_and_in_all():
    rows = STATS.rows(RECORD, {"tiny-code-lm": "Tiny\u202e code model"})
    assert [row.cells[0] for row in rows] == ["Tiny code model", "Practice swarm", "All projects"]
    assert (rows[0].cells[2], rows[0].cells[3], rows[0].cells[5]) == ("165\u2009376", "512", "7.6\u2009%")
    assert rows[0].explained.startswith("Tiny code model. Trained: ")
    titles = {"tiny-code-lm": "Practice swarm", "practice": "Practice swarm"}
    said = Stats(Tongue(core=core_translator("de", Numbers()))).rows(RECORD, titles)
    assert [row.cells[0] for row in said[:2]] == ["Practice swarm", "Übungsschwarm"]
    bare = STATS.rows(Record({"a": Summary()}), {})
    assert [row.cells[5:] for row in bare] == [(units.MISSING, units.MISSING)]


def test_lost_samples_have_a_reason():
    lost = {Text("round.no_other_peer"): Tally(2, 20), NOTHING: Tally(1, 10)}
    assert STATS.reasons(Record(whole=Summary(lost=lost))) == [
        "No other peer: 20 samples in 2 epochs",
        "No reason recorded: 10 samples in 1 epoch",
    ]


@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("measure", list(Measure))
def test_a_bar_a_period(unit, measure):
    chart = STATS.bars(shots.record(unit), measure)
    assert len(chart.cells) == COUNTS[unit]
    assert 0 < max(cell.height for cell in chart.cells) <= 1
    assert all(cell.upper <= cell.height for cell in chart.cells)
    assert chart.labels[-1][0] > 0.9  # the last bar has its name
    assert chart.cells[0].left == 0
    assert chart.cells[-1].left + chart.cells[-1].width == pytest.approx(1.0)


def test_a_week_is_labelled_with_the_date_as_the_language_writes_it():
    english = STATS.bars(shots.record(Unit.WEEK), Measure.SAMPLES).labels[-1][1]
    assert date.fromisoformat(english).weekday() == 0
    german = Stats(Tongue(numbers=units.written_in("de")))
    assert (
        german.bars(shots.record(Unit.WEEK), Measure.SAMPLES).labels[-1][1]
        == f"{english[8:]}.{english[5:7]}.{english[:4]}"
    )


def test_a_bar_says_what_it_stands_for():
    chart = STATS.bars(RECORD, Measure.SAMPLES)
    assert chart.cells[-1].name.startswith("Fri 2027-01-15: ")
    assert "confirmed" in chart.cells[-1].name
    assert STATS.bars(Record(), Measure.SAMPLES).cells == ()


def test_lost_samples_stand_on_top():
    record = replace(RECORD, past=[replace(RECORD.past[0], confirmed=30, lost=10)])
    (cell,) = STATS.bars(record, Measure.SAMPLES).cells
    assert (cell.height, cell.upper) == (1.0, 0.25)


# --- the day


def test_each_stretch_leads_to_its_rule():
    chart = DAY.chart(RECORD)
    call = next(cell for cell in chart.cells if "call or film" in cell.name)
    assert (call.key, call.tone, call.height) == ("when.call_pause", "you", STUB)
    assert call.name == "08:54 to 09:36, share 0\u2009%: A call or film is running."
    full = chart.cells[0]
    assert (full.key, full.height, full.left) == ("compute.share_away", 1.0, 0.0)
    assert chart.cells[-1].left + chart.cells[-1].width == pytest.approx(17 / 24)


def test_hours_of_the_day_have_labels_and_its_end_too():
    assert DAY.chart(RECORD).labels == ((0, "00:00"), (0.25, "06:00"), (0.5, "12:00"), (0.75, "18:00"), (1, "00:00"))
    twelve = Tongue(numbers=Numbers(time=lambda moment: f"{moment:%I %p}"))
    assert [text for _, text in Day(twelve).chart(RECORD).labels] == ["12 AM", "06 AM", "12 PM", "06 PM", "12 AM"]


@pytest.mark.parametrize(("noon", "hours"), [("2027-03-28T12:00", 23), ("2027-10-31T12:00", 25)])
def test_a_label_stands_at_its_hour_on_a_day_on_which_the_clock_is_set(noon, hours):
    zone = ZoneInfo("Europe/Berlin")
    day = day_of(datetime.fromisoformat(noon).replace(tzinfo=zone).timestamp(), zone)
    labels = DAY.chart(replace(RECORD, day=day, zone=zone, segments=[])).labels
    assert [text for _, text in labels] == ["00:00", "06:00", "12:00", "18:00", "00:00"]
    # the clock is set at night, so six, twelve and 18 o'clock are as far from the end as on other days
    assert [place for place, _ in labels] == pytest.approx([0, *((hours - left) / hours for left in (18, 12, 6, 0))])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_leads_to_a_setting_there_is(rule):
    assert rule.name == "paused" or setting_of(rule.name) in SETTINGS
    assert tone(rule.name) in {"training", "you", "machine", "schedule"}


def test_rules_are_summed_over_the_day():
    rules = DAY.rules(RECORD)
    assert [each.name for each in rules][:3] == ["You use this computer", "Away", "Asleep"]
    assert {each.key for each in rules if each.name in ("Asleep", "Your pause")} == {""}
    assert DAY.label("again") == "No swarm"
    assert DAY.label("something later") == "something later"


def test_time_in_no_project_is_no_bar():
    record = replace(RECORD, segments=[Segment(RECORD.day[0], RECORD.now, "", "", 0.0, verbatim("Not in a project."))])
    assert DAY.chart(record).cells == ()
    assert DAY.rules(record) == []


@pytest.mark.parametrize(
    ("back", "title", "none"),
    [(0, "Today: ", "Nothing yet"), (1, "Yesterday: ", "In no project"), (9, "Fri 2027-01-15: ", "In no project")],
)
def test_the_day_has_a_name(back, title, none):
    record = replace(RECORD, asked=replace(RECORD.asked, back=back))
    assert DAY.title(record).startswith(title)
    assert DAY.none(record).startswith(none)


# --- problems


def kinds(kind=errors.SkepError):
    return [kind, *(each for below in kind.__subclasses__() for each in kinds(below))]


@pytest.mark.parametrize("kind", kinds())
def test_every_problem_has_an_action(kind):
    problem = kind(verbatim("It failed.")).problem
    action = PROBLEMS.action(problem)
    assert action
    if problem.remedy.startswith("setting:"):
        assert remedy_setting(problem) in SETTINGS
    else:
        assert problem.remedy in list(Remedy)


def test_a_problem_names_settings_as_the_screen_does():
    hint = Text("shard_cache.free_some_space_disk_lower", setting="disk.keep_free_gb")
    _, said = english.core.problem(Problem(verbatim("Too full."), hint, "setting:disk.cache_gb"))
    assert said == "Free some space on this disk, or lower the setting “Keep free”."
    assert english.said(Text("shard_cache.raise_setting", setting="no.such")) == "Raise the setting no.such."


@pytest.mark.parametrize(
    ("remedy", "action"),
    [
        (Remedy.PROJECTS.value, "Open Projects"),
        (Remedy.SETTINGS.value, "Open Settings"),
        (Remedy.REPORT.value, "Show the report"),
        (Remedy.CONNECTION.value, "Check the connection"),
        ("setting:network.port", "Open the setting"),
        ("setting:no.such", "Diagnose …"),
        ("", "Diagnose …"),
    ],
)
def test_an_action_is_named_by_where_it_leads(remedy, action):
    assert PROBLEMS.action(Problem(verbatim("It failed."), NOTHING, remedy)) == action


def test_a_report_says_what_went_wrong_and_not_where_the_person_is():
    trace = 'File "/home/anna/skep/x.py", line 3, in f\nOSError: 203.0.113.7 of anna said no'
    text = PROBLEMS.report(trace, ["skep 1"], "/home/anna", {"anna": "[user]"})
    assert "line 3, in f" in text
    assert "skep 1" in text
    assert "anna" not in text
    assert "203.0" not in text
