"""The words of Projects, Settings, Stats and the first steps, without Qt."""

import csv
import io
from dataclasses import replace

import pytest

import snapshots as shots
from english import in_english
from manifests import lora, raw
from skep.core.device import Device, DeviceKind
from skep.core.project.fit import Estimate, Fit, Verdict
from skep.core.project.needs import GB
from skep.core.record.contributions import Contribution, ContributionState
from skep.core.sandbox import Guard, Sandbox
from skep.core.session.phases import Phase
from skep.core.settings.settings import DEFAULTS, SETTINGS
from skep.core.text import Problem, Text, verbatim
from skep.language.units import Numbers
from skep.recipes.registry import parse_manifest
from skep_gui.words.projects import PRACTICE, Known, Projects, Tone
from skep_gui.words.settings import LIMITS, Devices, SettingsForm
from skep_gui.words.stats import to_csv

PROJECTS, FORM = Projects(), SettingsForm()
FITS = Known(shots.PROJECT, Fit(Verdict.FITS))


def known(**changes):
    return replace(FITS, project=replace(shots.PROJECT, manifest=parse_manifest(raw(**changes))))


def test_a_card_says_who_what_and_whether_it_fits():
    card = PROJECTS.card(FITS, shots.IDLE)
    assert card.title == "Tiny code model"
    assert card.publisher.startswith("Example Lab · ")
    assert (card.badge.text, card.badge.tone) == ("Fits", Tone.WELL)
    assert card.joinable
    assert not card.active


@pytest.mark.parametrize(
    ("changed", "badge", "joinable"),
    [
        ({"fit": Fit(Verdict.FITS_GENTLY, (verbatim("It needs 2 GB."),))}, "Fits, with limits", True),
        ({"fit": Fit(Verdict.TOO_BIG, (verbatim("Too big."),))}, "Too big", False),
        ({"problem": Problem(verbatim("It has expired."), verbatim("Ask for a new one."))}, "Not available", False),
    ],
)
def test_what_cannot_be_joined_says_why(changed, badge, joinable):
    card = PROJECTS.card(replace(FITS, **changed), shots.IDLE)
    assert (card.badge.text, card.joinable) == (badge, joinable)
    assert card.badge.explained


@pytest.mark.parametrize(
    ("phase", "state"),
    [
        (Phase.JOINING, "Joining"),
        (Phase.TRAINING, "Training"),
        (Phase.PAUSED, "Paused"),
        (Phase.RECOVERING, "Trying again"),
        (Phase.LEAVING, "Leaving"),
    ],
)
def test_the_active_card_shows_its_state(phase, state):
    card = PROJECTS.card(FITS, replace(shots.TRAINING, phase=phase))
    assert (card.active, card.state) == (True, state)


def test_the_active_card_does_not_say_training_while_it_waits():
    assert PROJECTS.card(FITS, replace(shots.TRAINING, waiting=Text("wait.data"))).state == "Waiting"


def test_the_practice_swarm_is_a_card_before_it_was_ever_started():
    assert PROJECTS.practice(shots.IDLE, starting=False).state == ""
    assert PROJECTS.practice(shots.IDLE, starting=True).state == "Starting the practice swarm …"
    inside = replace(shots.TRAINING, project=replace(shots.PROJECT, id=PRACTICE))
    assert PROJECTS.practice(inside, starting=False).state == "Training"


def test_three_lists_say_what_a_project_does():
    page = PROJECTS.permissions(FITS)
    assert page.downloads[0] == "Training data listed at https://example.org/tiny/index.json"
    seen = "Other peers see this computer's network address, its identity, which it has in this project only, how fast"
    assert any(line.startswith(seen) for line in page.sends)
    assert "Copies of the model, when another peer asks for one" in page.sends
    assert "2.0\u2009GB of memory" in page.uses
    assert dict(page.facts)["Homepage"] == "https://example.org"
    assert page.joinable


def test_the_permission_page_says_guard_by_guard_what_this_system_enforces():
    assert PROJECTS.protection(Sandbox({})) == tuple(in_english(guard.label) for guard in Guard)
    found = PROJECTS.protection(Sandbox({Guard.SERVICES: "Operation not permitted"}))
    assert len(found) == len(Guard)
    assert "sockets" not in " ".join(found[:-1])
    assert found[-1] == (
        "Not on this system: sockets of other programs, such as the session bus and the screen (Operation not permitted)"
    )
    assert "could not be tried" in " ".join(PROJECTS.protection(None))


def test_a_project_by_invitation_fetches_the_list_of_revoked_ones_and_a_moderated_one_says_who_gives_the_model():
    listed = "The publisher's list of revoked invitations, every hour"
    assert listed not in PROJECTS.permissions(FITS).downloads
    assert listed in PROJECTS.permissions(known(membership="invited")).downloads
    seen = "Other peers see this computer's network address, its identity, which is the same in all projects by invitation, "
    assert any(line.startswith(seen) for line in PROJECTS.permissions(known(membership="invited")).sends)
    page = PROJECTS.permissions(known(membership="moderated"))
    assert listed in page.downloads
    assert "Copies of the model, when another peer asks and your invitation is a donor's or a host's" in page.sends


def test_where_the_model_comes_from_is_said_as_the_manifest_has_it():
    of_peers, of_publisher = "The model as the swarm has trained it so far, from other peers", "signed checkpoint"
    assert of_peers in PROJECTS.permissions(FITS).downloads
    downloads = PROJECTS.permissions(known(initial_state="signed")).downloads
    assert of_peers not in downloads
    assert any(of_publisher in line for line in downloads)


def test_a_project_without_a_homepage_has_no_row_for_one():
    assert "Homepage" not in dict(PROJECTS.permissions(known(homepage="")).facts)


def test_files_that_a_recipe_needs_are_downloads():
    page = PROJECTS.permissions(known(recipe=lora()))
    assert any("13.0\u2009GB" in line and "https://example.org/base.safetensors" in line for line in page.downloads)


def test_a_remark_comes_with_what_is_wrong():
    page = PROJECTS.permissions(replace(FITS, problem=Problem(verbatim("It has expired."), verbatim("Ask."))))
    assert page.remarks[0] == "It has expired. Ask."
    assert not page.joinable


def test_hidden_characters_never_reach_the_screen():
    page = PROJECTS.permissions(known(title="a\u202eb", summary="c\u200bd", publisher__name="<i>e\u2066</i>"))
    assert (page.title, page.summary) == ("ab", "cd")
    assert dict(page.facts)["Published by"] == "<i>e</i>"


def test_the_csv_holds_every_contribution_and_no_formula():
    rows = {"a": (Contribution("=1+1", 3, 5, ContributionState.LOST, verbatim("@sum, really"), 2),)}
    head, row = csv.reader(io.StringIO(to_csv(rows)))
    assert head[0] == "project"
    assert row == ["a", "'=1+1", "3", "5", "lost", "2", "'@sum, really", "0"]


def test_the_form_holds_every_setting_in_its_group():
    groups = FORM.groups(DEFAULTS)
    assert [row.setting.key for group in groups for row in group.rows] == [key for key in SETTINGS if key != LIMITS]
    assert groups[0].title == "Compute"


def test_a_setting_that_this_computer_lacks_says_so():
    form = SettingsForm()
    form.lacking = {"app.check_updates": verbatim("No place for updates.")}
    rows = {row.setting.key: row for group in form.groups(DEFAULTS) for row in group.rows}
    assert {key for key, row in rows.items() if row.unavailable} == {"app.check_updates"}
    assert not rows["compute.share_away"].changed
    assert FORM.row(SETTINGS["compute.share_away"], {"compute.share_away": 0.3}).shown == "30 %"


def test_devices_that_can_be_used_are_offered_by_name_and_one_that_is_gone_stays_chosen():
    form, key = SettingsForm(), "compute.device"
    assert FORM.row(SETTINGS[key], DEFAULTS).choices == (("", "best"),)
    form.offered = {key: Devices().offered(shots.DEVICES)}
    found = (("", "best"), ("cuda:0", "NVIDIA GeForce RTX 4070"), ("cpu", "AMD Ryzen 7 7840U"))
    assert form.row(SETTINGS[key], DEFAULTS).choices == found
    assert form.row(SETTINGS[key], {key: "cuda:3"}).choices == (*found, ("cuda:3", "cuda:3"))


def test_devices_of_one_name_are_told_apart():
    twins = [Device(DeviceKind.NVIDIA, index, "RTX") for index in (0, 1)]
    assert Devices().offered(twins) == (
        ("all", "All graphics cards"),
        ("cuda:0", "RTX (cuda:0)"),
        ("cuda:1", "RTX (cuda:1)"),
    )


@pytest.mark.parametrize(("search", "found"), [("temperature CAP", ["heat.cap_celsius"]), ("no such thing", [])])
def test_the_search_looks_at_all_words(search, found):
    assert [row.setting.key for group in FORM.groups(DEFAULTS, search) for row in group.rows] == found


def test_the_first_steps_name_the_device_or_say_why_not():
    words = Devices()
    assert words.sentence(shots.DEVICES) == "skep found NVIDIA GeForce RTX 4070."
    assert "processor" in words.sentence(shots.DEVICES[1:])
    assert words.sentence([]) == "skep found nothing it can train on."
    rows = words.rows(shots.DEVICES)
    assert [(row.usable, row.detail) for row in rows] == [
        (True, "Ready to train, with 12.0\u2009GB of memory."),
        (False, "No driver is loaded for it."),
        (True, "Works for small projects."),
    ]
    assert words.rows([replace(shots.DEVICES[0], memory_total=None)])[0].detail == "Ready to train."


def test_presets_differ_by_their_shares():
    presets = Devices().presets()
    assert [preset.values["compute.share_away"] for preset in presets] == [0.5, 0.75, 1.0]


def test_before_joining_a_card_says_what_an_hour_takes_and_gives():
    with_estimate = replace(FITS, estimate=Estimate(2 * GB, 3 * GB, GB, 123_456, 14_400_000, 90_000_000))
    card = PROJECTS.card(with_estimate, shots.IDLE)
    assert card.traffic == "about 14\u2009MB up and 14\u2009MB down an hour"
    assert card.needs == (
        "2.0\u2009GB of memory · 3.0\u2009GB of GPU memory · 1.0\u2009GB of disk · about 120\u2009000 samples an hour"
    )
    page = PROJECTS.permissions(with_estimate)
    assert page.sends[0].startswith("About 14\u2009MB up and 14\u2009MB down an hour, in a swarm of 4 computers")
    assert "90.0\u2009MB each way if epochs were as short as they can be" in page.sends[0]
    assert any("at full share about 120\u2009000 samples an hour" in line for line in page.uses)
    assert PROJECTS.card(FITS, shots.IDLE).needs == ""
    assert "per epoch" in PROJECTS.card(FITS, shots.IDLE).traffic


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (175_800_000, "180 MB"),
        (1_440_000_000, "1.4 GB"),
        (1_000_000, "1 MB"),
        (999_600_000, "1 GB"),
        (120, "120 B"),
        (0, "0 B"),
    ],
)
def test_an_estimate_of_bytes_has_two_digits(count, said):
    assert Numbers().rough_size(count) == said.replace(" ", "\u2009")
